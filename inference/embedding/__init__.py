"""Texts to vectors, many per batch, whoever asked."""

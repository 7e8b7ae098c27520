"""Tokens that others sign: read, proved, and told what they mean here."""

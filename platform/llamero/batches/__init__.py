"""Requests that may wait a day: files of them, what became of each, and who runs them."""

"""Guesses at the next tokens: where they come from, how good they are, and whether they pay."""

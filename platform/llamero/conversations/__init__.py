"""Answers that are kept, with what was asked for them: a conversation can be gone on with."""

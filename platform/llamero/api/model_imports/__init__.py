"""Bring models in: files by tus, or from elsewhere, and what they are to become."""

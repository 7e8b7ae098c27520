"""Batches are run here: read, answered by the API's own views, and written down."""

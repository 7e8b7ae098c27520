"""Continuous batching: sequences join and leave between the steps of one loop."""

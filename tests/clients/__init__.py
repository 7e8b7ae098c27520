"""Clients that other people wrote, each in a virtual environment of its own, before one Llamero."""

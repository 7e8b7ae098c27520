"""Two real models that a fresh installation can serve, from packages of the Python index."""

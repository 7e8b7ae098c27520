"""The data plane: engines, workers, nodes. Plain Python: neither Django nor the database."""

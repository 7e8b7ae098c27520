"""The data plane: engines, workers and nodes. Plain Python; knows neither Django nor the database."""

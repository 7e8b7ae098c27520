"""What gateway, worker and node say to each other: immutable values with a JSON form."""

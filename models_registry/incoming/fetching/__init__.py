"""Files that the server fetches by itself, from addresses that users give."""

"""The HTTP API described by itself: an OpenAPI 3.1 document, made from the views and fields."""

"""/v1/files and /v1/batches as OpenAI has them."""

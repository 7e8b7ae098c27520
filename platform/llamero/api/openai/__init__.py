"""The OpenAI API: chat completions, completions, embeddings, models."""

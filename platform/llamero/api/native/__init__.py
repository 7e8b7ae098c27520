"""llama-server's own API: completion, embedding, tokens, templates, properties, slots, health."""

"""The playground: chats that are kept per user, and tries of embeddings and reranking."""

"""The playground's pages, and what they talk to."""

"""OpenAI's Responses API: turns made of items, kept for conversations that go on by id."""

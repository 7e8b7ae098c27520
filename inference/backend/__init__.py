"""What computes: llama.cpp behind a protocol, and a deterministic stand-in for tests."""

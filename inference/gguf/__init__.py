"""GGUF files seen from outside: read, judged and summed up before native code may touch them."""

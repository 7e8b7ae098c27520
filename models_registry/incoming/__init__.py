"""Files on their way into the registry: received or fetched, checked, and put together."""

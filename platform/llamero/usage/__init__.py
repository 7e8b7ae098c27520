"""What was used: the ledger, what it costs, and who is told of it."""

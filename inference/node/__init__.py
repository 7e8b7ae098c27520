"""The agent of one machine: keeps its replicas as the controller wants them."""

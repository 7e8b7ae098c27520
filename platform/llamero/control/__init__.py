"""The control plane at work: what should run becomes what runs, and lost jobs come to an end."""

"""What kills and stops parts of a running system, and counts what was promised and did not hold."""

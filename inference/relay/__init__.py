"""How jobs, events and heartbeats travel between gateway and replica, over Redis."""

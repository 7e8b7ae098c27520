"""Whether a process without a web server of its own lives and works, for whoever asks it."""

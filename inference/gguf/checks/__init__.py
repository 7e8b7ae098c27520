"""What must hold for a header to be loadable, one file per topic."""

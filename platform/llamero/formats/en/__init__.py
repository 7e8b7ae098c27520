"""English, which is all there is."""

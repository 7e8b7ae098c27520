"""Text on its way out of the model: whole characters, stop strings, templates."""

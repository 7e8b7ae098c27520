"""How values are written on pages: see FORMAT_MODULE_PATH."""

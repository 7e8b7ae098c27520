"""Run all parts of Llamero on one machine, in the foreground. Imports no Django."""

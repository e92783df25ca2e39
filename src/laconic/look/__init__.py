"""Ways to look at models: plots, tables and progress bars."""

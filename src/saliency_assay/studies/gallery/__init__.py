"""Studies that show the maps of a model side by side."""

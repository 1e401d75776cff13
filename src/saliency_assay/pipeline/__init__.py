"""Functions that the Snakefile and its rules call."""

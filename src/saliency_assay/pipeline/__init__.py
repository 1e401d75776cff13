"""What the Snakefile and its rules call."""

"""Export of tables as CSV and LaTeX."""

"""The report and the tables for a paper, computed from raw replicates."""

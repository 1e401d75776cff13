"""Report and tables for a paper, computed from raw replicates."""

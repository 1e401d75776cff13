"""What is shown: tables and figures, computed from raw replicates."""

"""Reliability of metrics: statistics, ranks, and their tables and figures."""

"""Studies of metrics of single maps."""

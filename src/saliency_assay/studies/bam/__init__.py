"""Studies of relative feature importance (BAM)."""

"""Studies that retrain on masked images (ROAR, IteROAR)."""

"""Download of public data sets."""

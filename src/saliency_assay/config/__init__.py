"""Configuration: models, checks and typed records."""

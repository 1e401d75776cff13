"""The configuration: reading, checking, and its records."""

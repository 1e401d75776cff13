"""Kinds of controls among the methods."""

LOWER_CONTROL, UPPER_CONTROL = "lower", "upper"
"""Values of ``Method.control``: a map without information, and a map that no other exceeds under some metrics."""
EQUAL = None
"""Value in ``Method.best_for`` of a parameter that must have the same value in method and metric."""

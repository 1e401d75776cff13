"""Shared parts of figures and pages: style, axes, legends, galleries."""

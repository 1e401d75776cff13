"""Synthetic images of objects and scenes."""

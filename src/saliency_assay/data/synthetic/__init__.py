"""Synthetic images of objects and scenes, in place of COCO and MiniPlaces."""

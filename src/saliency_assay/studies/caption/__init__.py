"""Studies of images with captions."""

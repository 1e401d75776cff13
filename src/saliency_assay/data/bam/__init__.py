"""BAM: COCO cut-outs composited onto MiniPlaces scenes."""

"""BAM's ten object classes, with COCO's names, and ten scene classes, with MiniPlaces' names (Yang and Kim 2019)."""

OBJECTS = ("backpack", "bird", "dog", "elephant", "kite", "pizza", "stop sign", "toilet", "truck", "zebra")

SCENES = (
    "bamboo_forest",
    "bedroom",
    "bowling_alley",
    "bus_interior",
    "cockpit",
    "corn_field",
    "laundromat",
    "runway",
    "ski_slope",
    "track",
)

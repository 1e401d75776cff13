"""BAM's ten objects, as COCO names them, and its ten scenes, as MiniPlaces does (Yang and Kim 2019)."""

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

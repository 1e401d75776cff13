"""Properties of attribution maps that metrics measure; heat maps group metrics by them.

The names follow Hedström et al. (2023), except for ``relative importance`` (Yang & Kim, 2019) and ``ground truth``.
"""

from collections.abc import Mapping
from types import MappingProxyType

FAITHFULNESS = "faithfulness"
LOCALIZATION = "localization"
GROUND_TRUTH = "ground truth"
RELATIVE_IMPORTANCE = "relative importance"
ROBUSTNESS = "robustness"
COMPLEXITY = "complexity"
RANDOMIZATION = "randomization"
OTHER = "other"

PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        GROUND_TRUTH: "does the map agree with the exact importance of the pixels?",
        FAITHFULNESS: "does the model's output change as the map predicts when pixels change?",
        LOCALIZATION: "is the attribution on the object?",
        RELATIVE_IMPORTANCE: "does the attribution differ between models or inputs as the known importance does?",
        ROBUSTNESS: "do similar images have similar maps?",
        COMPLEXITY: "is the attribution on few pixels?",
        RANDOMIZATION: "does the map depend on the weights of the model?",
        OTHER: "properties that the configuration does not name",
    }
)
"""The question that the metrics of each property answer, in the order of the heat maps."""
UNORDERED = (ROBUSTNESS, COMPLEXITY, RANDOMIZATION)
"""Properties that a degraded or random map can have to a higher degree than the map of a method."""

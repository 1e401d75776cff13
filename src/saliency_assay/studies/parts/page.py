"""Names of the columns of a parts study's table on its page."""

from collections.abc import Mapping
from types import MappingProxyType

HEADS: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": "accuracy of the model",
        "background_independence": "background independence of the model",
        "csdc": "CSDC",
        "preservation_check": "PC",
        "deletion_check": "DC",
        "distractibility": "D",
        "single_deletion": "SD",
        "target_sensitivity": "TS",
        **{name: name.capitalize() for name in ("completeness", "correctness", "contrastivity")},
    }
)

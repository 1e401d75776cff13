"""Labels of images as classes of a model, whose own classes are the settings ``classes`` (``classes.of_data``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.models.classes import of_data


def model_labels(data: Any, label: str, classes: Mapping[str, Any] | None = None) -> npt.NDArray[np.int64]:
    """Return the class in a model of each image of an open store, int64 ``[N]``: by default, that of the ``label``."""
    labels: npt.NDArray[np.int64] = data[f"label_{label}"][:]
    if classes is None:
        return labels
    indices, _ = of_data(data.attributes["classes"][label], classes)
    return np.asarray(indices, dtype=np.int64)[labels]


def model_class_names(data: Any, label: str, classes: Mapping[str, Any] | None = None) -> Sequence[str]:
    """Return the names of the classes of a model: by default, those of the ``label`` of an open store."""
    return of_data(data.attributes["classes"][label], classes)[1]

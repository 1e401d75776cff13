"""Labels of images as classes of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from saliency_assay.models.classes import of_data


def model_labels(
    data: Any, label: str, classes: Mapping[str, Any] | None = None
) -> tuple[npt.NDArray[np.int64], Sequence[str]]:
    """Return the class of each image in a model with the label ``label``, int64 ``[N]``, and the names of its classes.

    ``data`` is an open store. ``classes`` are the settings of a model with its own classes (``classes.of_data``); by
    default, it has those of the data.
    """
    indices, names = of_data(data.attributes["classes"][label], classes)
    labels: npt.NDArray[np.int64] = np.asarray(indices, dtype=np.int64)[data[f"label_{label}"][:]]
    return labels, names

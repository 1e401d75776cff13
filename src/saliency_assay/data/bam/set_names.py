"""Names of the sets of BAM's commonality series (Yang and Kim 2019, section 3.2).

The commonality k is the share of scene classes whose images all contain the object. The configuration imports this
module, so it has no heavy imports.
"""

import re
from collections.abc import Sequence

ROUNDING = 1e-3
"""Tolerance of k for the nearest whole number of classes; accepts thirds with three decimals."""


def set_names(commonality: Sequence[float], scenes: int) -> tuple[str, ...]:
    """Return the name of the set for each k in ``commonality``, in order, followed by that of the set without objects.

    ``os_kNN`` has the object in all images of the first NN = k · ``scenes`` scene classes (two digits or more);
    ``0s_k``, the last one, in no image. If ``commonality`` is empty, there are no sets.

    Raises:
        ValueError: a k is not in (0, 1], k · ``scenes`` is not a whole number, or a k occurs twice.
    """
    names: list[str] = []
    for k in commonality:
        if not 0 < k <= 1:
            raise ValueError(f"commonality: found {k:g}, expected more than 0 and at most 1")
        classes = round(k * scenes)
        if classes < 1 or abs(k - classes / scenes) > ROUNDING:
            raise ValueError(
                f"commonality: found {k:g}, which is {k * scenes:g} of {scenes} scene classes; expected a multiple "
                f"of {1 / scenes:.4g} up to 1"
            )
        name = f"os_k{classes:02d}"
        if name in names:
            raise ValueError(f"commonality: found {k:g} twice, expected each k once")
        names.append(name)
    return (*names, "0s_k") if names else ()


def set_label(member: str, common_object: str, scenes: int) -> str:
    """Return the label of a set of the series: the number of scene classes with the object.

    Raises:
        ValueError: ``member`` is not a set of the series.
    """
    if classes := classes_of(member):
        return f"{common_object} in {classes} of {scenes} scene classes"
    return f"scenes of the series without {common_object}"


def classes_of(member: str) -> int:
    """Return the number of scene classes with the object in the set ``member``: NN for ``os_kNN``, 0 for ``0s_k``.

    Raises:
        ValueError: ``member`` is not a set of the series.
    """
    match = re.fullmatch(r"os_k([0-9]{2,})|0s_k", member)
    if not match:
        raise ValueError(f"set {member!r}: expected os_kNN, NN the number of scene classes, or 0s_k")
    return int(match[1] or 0)

"""Names of BAM's sets of several commonalities k: the share of scene classes that have an object in all images.

Yang and Kim 2019, section 3.2. The configuration reads this module, so it imports nothing heavy.
"""

import re
from collections.abc import Sequence

ROUNDING = 1e-3
"""Tolerance of k from a whole number of classes: enough for thirds written with three decimals."""


def set_names(commonality: Sequence[float], scenes: int) -> tuple[str, ...]:
    """Names of the sets for each k of ``commonality``, in its order, and of the set without the object.

    ``os_kNN`` has the object in all images of the first NN = k · ``scenes`` scene classes, two digits or more;
    ``0s_k`` comes last and has it nowhere. No k, no sets.

    Raises:
        ValueError: a k that is not in (0, 1], is no whole number of the ``scenes`` classes, or comes twice.
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


def classes_of(member: str) -> int:
    """In how many scene classes, from the first on, the set ``member`` has the object: NN of ``os_kNN``, 0 of ``0s_k``.

    Raises:
        ValueError: the name of another set.
    """
    found = re.fullmatch(r"os_k([0-9]{2,})|0s_k", member)
    if not found:
        raise ValueError(f"set {member!r}: expected os_kNN, NN of the scene classes, or 0s_k")
    return int(found[1] or 0)

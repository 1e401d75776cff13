"""Parameters of masks: fills, transforms, and the arithmetic of τ, ρ, I and k; imports neither torch nor Pydantic."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any, Literal

from saliency_assay.registry.records import Parameter, short_repr, unknown, with_defaults

PROTOCOLS: Mapping[str, str] = {"iteroar": "IteROAR", "roar": "ROAR", "roar_lerf": "ROAR LeRF"}
"""Label of each protocol."""
OF_FIRST_MAPS = ("roar", "roar_lerf")
"""Protocols that take all masks from the maps of f_0."""
LEAST_FIRST = "roar_lerf"
"""The protocol that occludes the least important pixels first."""
Fill = Literal["zero", "mean", "linear"]
INTERPOLATED = "linear"
"""The fill that is interpolated from the pixels that no mask occludes."""
INTERPOLATE = "saliency_assay.studies.retrain.interpolation:interpolate"
"""The function of this fill, by reference, so that other fills do not depend on its code."""
FILLS: Mapping[str, str] = {"zero": "", "mean": "mean", INTERPOLATED: ""}
"""For each fill of occluded pixels, the array of its colors in a store of masks; empty if it needs none.

``zero`` and ``mean`` have one color per image. The fills of metrics are in ``metrics.fills``.
"""
GROWING = ("dilation", "convex_hull", "noise")
"""Mask transforms that may occlude all pixels, so that there is nothing to interpolate from."""
TOLERANCE = 1e-9  # deviation of ρ · 100 / (100 − τ) from an integer, because ρ and τ are rounded decimals

TRANSFORMS: Mapping[str, Mapping[str, Parameter]] = {
    "none": {},
    "dilation": {"radius": Parameter(1, minimum=0)},
    "erosion": {"radius": Parameter(1, minimum=0)},
    "convex_hull": {},
    "noise": {"share": Parameter(0.01, minimum=0, maximum=1)},
    "rotation": {"degrees": Parameter(180.0, minimum=0, maximum=180)},
    "transposition": {},
}
"""Kinds of mask transforms, each with its parameters."""


def transform_from(entry: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mask transform with all its parameters: ``kind`` and those of ``TRANSFORMS[kind]``.

    Raises:
        ValueError: a missing or unknown kind, an unknown parameter, or a value out of range.
    """
    settings = dict(entry)
    if "kind" not in settings:
        raise ValueError(f"transform.kind: missing, valid: {', '.join(TRANSFORMS)}")
    kind = settings.pop("kind")
    if not isinstance(kind, str) or kind not in TRANSFORMS:
        raise ValueError(f"transform.kind: {unknown('transform', kind, TRANSFORMS)}")
    parameters = TRANSFORMS[kind]
    for key in settings:
        if key not in parameters:
            raise ValueError(f"transform: {unknown('key', key, [*parameters, 'kind'])}")
    try:
        return {"kind": kind, **with_defaults(parameters, settings)}
    except ValueError as error:
        raise ValueError(f"transform.{error}") from None


def iterations(percentile: float, occluded: float) -> int:
    """Return I = ρ · 100 / (100 − τ), the number of masks of a share 1 − τ/100 that occlude a share ρ (section 3).

    Raises:
        ValueError: τ is outside (0, 100), ρ is outside (0, 1), or I is not an integer.
    """
    share = _share(percentile)
    count = _exact_number_between("occluded", occluded, 1) / share
    nearest = round(count)
    if nearest < 1 or abs(count - nearest) > TOLERANCE:
        expected = f"expected a multiple of {float(share):.12g}"
        raise ValueError(f"occluded: found {occluded:.12g} with percentile {percentile:.12g}, {expected}")
    return nearest


def pixels(area: int, percentile: float) -> int:
    """Return k = (1 − τ/100) · A, the pixels of a mask, rounded half up, at least one.

    The calculation uses the decimal representation of τ, so that floating-point error in 0.05 · A does not decide how
    a half is rounded.

    Raises:
        ValueError: τ is outside (0, 100).
    """
    return max(1, floor(_share(percentile) * area + Fraction(1, 2)))


def _share(percentile: float) -> Fraction:
    """Return 1 − τ/100."""
    return 1 - _exact_number_between("percentile", percentile, 100) / 100


def _exact_number_between(key: str, value: object, upper: int) -> Fraction:
    """Return ``value``, strictly between 0 and ``upper``, as the exact fraction of its decimal representation."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < upper:
        raise ValueError(f"{key}: found {short_repr(value)}, expected a number above 0 and below {upper}")
    return Fraction(str(value))

"""Parameters of masks: fills, transforms, and the arithmetic of τ, ρ, I and k; free of torch and Pydantic."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import Any, Literal

from saliency_assay.registry.records import Parameter, shown, unknown, with_defaults

Fill = Literal["zero", "mean"]
FILLS: Mapping[str, str] = {"zero": "", "mean": "mean"}
"""For each fill of occluded pixels the array of a store of masks that holds its colors; empty for black.

Each mask has one fill color. A fill of several colors, such as blurred pixels, needs a change of
``occluded.occlude``. The fills of metrics are in ``metrics.fills``.
"""
TOLERANCE = 1e-9  # how far ρ · 100 / (100 − τ) may be from a whole number: what decimals of ρ and τ leave

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


def transform_from(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a mask transform with all its parameters: ``kind``, and those of ``TRANSFORMS[kind]``.

    Raises:
        ValueError: no or an unknown kind, a parameter that it does not have, or a value out of range.
    """
    settings = dict(given)
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
    """I = ρ · 100 / (100 − τ): how many masks of the share 1 − τ/100 fill the share ρ of an image (section 3).

    Raises:
        ValueError: τ outside (0, 100), ρ outside (0, 1), or an I that is no whole number.
    """
    share = _share(percentile)
    count = _inside("occluded", occluded, 1) / share
    nearest = round(count)
    if nearest < 1 or abs(count - nearest) > TOLERANCE:
        expected = f"expected a multiple of {float(share):.12g}"
        raise ValueError(f"occluded: found {occluded:.12g} with percentile {percentile:.12g}, {expected}")
    return nearest


def pixels(area: int, percentile: float) -> int:
    """k: (1 − τ/100) · A pixels, half a pixel rounded up, at least one.

    Computed on the decimals that τ is written with: 0.05 · A has no float noise that would decide a half.

    Raises:
        ValueError: τ outside (0, 100).
    """
    return max(1, floor(_share(percentile) * area + Fraction(1, 2)))


def _share(percentile: float) -> Fraction:
    """1 − τ/100."""
    return 1 - _inside("percentile", percentile, 100) / 100


def _inside(key: str, value: object, upper: int) -> Fraction:
    """``value``, a number between 0 and ``upper`` and neither of them, as exactly as it is written."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < upper:
        raise ValueError(f"{key}: found {shown(value)}, expected a number above 0 and below {upper}")
    return Fraction(str(value))

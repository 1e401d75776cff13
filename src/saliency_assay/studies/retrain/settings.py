"""What the configuration may say of retraining and remasking; free of torch, so that the Snakefile can check it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite
from typing import Any

from saliency_assay.registry.records import Parameter, shown, unknown, with_defaults

KEYS = (
    "protocols",
    "fills",
    "percentile",
    "occluded",
    "reduction",
    "reductions",
    "transform",
    "leakage",
    "keep_maps",
    "shards",
)
PROTOCOLS = ("iteroar", "roar")
FILLS = ("zero", "mean")
REDUCTIONS = ("sum", "abs_sum", "abs_max", "positive_sum", "squared_sum", "visual")
TOLERANCE = 1e-9
"""How far ρ · 100 / (100 − τ) may be from a whole number: what decimals of ρ and τ leave."""

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

LEAKAGE: Mapping[str, Parameter] = {"repeats": Parameter(3, minimum=2)}


@dataclass(frozen=True)
class Retraining:
    """What a study of kind ``retrain`` does with each of its methods.

    ``protocols`` and ``fills`` are arms that are retrained each. ``percentile`` τ and ``occluded`` ρ are those of
    section 3 of IteROAR: a mask holds the share 1 − τ/100 of the pixels, all masks together at most ρ. ``reduction``
    turns maps into one value a pixel, unless ``reductions`` names another for the method. ``transform`` is a ``kind``
    of ``TRANSFORMS`` and its parameters. ``leak_iterations`` are the i of the D_i whose masks a classifier is trained
    on, ``repeats`` times each; none where leakage is not measured. ``keep_maps`` stores raw maps beside the masks. The
    images of one iteration are remasked in ``shards`` parts, by jobs of their own.
    """

    protocols: tuple[str, ...]
    fills: tuple[str, ...]
    percentile: float
    occluded: float
    reduction: str
    reductions: Mapping[str, str]
    transform: Mapping[str, Any]
    repeats: int
    leak_iterations: tuple[int, ...]
    keep_maps: bool = False
    shards: int = 1

    @property
    def iterations(self) -> int:
        """I: how many masks are made, one after another."""
        return iterations(self.percentile, self.occluded)

    def reduction_of(self, method: str) -> str:
        """The reduction of a method's maps."""
        return self.reductions.get(method, self.reduction)


def retraining_from(given: Mapping[str, Any]) -> Retraining:
    """The settings ``given``, keys of ``KEYS``, defaults for the rest.

    Raises:
        ValueError: a setting that does not exist, or a value that is not valid; the line begins with its key.
    """
    for key in given:
        if key not in KEYS:
            raise ValueError(unknown("parameter", key, KEYS))
    percentile, occluded = given.get("percentile", 95), given.get("occluded", 0.5)
    count = iterations(percentile, occluded)
    repeats, leak_iterations = _leakage(given.get("leakage", {}), count)
    return Retraining(
        protocols=_names("protocols", given.get("protocols", PROTOCOLS[:1]), PROTOCOLS),
        fills=_names("fills", given.get("fills", FILLS), FILLS),
        percentile=float(percentile),
        occluded=float(occluded),
        reduction=_reduction("reduction", given.get("reduction", "sum")),
        reductions={
            method: _reduction(f"reductions.{method}", name)
            for method, name in _mapping("reductions", given.get("reductions", {})).items()
        },
        transform=transform_from(given.get("transform", {"kind": "none"})),
        repeats=repeats,
        leak_iterations=leak_iterations if "leakage" in given else (),
        keep_maps=bool(given.get("keep_maps", False)),
        shards=int(given.get("shards", 1)),
    )


def transform_from(given: object) -> dict[str, Any]:
    """A mask transform with all its parameters: ``kind``, and those of ``TRANSFORMS[kind]``.

    Raises:
        ValueError: no mapping, no or an unknown kind, a parameter that it does not have, or a value out of range.
    """
    settings = dict(_mapping("transform", given))
    if "kind" not in settings:
        raise ValueError(f"transform.kind: missing, valid: {', '.join(TRANSFORMS)}")
    kind = settings.pop("kind")
    if not isinstance(kind, str) or kind not in TRANSFORMS:
        raise ValueError(f"transform.kind: {unknown('transform', kind, TRANSFORMS)}")
    return {"kind": kind, **_parameters("transform", TRANSFORMS[kind], settings)}


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{key}: found {shown(value)}, expected a number above 0 and below {upper}")
    if value <= 0:
        raise ValueError(f"{key}: found {value}, expected above 0")
    if value >= upper:
        raise ValueError(f"{key}: found {value}, expected below {upper}")
    return Fraction(str(value))


def _leakage(given: object, count: int) -> tuple[int, tuple[int, ...]]:
    """How often, and on the masks of which D_i, leakage is measured; by default of the first and the last."""
    settings = dict(_mapping("leakage", given))
    chosen = settings.pop("iterations", sorted({1, count}))
    repeats: int = _parameters("leakage", LEAKAGE, settings, ("iterations",))["repeats"]
    if not isinstance(chosen, list | tuple) or not chosen:
        raise ValueError(
            f"leakage.iterations: found {shown(chosen)}, expected a list of integers from 1 to {count}"
        )
    for number in chosen:
        if type(number) is not int or not 1 <= number <= count:
            raise ValueError(
                f"leakage.iterations: found {shown(number)}, expected integers from 1 to {count}"
            )
    _once("leakage.iterations", chosen)
    return repeats, tuple(sorted(chosen))


def _parameters(
    place: str, known: Mapping[str, Parameter], given: Mapping[str, Any], beside: Iterable[str] = ("kind",)
) -> dict[str, Any]:
    for key in given:
        if key not in known:
            raise ValueError(f"{place}: {unknown('key', key, [*known, *beside])}")
    try:
        return with_defaults(known, given)
    except ValueError as error:
        raise ValueError(f"{place}.{error}") from None


def _names(key: str, given: object, valid: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(given, list | tuple) or not given:
        raise ValueError(f"{key}: found {shown(given)}, expected a list of one or more of {', '.join(valid)}")
    for name in given:
        if name not in valid:
            raise ValueError(f"{key}: found {shown(name)}, valid: {', '.join(valid)}")
    _once(key, given)
    return tuple(given)


def _once(key: str, given: list[Any] | tuple[Any, ...]) -> None:
    for place, value in enumerate(given):
        if value in given[:place]:
            raise ValueError(f"{key}: found {shown(value)} twice, expected it once")


def _reduction(key: str, name: object) -> str:
    if not isinstance(name, str) or name not in REDUCTIONS:
        raise ValueError(f"{key}: found {shown(name)}, valid: {', '.join(REDUCTIONS)}")
    return name


def _mapping(key: str, given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"{key}: found {shown(given)}, expected a mapping")
    return given

"""Settings of a study of kind ``retrain``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import INTEGER, NUMBER, Distinct, OrAbsent, Positive, Settings
from saliency_assay.studies.retrain.parameters import (
    GROWING,
    INTERPOLATED,
    Fill,
    iterations,
    transform_from,
)

Protocol = Literal["iteroar", "roar", "roar_lerf"]
Reduction = Literal["sum", "abs_sum", "abs_max", "positive_sum", "squared_sum", "visual"]


class LeakageSettings(Settings):
    """Measurement of leakage, by classifiers that are trained on masks alone."""

    repeats: Annotated[int, Field(ge=2), INTEGER] = Field(
        3,
        description="Number of classifiers trained per seed on the images' labels, and of those on permuted labels.",
    )
    iterations: OrAbsent[Distinct[Positive]] = Field(
        None,
        min_length=1,
        description="The iterations i whose data sets D_i are tested; by default the first and the last.",
    )


class RetrainStudy(StudySettings):
    """Retraining of a model on images without their most salient pixels ([Retraining](retrain.md))."""

    kind: Literal["retrain"] = Field(description="The kind of study.")
    model: str = Field(
        description="The original model f_0. Every retrained model f_i has the settings and initial weights of f_0."
    )
    protocols: Distinct[Protocol] = Field(
        ("iteroar",),
        min_length=1,
        description="`iteroar` computes new maps for every f_i; `roar` uses the maps of f_0 for all iterations;"
        " `roar_lerf` also uses the maps of f_0, but occludes the least important pixels first.",
    )
    fills: Distinct[Fill] = Field(
        ("zero", "mean"),
        min_length=1,
        description="Fill of occluded pixels: black (`zero`), the mean color of the pixels under the mask (`mean`), or"
        " ROAD's noisy linear interpolation from the pixels that no mask occludes (`linear`).",
    )
    percentile: Annotated[float, Field(gt=0, lt=100), NUMBER] = Field(
        95, description="τ: an iteration occludes the pixels above this percentile of the map."
    )
    occluded: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.5,
        description="ρ: the share of the image that is occluded after all iterations; a multiple of 1 − τ/100.",
    )
    reduction: Reduction = Field("sum", description="[Reduction](metrics.md#reductions) of maps.")
    reductions: dict[str, Reduction] = Field(
        {}, description="Reductions of individual methods, by method name, instead of `reduction`."
    )
    transform: dict[Any, Any] = Field(
        {"kind": "none"},
        description="[Mask transform](retrain.md#mask-transforms) that reduces leakage: a `kind` and its parameters.",
    )
    keep_maps: bool = Field(False, description="Whether to store the maps in addition to the masks.")
    shards: Positive = Field(
        1,
        description="Number of [shards](retrain.md#shards) in which separate jobs compute the masks of an iteration.",
    )
    leakage: OrAbsent[LeakageSettings] = Field(
        None, description="Settings of [leakage](retrain.md#leakage); by default, leakage is not measured."
    )


@dataclass(frozen=True)
class Retraining:
    """Checked settings of a ``retrain`` study, the same for each of its methods.

    For each method, each combination of ``protocols`` and ``fills`` is an arm, with models retrained for it.
    ``percentile`` τ and ``occluded`` ρ are those of IteROAR, section 3: a mask has a share 1 − τ/100 of the pixels, all
    masks together at most ρ. ``reduction`` reduces maps to one value per pixel, unless ``reductions`` has another one
    for the method. ``transform`` is a ``kind`` of ``TRANSFORMS`` and its parameters. ``leak_iterations`` are the i of
    the D_i on whose masks classifiers are trained, ``repeats`` times each; empty if leakage is not measured.
    ``keep_maps`` is True to store raw maps in addition to the masks. The images of one iteration are remasked in
    ``shards`` separate jobs.
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
        """I, the number of consecutive masks."""
        return iterations(self.percentile, self.occluded)

    def reduction_of(self, method: str) -> str:
        """Return the reduction of a method's maps."""
        return self.reductions.get(method, self.reduction)


def retraining_from(study: RetrainStudy) -> Retraining:
    """Return the ``Retraining`` of a study's settings.

    Raises:
        ValueError: inconsistent settings; the message begins with the key.
    """
    count = iterations(study.percentile, study.occluded)
    transform = transform_from(study.transform)
    if INTERPOLATED in study.fills and transform["kind"] in GROWING:
        raise ValueError(
            f"fills: found {INTERPOLATED!r} with transform {transform['kind']!r}, which may leave no pixel to "
            "interpolate from; valid: zero, mean"
        )
    leak_iterations: tuple[int, ...] = ()
    if study.leakage:
        leak_iterations = tuple(sorted(study.leakage.iterations or {1, count}))
        if leak_iterations[-1] > count:
            raise ValueError(
                f"leakage.iterations: found {leak_iterations[-1]}, expected integers from 1 to {count}"
            )
    return Retraining(
        protocols=study.protocols,
        fills=study.fills,
        percentile=float(study.percentile),
        occluded=float(study.occluded),
        reduction=study.reduction,
        reductions=study.reductions,
        transform=transform,
        repeats=(study.leakage or LeakageSettings()).repeats,
        leak_iterations=leak_iterations,
        keep_maps=study.keep_maps,
        shards=study.shards,
    )

"""Settings of a study of kind ``retrain``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import INTEGER, NUMBER, Distinct, OrAbsent, Positive, Settings
from saliency_assay.studies.retrain.parameters import Fill, iterations, transform_from

Protocol = Literal["iteroar", "roar"]
Reduction = Literal["sum", "abs_sum", "abs_max", "positive_sum", "squared_sum", "visual"]


class LeakageSettings(Settings):
    """Classifiers trained on masks alone."""

    repeats: Annotated[int, Field(ge=2), INTEGER] = Field(
        3, description="Classifiers of masks per seed, and equally many with permuted labels."
    )
    iterations: OrAbsent[Distinct[Positive]] = Field(
        None,
        min_length=1,
        description="The i of the data sets D_i whose masks are tested; by default the first and the last.",
    )


class RetrainStudy(StudySettings):
    """Retraining of the model on images without the pixels that maps highlight."""

    kind: Literal["retrain"]
    model: str = Field(
        description="f_0; every f_i is trained with its settings, from the same initial weights."
    )
    protocols: Distinct[Protocol] = Field(
        ("iteroar",),
        min_length=1,
        description="`iteroar`: generate maps again for every f_i; `roar`: generate maps once, for f_0.",
    )
    fills: Distinct[Fill] = Field(
        ("zero", "mean"),
        min_length=1,
        description="Value of occluded pixels: black (`zero`), or the mean color of the pixels that the mask occludes "
        "(`mean`).",
    )
    percentile: Annotated[float, Field(gt=0, lt=100), NUMBER] = Field(
        95, description="τ; pixels with values above this percentile of a map are occluded."
    )
    occluded: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.5,
        description="ρ, the share of an image that is occluded after the last iteration; a multiple of 1 − τ/100.",
    )
    reduction: Reduction = Field("sum", description="Reduction of raw maps to one value per pixel.")
    reductions: dict[str, Reduction] = Field(
        {}, description="Reductions of individual methods, by the name of the method."
    )
    transform: dict[Any, Any] = Field(
        {"kind": "none"},
        description="Transform of every mask against leakage: a `kind` and its parameters "
        "([mask transforms](retrain.md#mask-transforms)).",
    )
    keep_maps: bool = Field(False, description="Store the raw maps of all images in addition to the masks.")
    shards: Positive = Field(
        1,
        description="Number of shards in which the images of an iteration are remasked, each by a separate job; a "
        "shard has at least 256 images.",
    )
    leakage: OrAbsent[LeakageSettings] = Field(
        None, description="Measure how accurately masks alone predict the class; not measured by default."
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
        transform=transform_from(study.transform),
        repeats=(study.leakage or LeakageSettings()).repeats,
        leak_iterations=leak_iterations,
        keep_maps=study.keep_maps,
        shards=study.shards,
    )

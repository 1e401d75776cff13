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
    """Classifiers that see masks alone."""

    repeats: Annotated[int, Field(ge=2), INTEGER] = Field(
        3, description="Classifiers of masks for each seed, and as many with labels at random."
    )
    iterations: OrAbsent[Distinct[Positive]] = Field(
        None,
        min_length=1,
        description="Data sets D_i whose masks are judged, by i; by default the first and the last.",
    )


class RetrainStudy(StudySettings):
    """Occludes the pixels that maps point at and trains the model anew."""

    kind: Literal["retrain"]
    model: str = Field(description="f_0; every f_i is trained as it is, from the same initial weights.")
    protocols: Distinct[Protocol] = Field(
        ("iteroar",),
        min_length=1,
        description="Whether maps are generated anew of every f_i (`iteroar`), or once of f_0 (`roar`).",
    )
    fills: Distinct[Fill] = Field(
        ("zero", "mean"),
        min_length=1,
        description="Value of occluded pixels: black, or the mean of the pixels just occluded.",
    )
    percentile: Annotated[float, Field(gt=0, lt=100), NUMBER] = Field(
        95, description="τ; a map's values above it are occluded."
    )
    occluded: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.5,
        description="ρ, the share of an image that is occluded after the last iteration, a multiple of 1 − τ/100.",
    )
    reduction: Reduction = Field("sum", description="From raw maps to one value a pixel.")
    reductions: dict[str, Reduction] = Field({}, description="Another reduction for some methods, by name.")
    transform: dict[Any, Any] = Field(
        {"kind": "none"},
        description="Transform of every mask against leaks, a `kind` and its parameters "
        "([mask transforms](retrain.md#mask-transforms)).",
    )
    keep_maps: bool = Field(False, description="Store the raw maps of all images beside the masks.")
    shards: Positive = Field(
        1,
        description="Shards in which the images of an iteration are remasked, each by a job of its own; each has 256 "
        "images or more.",
    )
    leakage: OrAbsent[LeakageSettings] = Field(
        None, description="Measure how far masks alone predict the class; absent, it is not measured."
    )


@dataclass(frozen=True)
class Retraining:
    """Protocol of a ``retrain`` study, the same for each of its methods.

    Each combination of ``protocols`` and ``fills`` is an arm with its own retraining. ``percentile`` τ and ``occluded``
    ρ are those of section 3 of IteROAR: a mask has the share 1 − τ/100 of the pixels, all masks together at most ρ.
    ``reduction`` reduces maps to one value per pixel, unless ``reductions`` has another one for the method.
    ``transform`` is a ``kind`` of ``TRANSFORMS`` and its parameters. ``leak_iterations`` are the i of the D_i on whose
    masks classifiers are trained, ``repeats`` times each; empty if leakage is not measured. ``keep_maps`` stores raw
    maps beside the masks. The images of one iteration are remasked in ``shards`` separate jobs.
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

"""Settings of a study of kind ``bam``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import Distinct, OrAbsent, Positive, Settings


class IndependenceSettings(Settings):
    """Measurement of [IIR](metrics.md#iir)."""

    model: str = Field(description="The model that is explained. In the paper, it is trained on `NAME_0s`.")
    images: Positive = Field(
        300,
        description="Maximum number of test images that are measured; all of them contain the common object.",
    )


class BamStudy(StudySettings):
    """Comparison of two models that are trained on the same images, one on object labels and one on scene labels."""

    kind: Literal["bam"] = Field(description="The kind of study.")
    data: str = Field(description="An entry under `data` of kind `bam` or `synthetic`, here called `NAME`.")
    object_model: str = Field(description="f_o, the model trained on the object labels of `NAME_os`.")
    scene_model: str = Field(description="f_s, the model trained on the scene labels of `NAME_os`.")
    robustness: Distinct[Literal["scale", "location"]] = Field(
        (),
        description="Variants of `NAME_os` on which MCS and IDR are also measured: objects of other sizes (`scale`) or "
        "at other locations (`location`).",
    )
    series: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=2,
        description="Models of the [commonality series](bam.md#commonality-series), in order of increasing k up to 1. "
        "Each is trained on the scene labels of one set `NAME_os_kNN`.",
    )
    independence: OrAbsent[IndependenceSettings] = Field(
        None,
        description="Settings of IIR; by default, IIR is not measured.",
    )
    concepts: bool = Field(
        False, description="Whether to measure TCAV, with the common object as the concept."
    )


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"

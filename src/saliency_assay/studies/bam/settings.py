"""Settings of a study of kind ``bam``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import Distinct, OrAbsent, Positive, Settings


class IndependenceSettings(Settings):
    """Images with patches that do not change the model's output, for IIR."""

    model: str = Field(description="The model; the paper's is trained on `NAME_0s`.")
    images: Positive = Field(
        300,
        description="Maximum number of test images with the common object to change.",
    )


class BamStudy(StudySettings):
    """Comparison of two models of the same images, one trained on object labels and one on scene labels."""

    kind: Literal["bam"]
    data: str = Field(description="A data entry of kind `bam` or `synthetic`.")
    object_model: str = Field(description="f_o, trained on the object labels of `NAME_os`.")
    scene_model: str = Field(description="f_s, trained on the scene labels of `NAME_os`.")
    robustness: Distinct[Literal["scale", "location"]] = Field(
        (),
        description="Variants of `NAME_os` on which MCS and IDR are also measured, with other sizes or locations of "
        "the objects.",
    )
    series: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=2,
        description="Models trained on the scene labels of `NAME_os_kNN`, in order of increasing k up to 1. The larger "
        "k, the less a model depends on the common object.",
    )
    independence: OrAbsent[IndependenceSettings] = Field(
        None,
        description="Measure IIR: whether maps change if a change of the image does not change the model's output.",
    )
    concepts: bool = Field(False, description="Measure TCAV of the common object.")


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"

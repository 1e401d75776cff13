"""Settings of a study of kind ``bam``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import Distinct, OrAbsent, Positive, Settings


class IndependenceSettings(Settings):
    """Images that are changed without an effect on the model's output, for IIR."""

    model: str = Field(description="The model; the paper's is trained on `NAME_0s`.")
    images: Positive = Field(
        300,
        description="Test images to change, of those with the common object; at most those there are.",
    )


class BamStudy(StudySettings):
    """Compares two models of the same images: one trained on object labels, one on scene labels."""

    kind: Literal["bam"]
    data: str = Field(description="A data entry of kind `bam` or `synthetic`.")
    object_model: str = Field(description="f_o, trained on the object labels of `NAME_os`.")
    scene_model: str = Field(description="f_s, trained on the scene labels of `NAME_os`.")
    robustness: Distinct[Literal["scale", "location"]] = Field(
        (),
        description="Variants of `NAME_os` on which MCS and IDR are measured as well, with other sizes or places of "
        "the objects.",
    )
    series: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=2,
        description="Models of the scene labels of `NAME_os_kNN`, k growing to 1, whose dependence on the common "
        "object falls.",
    )
    independence: OrAbsent[IndependenceSettings] = Field(
        None,
        description="Measure IIR, whether maps change where a change of the image leaves the model's output as it is.",
    )
    concepts: bool = Field(False, description="Measure TCAV of the common object.")


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"

"""Settings of a study of kind ``validity``."""

from typing import Annotated, Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import INTEGER, NUMBER, Distinct, OrAbsent

Degradation = Literal["noise", "shuffle", "removal", "blur"]
DEGRADATIONS: tuple[Degradation, ...] = ("noise", "shuffle", "removal", "blur")
Count = Annotated[int, Field(ge=1, le=1000), INTEGER]
Size = Annotated[float, Field(gt=0), NUMBER]
SmallAndLarge = Annotated[list[Size], Field(min_length=2, max_length=2)]


class ValidityStudy(StudySettings):
    """Validity and reliability of metrics on the maps of one model."""

    kind: Literal["validity"] = Field(description="The kind of study.")
    model: str = Field(description="The model whose maps are scored, on the data set that it is trained on.")
    metrics: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=1,
        description="Entries under `metrics`, or registered metrics; by default all entries that score single maps.",
    )
    images: Count = Field(
        50,
        description="Number of explained images on which degraded maps, changed models and changed images are scored.",
    )
    degraded_methods: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=1,
        description="Methods of the study whose maps are degraded; by default all that use the model.",
    )
    degradations: Distinct[Degradation] = Field(
        DEGRADATIONS,
        description="Ways to degrade maps ([known order](validity.md#known-order)); `[]` for none.",
    )
    levels: Annotated[int, Field(ge=2, le=20), INTEGER] = Field(
        5, description="Number of degraded maps of each kind, in addition to the original."
    )
    iterations: Annotated[int, Field(ge=0, le=100), INTEGER] = Field(
        3,
        description="Repetitions of the [meta-consistency](validity.md#meta-consistency) tests; 0 for none.",
    )
    perturbations: Count = Field(5, description="Changed models, and changed images, of each repetition (K).")
    model_noise: SmallAndLarge = Field(
        [0.001, 2.0],
        description="Standard deviation of the factors of mean 1 by which all weights are multiplied: small and large.",
    )
    input_noise: SmallAndLarge = Field(
        [0.001, 5.0],
        description="Largest absolute value of the uniform noise that is added to pixels in [0, 1]: small and large.",
    )

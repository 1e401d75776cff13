"""Settings of a study of kind ``fidelity``."""

from typing import Annotated, Literal

from pydantic import Field

from saliency_assay.config.records import BaselineSubset
from saliency_assay.config.settings import StudySettings
from saliency_assay.registry.settings import NUMBER, Distinct, Number, OrAbsent

Alpha = Annotated[float, Field(le=1), NUMBER]
Correlation = Annotated[float, Field(ge=-1, le=1), NUMBER]


class FidelityStudy(StudySettings):
    """Scores of the maps of one model."""

    kind: Literal["fidelity"]
    model: str = Field(description="The model whose maps are scored, on the set that it was trained on.")
    metrics: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=1,
        description="Names under `metrics`, or of registered metrics; by default all under `metrics` that score "
        "single maps.",
    )
    printed: dict[str, dict[str, Number]] = Field(
        {},
        description="Values that a paper reports, to compare with the study's means: for a method, values by score "
        "([tables](metrics.md#tables)).",
    )
    printed_alpha: dict[str, Annotated[dict[BaselineSubset, Alpha], Field(min_length=1)]] = Field(
        {},
        description="Values that a paper reports of α of a score's rankings, `with` and `without` baselines "
        "([reliability](reliability.md)).",
    )
    printed_correlation: dict[str, dict[str, dict[str, Correlation]]] = Field(
        {},
        description="Values that a paper reports of Spearman's ρ between two scores, by method "
        "([reliability](reliability.md)).",
    )

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

    kind: Literal["fidelity"] = Field(description="The kind of study.")
    model: str = Field(description="The model whose maps are scored, on the data set that it is trained on.")
    metrics: OrAbsent[Distinct[str]] = Field(
        None,
        min_length=1,
        description="Entries under `metrics`, or registered metrics; by default all entries that score single maps.",
    )
    printed: dict[str, dict[str, Number]] = Field(
        {},
        description="Printed values, to compare with the means of the study: `{METHOD: {SCORE: value}}` "
        "([names of scores](metrics.md#tables)).",
    )
    printed_alpha: dict[str, Annotated[dict[BaselineSubset, Alpha], Field(min_length=1)]] = Field(
        {},
        description="Printed values of Krippendorff's α, with and without baseline methods: "
        "`{SCORE: {with: value, without: value}}` ([example](reliability.md#comparison-with-printed-values)).",
    )
    printed_correlation: dict[str, dict[str, dict[str, Correlation]]] = Field(
        {},
        description="Printed values of Spearman's ρ between two scores: `{SCORE: {SCORE: {METHOD: value}}}` "
        "([example](reliability.md#comparison-with-printed-values)).",
    )

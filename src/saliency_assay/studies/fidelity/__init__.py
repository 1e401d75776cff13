"""Fidelity of maps to their model: scores of single maps under the study's metrics."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

FIDELITY = StudyKind(
    "fidelity",
    "Fidelity",
    "Are the maps faithful to the model's output? Metrics that score single maps.",
    settings="saliency_assay.studies.fidelity.settings:FidelityStudy",
    read="saliency_assay.studies.fidelity.read:read_study",
    inputs="saliency_assay.studies.fidelity.pipeline:FidelityInputs",
    params="saliency_assay.studies.fidelity.pipeline:FidelityParams",
    outputs=(
        Outputs(("summary",), ("{metric}_{figure}.svg",)),
        Outputs(figures=("infidelity_sensitivity.svg",), option="scatter"),
        Outputs(figures=("scores.html",)),
    ),
    mask_question="Do the maps highlight the object that the model was trained to classify? Metrics that score single "
    "maps.",
    rated_scores="saliency_assay.studies.fidelity.rated_scores:rated_scores",
    printed_table="summary",
)

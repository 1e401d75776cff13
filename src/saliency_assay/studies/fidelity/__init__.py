"""Fidelity of single maps to their model, by the study's metrics."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

FIDELITY = StudyKind(
    "fidelity",
    "Do maps say what the model answers? Metrics of single maps, image by image.",
    settings="saliency_assay.studies.fidelity.settings:FidelityStudy",
    read="saliency_assay.studies.fidelity.read:read_study",
    inputs="saliency_assay.studies.fidelity.pipeline:FidelityInputs",
    params="saliency_assay.studies.fidelity.pipeline:FidelityParams",
    outputs=(
        Outputs(("summary",), ("{metric}_{figure}.svg",)),
        Outputs(figures=("infidelity_sensitivity.svg",), option="scatter"),
        Outputs(figures=("scores.html",)),
    ),
    mask_question="Do maps lie on the object that the model was trained to name? Metrics of single maps, image by"
    " image.",
    rated_scores="saliency_assay.studies.fidelity.rated_scores:rated_scores",
    printed_table="summary",
)

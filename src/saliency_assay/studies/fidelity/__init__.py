"""Fidelity of maps to their model: scores of single maps under the study's metrics."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

FIDELITY = StudyKind(
    "fidelity",
    "Fidelity",
    "Do maps identify the pixels on which the model's output depends? Metrics score the map of each image.",
    settings="saliency_assay.studies.fidelity.fidelity_study:FidelityStudy",
    inputs="saliency_assay.studies.fidelity.pipeline:FidelityInputs",
    params="saliency_assay.studies.fidelity.pipeline:FidelityParams",
    outputs=(
        Outputs(("summary",), ("{metric}_{figure}.svg",)),
        Outputs(figures=("infidelity_sensitivity.svg",), option="scatter"),
        Outputs(figures=("scores.html",)),
    ),
    mask_question="Do maps lie on the object that the model was trained to recognize? Metrics score the map of each"
    " image.",
    mixed_question="Do maps lie on the object, and on the pixels on which the model's output depends? Metrics score the"
    " map of each image.",
    rated_scores="saliency_assay.studies.fidelity.rated_scores:rated_scores",
    takes_stored_maps=True,
    printed_table="summary",
)

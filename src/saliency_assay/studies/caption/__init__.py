"""Caption study: the half of an image with a caption that maps highlight (Yeh et al., 2019, section 5)."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

CAPTION = StudyKind(
    "caption",
    "Captions",
    "Do maps highlight the half of an image that the model uses, the picture or its caption?"
    " (Yeh et al., 2019, section 5, Table 3)",
    settings="saliency_assay.studies.caption.caption_study:CaptionStudy",
    inputs="saliency_assay.studies.caption.pipeline:CaptionInputs",
    params="saliency_assay.studies.caption.pipeline:CaptionParams",
    outputs=(Outputs(("premise", "table"), ("caption.html", "infidelity.svg", "attribution.svg")),),
    metrics=("infidelity_halves", "block_attribution"),
    rated_scores="saliency_assay.studies.caption.rated_scores:rated_scores",
    variants="models",
    latex="saliency_assay.studies.caption.latex_tables:latex_tables",
    answer="saliency_assay.studies.caption.caption_tables:answer",
    summary_tables=("table",),
)

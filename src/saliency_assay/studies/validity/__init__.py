"""Validity of metrics: does a metric's score follow a known order of maps, and known changes of model and image?"""

from saliency_assay.registry.study_kind import Outputs, StudyKind

VALIDITY = StudyKind(
    "validity",
    "Validity of metrics",
    "Which metrics can be trusted? Each is compared with a known order of degraded maps, and tested by small and large"
    " changes of the model and the image (Zheng et al., 2025; Hedström et al., 2023).",
    settings="saliency_assay.studies.validity.validity_study:ValidityStudy",
    inputs="saliency_assay.studies.validity.pipeline:ValidityInputs",
    params="saliency_assay.studies.validity.pipeline:ValidityParams",
    on_device=("score_validity",),
    outputs=(
        Outputs(
            ("recommendations", "known_order", "meta_consistency", "baselines", "settings_pairs"),
            ("validity.svg", "validity.html"),
        ),
    ),
    rated_scores="saliency_assay.studies.fidelity.rated_scores:rated_scores",
)

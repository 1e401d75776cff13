"""Importance of parts: FunnyBirds' protocols (Hesse et al., 2023) on synthetic birds."""

from saliency_assay.registry.directions import HIGHER
from saliency_assay.registry.properties import FAITHFULNESS
from saliency_assay.registry.study_kind import Outputs, RatingScore, StudyKind


def _score(name: str, label: str, summary: str) -> RatingScore:
    return RatingScore(name, label, HIGHER, summary, FAITHFULNESS, (0.0, 1.0))


PARTS = StudyKind(
    "parts",
    "Parts",
    "Do maps find the parts of an object on which the model's output depends? Images are rendered again without parts"
    " (FunnyBirds: Hesse et al., 2023).",
    settings="saliency_assay.studies.parts.parts_study:PartsStudy",
    inputs="saliency_assay.studies.parts.pipeline:PartsInputs",
    params="saliency_assay.studies.parts.pipeline:PartsParams",
    on_device=("evaluate_interventions", "score_parts"),
    outputs=(Outputs(("protocols", "summary"), ("protocols.svg", "protocols.html")),),
    scores=(
        _score(
            "part_completeness",
            "Completeness",
            "mean of distractibility and of the mean of the controlled synthetic data check, the preservation check and"
            " the deletion check",
        ),
        _score(
            "csdc",
            "Controlled synthetic data check",
            "largest share of a set of parts that is sufficient for the class among the important parts",
        ),
        _score(
            "preservation_check",
            "Preservation check",
            "share of images with the same prediction if only the important parts remain",
        ),
        _score(
            "deletion_check",
            "Deletion check",
            "share of images with another prediction if the important parts are removed",
        ),
        _score(
            "distractibility",
            "Distractibility",
            "share of the parts and objects without effect on the output that are not important",
        ),
        _score(
            "single_deletion",
            "Single deletion (correctness)",
            "rank correlation of the importance of parts with the decrease of the logit without them, from 0 to 1",
        ),
        _score(
            "target_sensitivity",
            "Target sensitivity (contrastivity)",
            "share of comparisons in which the parts shared with a class are more important in the map of that class",
        ),
    ),
    rated_scores="saliency_assay.studies.parts.rated_scores:rated_scores",
    rule_labels={"score_parts": "FunnyBirds' protocols"},
    printed_table="summary",
)

"""Networks designed by hand: methods and metrics against the exact importance of pixels."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

DESIGNED = StudyKind(
    "designed",
    "Designed networks",
    "How close are maps to the exact importance of pixels, which is known for networks with weights set by hand, and"
    " which metrics rank the exact map first?",
    settings="saliency_assay.studies.designed.designed_study:DesignedStudy",
    params="saliency_assay.studies.designed.pipeline:DesignedParams",
    outputs=(
        Outputs(
            ("method_truth", "metric_truth"), ("method_truth.svg", "metric_truth.svg", "truth_tables.html")
        ),
    ),
    answer="saliency_assay.studies.designed.designed_tables:answer",
    summary_tables=("method_truth", "metric_truth"),
)

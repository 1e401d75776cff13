"""BAM study: two models trained on different labels of the same images (Yang & Kim, 2019)."""

from saliency_assay.registry.study_kind import Outputs, StudyKind

BAM = StudyKind(
    "bam",
    "BAM",
    "Do maps show what the model relies on? Objects are pasted into scenes, so the relevant pixels are known: one model"
    " is trained on object labels, another on scene labels (BAM: Yang & Kim, 2019).",
    settings="saliency_assay.studies.bam.bam_study:BamStudy",
    inputs="saliency_assay.studies.bam.pipeline:BamInputs",
    params="saliency_assay.studies.bam.pipeline:BamParams",
    on_device=("optimize_patch", "score_concepts"),
    outputs=(
        Outputs(
            ("premise", "metrics", "ranking", "claims"),
            ("premise.html", "mcs.svg", "idr.svg", "metrics.html", "ranking.html", "claims.html"),
        ),
        Outputs(
            ("commonality", "series", "correlation"),
            ("commonality.html", "series.svg", "series_maps.png"),
            option="series",
        ),
        Outputs(("concepts",), ("concepts.svg", "concepts.html"), option="concepts"),
        Outputs(
            ("independence", "deltas"),
            (
                *("iir.svg", "iir_difference.svg", "delta.png", "convergence.svg", "independence.html"),
                "pairs.png",
            ),
            option="independence",
        ),
    ),
    metrics=("mcs", "idr", "iir"),
    rated_scores="saliency_assay.studies.bam.rated_scores:rated_scores",
    sub_variants={"scale": "(other object sizes)", "location": "(other object positions)"},
    method_labels={"tcav": "TCAV"},
    rule_labels={
        **{"score_bam": "MCS and IDR", "score_series": "Commonality series"},
        "score_independence": "IIR",
    },
    class_label="scene",  # MCS, IDR and IIR all use the model trained on scene labels
    latex="saliency_assay.studies.bam.latex_tables:latex_tables",
    notes="saliency_assay.studies.bam.claims:notes",
    summary_tables=("claims",),
)

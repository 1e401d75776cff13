"""Retrain study: retraining on occluded images, by ROAR (Hooker et al., 2019) and IteROAR."""

from saliency_assay.registry.directions import HIGHER, LOWER
from saliency_assay.registry.properties import FAITHFULNESS
from saliency_assay.registry.study_kind import Outputs, RatingScore, StudyKind

RETRAIN = StudyKind(
    "retrain",
    "Retraining",
    "How much accuracy does a model lose if it is retrained without the pixels that a map highlights?"
    " (ROAR: Hooker et al., 2019; IteROAR)",
    settings="saliency_assay.studies.retrain.retrain_study:RetrainStudy",
    inputs="saliency_assay.studies.retrain.pipeline:RetrainInputs",
    params="saliency_assay.studies.retrain.pipeline:RetrainParams",
    on_device=("remask", "retrain", "measure_mask_leakage"),
    outputs=(
        Outputs(
            ("summary", "rank_agreement"),
            (
                *("accuracy.svg", "overlap.svg", "summary.html"),
                *("{protocol}_{fill}/matrices.svg", "{protocol}_{fill}/images.html"),
            ),
        ),
        Outputs(("leakage",), ("leakage.svg", "leakage.html"), option="leakage"),
    ),
    scores=(
        RatingScore(
            "accuracy",
            "Accuracy after retraining",
            LOWER,  # important pixels are occluded
            "test accuracy of a model that is retrained without the pixels that a method highlights",
            FAITHFULNESS,
            (0.0, 1.0),
        ),
        RatingScore(
            "accuracy_lerf",
            "Accuracy after retraining, least important pixels first",
            HIGHER,  # unimportant pixels are occluded
            "test accuracy of a model that is retrained without the pixels that a method ranks lowest",
            FAITHFULNESS,
            (0.0, 1.0),
        ),
    ),
    rated_scores="saliency_assay.studies.retrain.rated_scores:rated_scores",
    sub_variants={
        "roar/(.+) iteration (.+)": "(ROAR, {} fill, iteration {})",
        "roar_lerf/(.+) iteration (.+)": "(ROAR LeRF, {} fill, iteration {})",
        "iteroar/(.+) iteration (.+)": "(IteROAR, {} fill, iteration {})",
    },
    retrains_models=True,
    explains_all_images=True,
    latex="saliency_assay.studies.retrain.latex_tables:latex_tables",
    cautions="saliency_assay.studies.retrain.cautions:cautions",
    summary_tables=("leakage",),
)

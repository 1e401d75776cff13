"""Labels of scores, of their variants, and of keys without a label."""

import pytest

from saliency_assay.metrics import METRICS
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies import STUDY_KINDS

LABELS = Labels(
    methods={"gradient_x_input": "Gradient × Input"},
    models={"f_o": "Object model", "f_s": "Scene model"},
    scores={score.name: score.label for metric in METRICS for score in metric.scores}
    | {score.name: score.label for kind in STUDY_KINDS.values() for score in kind.scores},
    entry_scores={metric.name: {score.name: score.label for score in metric.scores} for metric in METRICS}
    | {
        "infidelity_square": {"infidelity": "INFD (squares)"},
        "aopc_mean": {"aopc_morf": "AOPC (MoRF, mean fill)"},
    },
    sub_variants={metric.name: metric.sub_variants for metric in METRICS if metric.sub_variants}
    | {"aopc_mean": {"L=(.+)": "(L = {})"}}
    | {"": {pattern: text for kind in STUDY_KINDS.values() for pattern, text in kind.sub_variants.items()}},
)


@pytest.mark.parametrize(
    ("score", "variant", "label"),
    [
        ("aopc_morf", "aopc L=40", "AOPC (MoRF, L = 40)"),
        ("aopc_morf", "aopc_mean L=40", "AOPC (MoRF, mean fill, L = 40)"),
        (
            "randomization_ssim",
            "randomization independent 3 layer1.0.conv2",
            "SSIM after randomizing layer1.0.conv2",
        ),
        ("infidelity", "infidelity_square f_o", "INFD (squares, Object model)"),
        ("infidelity", "", "INFD"),
        ("mcs", "mcs scale", "MCS (other object sizes)"),
        (
            "accuracy",
            "iteroar/mean iteration 2",
            "Accuracy after retraining (IteROAR, mean fill, iteration 2)",
        ),
        ("deletion", "deletion of my own", "Deletion (of my own)"),
    ],
)
def test_scores_and_their_variants(score: str, variant: str, label: str) -> None:
    assert LABELS.score(score, variant) == label


@pytest.mark.parametrize(
    ("entry", "sub_variant", "label"),
    [
        ("aopc", "L=40", "L = 40"),
        ("randomization", "independent 2 fc", "after randomizing fc"),
        ("deletion", "some", "some"),
        ("deletion", "", ""),
    ],
)
def test_a_sub_variant_alone(entry: str, sub_variant: str, label: str) -> None:
    assert LABELS.sub_variant(entry, sub_variant) == label


def test_entries() -> None:
    assert LABELS.method("gradient_x_input") == "Gradient × Input"
    assert LABELS.model("f_o, f_s") == "Object model, Scene model"


def test_without_labels_keys_are_names() -> None:
    assert (UNLABELED.method("grad_cam"), UNLABELED.model("f_o")) == ("grad_cam", "f_o")
    assert (UNLABELED.data_set("d"), UNLABELED.study("s")) == ("d", "s")
    assert UNLABELED.score("mcs", "mcs") == "mcs"
    assert UNLABELED.score("aopc_morf", "aopc L=20") == "aopc_morf aopc L=20"

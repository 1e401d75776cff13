"""Typical mistakes of new users are one line that names the remedy."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.api.networks import _hint
from saliency_assay.models.classifier import Classifier

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.random((4, 3, 12, 12)).astype(np.float32)
TARGETS = np.arange(4)
MAPS = RANDOM.normal(size=IMAGES.shape).astype(np.float32)
NORMALIZATION: dict[str, Any] = {"mean": [0.5] * 3, "std": [0.25] * 3}


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 144, 4))


def wrapped() -> Classifier:
    return saliency_assay.wrap(network(), classes=4, **NORMALIZATION)


def moved(destination: Any) -> Classifier:
    model = wrapped()
    model.network.to(destination)
    return model


NHWC = IMAGES.transpose(0, 2, 3, 1)
CALLS: list[tuple[dict[str, Any], str]] = [
    ({"targets": TARGETS.astype(float)}, r"targets: .*: np\.asarray\(targets, int\)"),
    ({"targets": torch.tensor(TARGETS).float()}, r"targets: .*: targets\.long\(\)"),
    ({"targets": np.eye(4)}, r"targets: .*: targets\.argmax\(1\)"),
    ({"targets": TARGETS[:, None]}, r"targets: .*: targets\[:, 0\]"),
    ({"targets": ["cat"] * 4}, "targets: .*expected an integer class for each of 4 images, or one for all"),
    ({"targets": None}, "targets: found NoneType .*expected an integer class"),
    ({"targets": [0, 1, 2, 4]}, "targets: found class 4, expected 0 to 3"),
    ({"images": NHWC}, r"images: .*channels last.*np\.transpose\(images, \(0, 3, 1, 2\)\)"),
    ({"images": torch.tensor(NHWC)}, r"images: .*channels last.*images\.permute\(0, 3, 1, 2\)"),
    ({"images": NHWC[0]}, r"images: .*channels last.*np\.transpose\(images, \(2, 0, 1\)\).*\[None\]"),
    ({"images": IMAGES[0]}, r"images: .*images\[None\]"),
    ({"images": IMAGES[:, 0]}, r"images: .*images\[:, None\]"),
    ({"images": IMAGES * 255}, "images: .*divide .* by 255"),
    ({"images": (IMAGES * 255).astype(np.int64)}, "images: found int64 .*to uint8"),
    ({"images": (IMAGES - 0.485) / 0.229}, r"images: .*images \* std \+ mean.*saliency_assay\.wrap"),
    ({"images": np.where(IMAGES > 0.5, np.nan, IMAGES)}, "images: .*NaN"),
    ({"images": [IMAGES[0], IMAGES[1, :, :6]]}, "images: found arrays of different shapes"),
    ({"images": IMAGES[:0], "targets": []}, r"images: found float32 \[0, 3, 12, 12\]"),
    ({"images": IMAGES[:, :1]}, r"images: found \[4, 1, 12, 12\], expected 3 channels.*repeat the channel"),
    ({"images": IMAGES[:, :, :8]}, r"model: does not take images \[1, 3, 8, 12\]"),
    ({"model": network().half()}, r"network: found weights of torch\.float16.*network\.float\(\)"),
    ({"model": wrapped().half()}, r"model: found the mean in torch\.float16.*model\.float\(\)"),
    ({"model": moved(torch.float64)}, r"model: .*found weights of torch\.float64: network\.float\(\)"),
    ({"model": network().to("meta")}, "model: found weights on meta"),
    ({"model": moved("meta")}, "model: found weights on meta"),
    ({"model": network().state_dict()}, r"model: found OrderedDict.*network\.load_state_dict"),
    ({"model": nn.Linear}, "model: found the class Linear"),
    ({"model": lambda images: images.flatten(1)}, "gradient: found a function.*occlusion or rise"),
    ({"method": "saliency"}, "unknown method 'saliency'; did you mean 'gradient' or 'sensitivity'"),
    ({"method": "Deletion AUC"}, "method: found the metric 'Deletion AUC', which saliency_assay"),
    ({"method": "deletion"}, r"method: found the metric 'deletion', which saliency_assay\.score"),
    ({"method": "gradcam", "model": network()}, r"gradcam: needs saliency_assay\.wrap\(…, cam_layer=…\)"),
    (
        {"method": "ig", "n_steps": 9},
        "integrated_gradients: unknown parameter 'n_steps'; did you mean 'steps'",
    ),
    (
        {"method": "ig", "baseline": IMAGES},
        "integrated_gradients: baseline: found array.*, expected a string",
    ),
    ({"method": "ig", "baseline": "mean", "model": network()}, r".*baseline: .*saliency_assay\.wrap"),
]


@pytest.mark.parametrize(("changes", "message"), CALLS, ids=[message[:40] for _, message in CALLS])
def test_mistakes_with_maps(changes: dict[str, Any], message: str) -> None:
    arguments = {"method": "gradient", "model": wrapped(), "images": IMAGES, "targets": TARGETS, **changes}
    with pytest.raises(ValueError, match=f"^{message}") as raised:
        saliency_assay.attribute(**arguments)
    assert "\n" not in str(raised.value)


MASK = RANDOM.random((4, 12, 12))
SCORED: list[tuple[dict[str, Any], str]] = [
    ({"metric": "pointing_game", "mask": MASK}, "mask: found float64.*: mask > 0"),
    ({"metric": "pointing_game", "mask": MASK[:, None] > 0.5}, r"mask: .*: mask\[:, 0\]"),
    ({"metric": "PixelFlipping"}, "unknown metric 'PixelFlipping'; did you mean 'deletion' or 'aopc'"),
    ({"metric": "gradient"}, "metric: found the method 'gradient', expected a metric"),
    (
        {"maps": MAPS[:, :, :6]},
        r"maps: found float32 \[4, 3, 6, 12\], expected numbers \[4, 3 or 1, 12, 12\]",
    ),
    (
        {"metric": "emprt", "method": "gradient"},
        r"emprt: randomized_model: .*saliency_assay\.randomize\(model\)",
    ),
    ({"metric": "f_fidelity"}, r"f_fidelity: finetuned_model: .*saliency_assay\.finetune\(model"),
    (
        {
            "metric": "emprt",
            "method": "gradient",
            "model": saliency_assay.wrap(network(), classes=4, cam_layer="1", **NORMALIZATION),
            "randomized_model": nn.Linear(3, 3),
        },
        "randomized_model: expected the network of the model.*unknown layer '1'",
    ),
]


@pytest.mark.parametrize(("changes", "message"), SCORED, ids=[message[:40] for _, message in SCORED])
def test_mistakes_with_scores(changes: dict[str, Any], message: str) -> None:
    arguments = {
        "metric": "deletion",
        "model": wrapped(),
        "images": IMAGES,
        "targets": TARGETS,
        "maps": MAPS,
        **changes,
    }
    with pytest.raises(ValueError, match=f"^{message}"):
        saliency_assay.score(**arguments)


def test_mistakes_with_results() -> None:
    scores = saliency_assay.score("sparseness", wrapped(), IMAGES, TARGETS, MAPS)
    for wrong in (scores, [scores, scores]):
        with pytest.raises(ValueError, match=r"^scores: found \w+, expected a dictionary"):
            saliency_assay.assess(wrong)  # type: ignore[arg-type]
    for call, name in (
        (lambda: saliency_assay.plot.maps(IMAGES, MAPS), "maps"),
        (lambda: saliency_assay.plot.curves(scores), "scores"),
        (lambda: saliency_assay.plot.ranks({"a": scores}), "assessment"),
        (lambda: saliency_assay.plot.agreement({"a": scores}), "assessment"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: found \\w+, expected"):
            call()


def test_a_model_split_between_devices_is_moved() -> None:
    model = moved("meta")
    assert _hint(model).endswith("found weights on meta and images on cpu: model.to('meta')")
    assert _hint(wrapped()) == ""

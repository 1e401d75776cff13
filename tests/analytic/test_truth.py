"""Maps of designed networks against their exact importance, and the scores of this agreement."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from sklearn.metrics import roc_auc_score
from torch import Tensor

from saliency_assay.data.synthetic.designed import designed
from saliency_assay.methods import METHODS
from saliency_assay.methods.truth import truth
from saliency_assay.metrics.localization import auc_inside
from saliency_assay.metrics.truth import truth_agreement
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import record_of, resolve

COUNT = 6


@cache
def model(name: str) -> Classifier:
    record = record_of(ARCHITECTURES, f"designed/{name}", "architecture")
    blueprint = Blueprint(record.name, record.function, {}, record.cam_layer, record.concept_layers)
    generator = torch.Generator()
    return build(blueprint, classes=2, mean=[0.0] * 3, std=[1.0] * 3, generator=generator).double().eval()


@cache
def images_of(name: str) -> tuple[Tensor, Tensor]:
    """Return images and the classes that the network predicts."""
    _, blocks = designed(images=COUNT, generator=np.random.default_rng(2))
    block = next(blocks)
    return torch.from_numpy(block["image"]).double() / 255, torch.from_numpy(block[f"label_{name}"])


def maps(method: str, name: str, **parameters: Any) -> Tensor:
    """Return the maps of a method, summed over channels."""
    images, targets = images_of(name)
    function = resolve(record_of(METHODS, method, "method").function)
    computed: Tensor = function(model(name), images, targets, generator=torch.Generator(), **parameters)
    return computed.sum(1)


def exact(name: str) -> Tensor:
    images, targets = images_of(name)
    return truth(model(name), images, targets, generator=torch.Generator())[:, 0]


PIXELS = {"window": 1 / 32, "stride": 1 / 32, "fill": "black"}


@pytest.mark.parametrize("name", ["additive", "counting", "half"])
@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("gradient_x_input", {}),
        ("integrated_gradients", {"steps": 3}),
        ("deeplift", {"rule": "rescale"}),
        ("deeplift", {"rule": "reveal_cancel"}),
        ("lrp_epsilon", {"epsilon": 1e-9}),
        ("occlusion", PIXELS),
    ],
    ids=lambda value: value if isinstance(value, str) else "".join(map(str, value.values())),
)
def test_methods_that_are_exact_where_pixels_add_up(
    method: str, parameters: dict[str, Any], name: str
) -> None:
    torch.testing.assert_close(maps(method, name, **parameters), exact(name), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["additive", "counting"])
@pytest.mark.parametrize("method", ["cam", "hirescam"])
def test_cam_of_the_detectors_is_proportional_to_the_truth(method: str, name: str) -> None:
    scale = 1 if method == "hirescam" else 1 / 32**2
    torch.testing.assert_close(scale * maps(method, name, relu=False), exact(name), rtol=1e-6, atol=1e-8)


def test_kernel_shap_of_segments_sums_the_truth() -> None:
    cells = maps("kernel_shap", "counting", features="grid", segments=16, samples=400)
    expected = exact("counting").unfold(1, 8, 8).unfold(2, 8, 8).sum((3, 4))
    sums = cells.unfold(1, 8, 8).unfold(2, 8, 8).sum((3, 4))
    torch.testing.assert_close(sums, expected, rtol=1e-6, atol=1e-8)


def test_gradients_vanish_where_the_evidence_is_saturated() -> None:
    assert not maps("gradient", "saturated").any()
    assert not maps("occlusion", "saturated", **PIXELS).any()
    # The path leaves the slope at 1 / count, so that the midpoints must be dense.
    fine = maps("integrated_gradients", "saturated", steps=4000)
    torch.testing.assert_close(fine, exact("saturated"), rtol=0.05, atol=1e-8)


def agreement(attribution: Tensor, importance: Tensor) -> dict[str, float]:
    scored = truth_agreement(
        model("additive"),
        torch.zeros(1, 3, *importance.shape),
        torch.tensor([0]),
        attribution[None, None],
        generator=torch.Generator(),
        responses={"truth": importance[None]},
    )
    return {name: values.item() for (name, _), values in scored.scores.items()}


def test_agreement_is_that_of_scipy_and_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    importance = torch.randint(-1, 2, (8, 8), generator=generator).double()
    attribution = torch.randint(-3, 4, (8, 8), generator=generator).double()
    scores = agreement(attribution, importance)
    flat, phi = attribution.flatten().numpy(), importance.flatten().numpy()
    assert scores["truth_correlation"] == pytest.approx(pearsonr(flat, phi).statistic)
    assert scores["truth_auc"] == pytest.approx(roc_auc_score(phi != 0, np.abs(flat)))
    assert scores["truth_mass"] == pytest.approx(np.abs(flat[phi != 0]).sum() / np.abs(flat).sum())
    assert scores["truth_sign"] == pytest.approx((np.sign(flat) == np.sign(phi))[phi != 0].mean())


def test_agreement_of_the_truth_of_its_negative_and_of_constant_maps() -> None:
    importance = torch.tensor([[1.0, 0.0], [-2.0, 0.0]])
    names = ("truth_correlation", "truth_mass", "truth_auc", "truth_sign")
    assert agreement(importance, importance) == pytest.approx(dict.fromkeys(names, 1.0))
    assert agreement(-importance, importance) == pytest.approx(dict(zip(names, (-1, 1, 1, 0), strict=True)))
    assert agreement(torch.ones(2, 2), importance) == pytest.approx(
        dict(zip(names, (0, 0.5, 0.5, 0.5), strict=True))
    )
    zeros = agreement(torch.zeros(2, 2), importance)
    assert np.isnan(zeros.pop("truth_mass"))
    assert zeros == {"truth_correlation": 0, "truth_auc": 0.5, "truth_sign": 0}
    broken = agreement(torch.tensor([[np.nan, 0], [0, 1]]), importance)
    assert np.isnan(list(broken.values())).all()
    assert np.isnan(list(agreement(importance, torch.ones(2, 2)).values())).all()


def test_ties_count_half_in_the_area() -> None:
    values = torch.tensor([[1.0, 1.0, 0.0, 2.0]])
    assert auc_inside(values, torch.tensor([[True, False, False, False]])).item() == 0.5

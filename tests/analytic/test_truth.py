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
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.methods.truth import truth
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.localization import auc_inside
from saliency_assay.metrics.truth import truth_agreement
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import record_of, resolve
from saliency_assay.registry.signatures import declared

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


# --- examples of docs/designed.md: metrics that do not rank the exact map first -----------------------------------


def scores_of(
    metric: str, image: Tensor, attribution: Tensor, predict: Any, **parameters: Any
) -> dict[str, float]:
    """Return the scores of a map ``[H, W]`` of an image ``[3, H, W]`` for the class 0."""
    record = record_of(METRICS, metric, "metric")
    arguments = (predict, image[None], torch.tensor([0]))
    if record.responses:
        reading = {name: parameters[name] for name in parameters if name in declared(record.responses)}
        parameters = {name: parameters[name] for name in parameters if name in declared(record.function)}
        parameters["responses"] = resolve(record.responses)(
            *arguments, generator=BlockGenerator(0, "metric"), **reading
        )
    scored = resolve(record.function)(
        *arguments, attribution[None, None].double(), generator=BlockGenerator(0, "metric"), **parameters
    )
    return {name: values.item() for (name, _), values in scored.scores.items()}


def linear_model(contributions: list[float]) -> Any:
    """Return the logits f and 0 of an additive function f of the first channel."""
    weights = torch.tensor(contributions, dtype=torch.float64)

    def predict(images: Tensor) -> Tensor:
        evidence = (images[:, 0].flatten(1) * weights).sum(1)
        return torch.stack([evidence, torch.zeros_like(evidence)], 1)

    return predict


def test_monotonicity_prefers_to_mix_signs_within_a_step() -> None:
    image, phi = torch.ones(3, 1, 4, dtype=torch.float64), [2.0, 2.0, -1.0, -1.0]
    setting = {"predict": linear_model(phi), "steps": 2, "output": "logit"}
    exact_score = scores_of("monotonicity", image, torch.tensor([phi]), **setting)
    mixed_score = scores_of("monotonicity", image, torch.tensor([[1.0, 3.0, 2.0, 4.0]]), **setting)
    assert (exact_score["monotonicity"], mixed_score["monotonicity"]) == (0.5, 1.0)


def test_n_ord_and_s_ord_reward_positive_relevance_of_ignored_pixels() -> None:
    image, phi, diluted = torch.ones(3, 1, 4), torch.tensor([[1.0, 1, 0, 0]]), torch.tensor([[4.0, 3, 2, 1]])
    setting = {"predict": linear_model([1, 1, 0, 0]), "steps": "exact", "output": "logit", "fill": "black"}
    of_truth, of_diluted = (
        scores_of("necessity_sufficiency", image, each, mean=torch.zeros(3), **setting)
        for each in (phi, diluted)
    )
    # The outputs 2, 1, 0 without m of two pixels, and 2, 1, 0, 0, 0 without m of four.
    assert (of_truth["n_ord"], of_diluted["n_ord"]) == pytest.approx((1, 0.6))  # lower is better
    assert (of_truth["s_ord"], of_diluted["s_ord"]) == pytest.approx((1, 1.4))  # higher is better


def test_sparseness_and_complexity_prefer_one_of_two_equal_pixels() -> None:
    image, phi, one = torch.ones(3, 1, 4), torch.tensor([[1.0, 1, 0, 0]]), torch.tensor([[1.0, 0, 0, 0]])
    predict = linear_model([1, 1, 0, 0])
    sparseness = [scores_of("sparseness", image, each, predict)["sparseness"] for each in (phi, one)]
    complexity = [scores_of("complexity", image, each, predict)["complexity"] for each in (phi, one)]
    assert sparseness == pytest.approx([0.5, 0.75])  # higher is better
    assert complexity == pytest.approx([np.log(2), 0], abs=1e-6)  # lower is better


def test_pointing_game_hits_an_object_that_the_network_ignores() -> None:
    image, ignored = torch.ones(3, 1, 4), torch.tensor([[0.0, 0, 1, 0]])
    mask = torch.tensor([[[True, False, True, False]]])
    score = scores_of("pointing_game", image, ignored, linear_model([1, 0, 0, 0]), mask=mask)
    assert score == {"pointing_game": 1}


def test_effects_of_single_pixels_and_infidelity_see_nothing_where_pixels_replace_each_other() -> None:
    image = torch.ones(3, 1, 2, dtype=torch.float64)
    phi, zeros = torch.tensor([[0.5, 0.5]]), torch.zeros(1, 2)

    def either(images: Tensor) -> Tensor:
        evidence = images[:, 0].flatten(1).amax(1)
        return torch.stack([evidence, torch.zeros_like(evidence)], 1)

    single = scores_of(
        "faithfulness",
        image,
        torch.tensor([[0.4, 0.6]]),
        either,
        pixels=2,
        fill="black",
        output="logit",
        mean=torch.zeros(3),
    )
    assert np.isnan(single["faithfulness"])
    setting = {"predict": either, "samples": 50, "share": 0.5}
    # Half of the pixels removed changes nothing, which a map of zeros predicts, and (1/2, 1/2) does not.
    assert scores_of("infidelity_subset", image, phi, **setting) == {"infidelity": pytest.approx(0.25)}
    assert scores_of("infidelity_subset", image, zeros, **setting) == {"infidelity": 0}


def test_random_logit_finds_opposite_maps_of_two_classes_alike() -> None:
    images, targets = images_of("counting")

    def explained(images: Tensor, targets: Tensor, model: Any = None) -> Tensor:
        return truth(model_of_counting, images, targets, generator=torch.Generator())

    model_of_counting = model("counting")
    function = resolve(record_of(METRICS, "random_logit", "metric").function)
    generator = torch.Generator().manual_seed(0)
    scored = function(
        model_of_counting, images, targets, explained(images, targets), generator=generator, explain=explained
    )
    (values,) = scored.scores.values()
    assert (values > 0.9).all()  # most windows of both maps are 0

"""Contract of every registered attribution method, on small networks of several kinds."""

import inspect
import json
from functools import partial

import pytest
import torch
from support import (
    CLASSES,
    SmoothNet,
    attention_classifier,
    bound,
    conv_classifier,
    cyclic_targets,
    designed_classifier,
    explain,
    few_passes,
    generator,
    random_images,
    seen_batches,
    skip_classifier,
    state_of,
    with_random_state,
)
from torch import Tensor

from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.canonical import canonical
from saliency_assay.methods.cost import Map, counted_rows, passes
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import module_of, record_of, resolve


def small_resnet() -> Classifier:
    record = record_of(ARCHITECTURES, "resnet8", "architecture")
    blueprint = Blueprint(record.name, record.function, {"width": 4}, record.cam_layer, record.concept_layers)
    model = build(blueprint, classes=CLASSES, mean=[0.5] * 3, std=[0.2] * 3, generator=generator(1))
    return model.double().eval()


NETS = {
    "convolutional": conv_classifier,
    "gray": partial(conv_classifier, channels=1),
    "skip": partial(skip_classifier, cam_layer="relu2"),
    "resnet8": small_resnet,
}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


TRANSFORMERS = {
    "gray": partial(attention_classifier, channels=1),
    "skip": partial(attention_classifier, pool="mean"),
}
"""Networks in place of those of ``NETS`` for methods that need attention."""
DESIGNED = {"gray": partial(designed_classifier, channels=1), "skip": designed_classifier}
"""Networks in place of those of ``NETS`` for methods that need an exact importance."""


@pytest.fixture(params=NETS)
def case(request: pytest.FixtureRequest) -> tuple[Classifier, Tensor, Tensor]:
    method, name = request.node.callspec.params["method"], request.param
    nets = {"attention": TRANSFORMERS, "exact_importance": DESIGNED}
    own = next((of_need for need, of_need in nets.items() if need in method.needs), NETS)
    model = own.get(name, own["skip"])()
    size = 6 if method.name == "optimal_square" else 12  # it takes a pass for each square
    return model, random_images(5, model.channels, size), cyclic_targets(5)


def suited(method: Method, seed: int = 1, dtype: torch.dtype = torch.float64) -> Classifier:
    """A network that meets the needs of a method."""
    needed = {"attention": attention_classifier, "exact_importance": designed_classifier}
    build_suited = next((each for need, each in needed.items() if need in method.needs), conv_classifier)
    return build_suited(seed=seed, dtype=dtype)


@EVERY_METHOD
def test_record_fits_the_function(method: Method) -> None:
    assert module_of(method.function).startswith("saliency_assay.methods.")
    signature = inspect.signature(resolve(method.function)).parameters
    assert list(signature)[:4] == ["model", "images", "targets", "generator"]
    assert signature["generator"].kind is inspect.Parameter.KEYWORD_ONLY
    defaults = {
        name: p.default
        for name, p in signature.items()
        if p.default is not p.empty and name not in method.takes
    }
    assert set(method.takes) <= set(signature)
    registered = {name: parameter.default for name, parameter in method.parameters.items()}
    assert registered == defaults
    assert json.loads(json.dumps(registered)) == registered
    assert [p.problem(p.default) for p in method.parameters.values()] == [None] * len(registered)
    assert set(method.takes) <= {"base", "background", "mask"}
    assert [other.name for other in METHODS].count(method.name) == 1


@EVERY_METHOD
def test_maps_have_their_shape_in_any_split_and_nothing_else_changes(
    method: Method, case: tuple[Classifier, Tensor, Tensor]
) -> None:
    model, images, targets = case
    before, images_before, targets_before = state_of(model), images.clone(), targets.clone()
    noise_before = torch.get_rng_state()
    maps = explain(method, model, images, targets)
    assert maps.shape == (images[:, :1] if method.one_channel else images).shape
    assert maps.isfinite().all()
    assert (maps.std() > 0) == (method.name != "constant")
    assert state_of(model) == before
    assert torch.equal(images, images_before)
    assert torch.equal(targets, targets_before)
    assert torch.equal(torch.get_rng_state(), noise_before)
    for sizes in ((2, 3), (1, 1, 1, 1, 1)):
        serial = partial(bound(method, images), model, generator=generator())
        parts = [serial(*part) for part in zip(images.split(sizes), targets.split(sizes), strict=True)]
        torch.testing.assert_close(torch.cat(parts), maps, rtol=1e-9, atol=1e-12)


@EVERY_METHOD
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_maps_have_the_type_of_the_images_and_no_graph(method: Method, dtype: torch.dtype) -> None:
    """Of a frozen model, and of images that require gradients."""
    model = suited(method, dtype=dtype).requires_grad_(False)
    before, images = state_of(model), random_images(3, dtype=dtype).requires_grad_()
    maps = explain(method, model, images, cyclic_targets(3))
    assert maps.dtype is dtype
    assert not maps.requires_grad
    assert images.grad is None
    assert state_of(model) == before


@EVERY_METHOD
def test_one_seed_one_result(method: Method) -> None:
    model, images, targets = suited(method), random_images(5), cyclic_targets(5)
    first = explain(method, model, images, targets, seed=5)
    assert torch.equal(explain(method, model, images, targets, seed=5), first)
    assert torch.equal(explain(method, model, images, targets, seed=6), first) is not method.stochastic


@EVERY_METHOD
def test_flags_tell_the_truth(method: Method) -> None:
    images, targets = random_images(5), cyclic_targets(5)
    maps = explain(method, suited(method, seed=1), images, targets)
    other = explain(method, suited(method, seed=2), images, targets)
    assert bool((maps < 0).any()) is method.signed
    assert torch.equal(maps, other) is not method.uses_model


@EVERY_METHOD
def test_needs_are_all_it_needs(method: Method) -> None:
    images, targets = random_images(3, size=6), cyclic_targets(3)
    model = with_random_state(SmoothNet(images[0].numel()), seed=1)
    # FullGrad follows other activations, too; in configurations, its need keeps out networks with LayerNorm.
    if method.name == "fullgrad" or not {"cam_layer", "relu", "attention", "exact_importance"} & set(
        method.needs
    ):
        assert explain(method, model, images, targets).shape[0] == 3
        return
    with pytest.raises(ValueError, match=r"^[^\n]*SmoothNet[^\n]*$"):
        explain(method, model, images, targets)


@EVERY_METHOD
def test_no_pass_is_larger_than_the_batch(method: Method) -> None:
    model, images, targets = suited(method), random_images(5), cyclic_targets(5)
    with seen_batches(model) as seen:
        explain(method, model, images, targets)
    assert {len(batch) for batch in seen} <= {5}  # and none is smaller: the device stays busy


TRACED = {
    **dict.fromkeys(("lrp_alpha_beta", "lrp_epsilon", "deep_taylor", "deeplift", "fullgrad"), 1),
    "deep_shap": 3,
    **dict.fromkeys(
        ("raw_attention", "attention_rollout", "gradient_weighted_attention", "legrad", "libragrad"), 1
    ),
    "attnlrp": 2,
    "transformer_attribution": 3,
}
"""Passes of the methods that go through the model layer by layer, without calling it."""


@EVERY_METHOD
def test_the_report_knows_what_a_map_costs(method: Method) -> None:
    width = 12 if "background" in method.takes or "attention" in method.needs else 9
    images, targets = random_images(4)[..., :width], cyclic_targets(4)
    model = skip_classifier(cam_layer="relu2") if method.name == "cam" else suited(method)
    with seen_batches(model) as seen, counted_rows(model) as rows:
        explain(method, model, images, targets)
    assert rows == list(map(len, seen))
    defaults = {name: parameter.default for name, parameter in method.parameters.items()}
    inputs = Map({**defaults, **few_passes(method)}, (12, width), batch=4, background=3)
    one_and_one_for_each_channel = 1 + 6
    counted = one_and_one_for_each_channel if method.passes is None else passes(method.passes, inputs)
    measured = sum(rows) / len(images)
    assert counted == TRACED.get(method.name, measured)


def test_counting_rows_leaves_the_cached_canonical_form() -> None:
    model, images = conv_classifier(), random_images(2)
    network = canonical(model, images)
    with counted_rows(model) as rows:
        model(images)
        model(pixels=images[:1])
        assert canonical(model, images) is network
    model(images)
    assert rows == [2, 1]


def test_what_smooths_a_method_costs_as_many_of_its_passes() -> None:
    smoothgrad = record_of(METHODS, "smoothgrad", "method")
    assert passes(smoothgrad.passes, Map({"samples": 5}, (8, 8), batch=1, base=7)) == 35


@EVERY_METHOD
@pytest.mark.parametrize(
    ("images", "targets", "message"),
    [
        (torch.zeros(3, 3, 8, 8, dtype=torch.uint8), torch.zeros(3).long(), "images: found uint8"),
        (torch.zeros(0, 3, 8, 8), torch.zeros(0).long(), r"images: found float32 \[0, 3, 8, 8\], "),
        (torch.zeros(3, 3, 8, 8), torch.zeros(2).long(), r"targets: found int64 \[2\], expected int64 \[3\]"),
    ],
    ids=["uint8", "no image", "too few targets"],
)
def test_wrong_input_is_refused(method: Method, images: Tensor, targets: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        explain(method, suited(method, dtype=torch.float32), images, targets)


CHOICES = [
    (method, name) for method in METHODS for name, parameter in method.parameters.items() if parameter.choices
]


@pytest.mark.parametrize(("method", "name"), CHOICES, ids=lambda value: getattr(value, "name", value))
def test_choices_give_different_maps(method: Method, name: str) -> None:
    model, images, targets = suited(method), random_images(3), cyclic_targets(3)
    function = partial(bound(method, images), model, images, targets, generator=generator())
    results = [function(**{name: choice}) for choice in method.parameters[name].choices]
    for i, result in enumerate(results):
        assert not any(torch.equal(result, other) for other in results[:i])

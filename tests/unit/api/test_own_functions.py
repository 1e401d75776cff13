"""Custom functions of various forms, and classes of other libraries, as methods and metrics."""

import threading
from collections import deque
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.api.identity import identity_of
from saliency_assay.api.own_functions import OwnFunction

IMAGES = torch.rand(4, 3, 6, 6, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2, 0])


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)).eval()


def run(network: nn.Module, methods: Any, metrics: Any = ("complexity",), **options: Any) -> Any:
    return saliency_assay.benchmark(network, (IMAGES, TARGETS), methods, metrics, progress=False, **options)


def gray(model: Any, images: Tensor, targets: Tensor) -> Tensor:
    return images.sum(1)


def numbers(model: Any, images: Tensor, targets: Tensor) -> np.ndarray:
    return images.double().sum(1).numpy()


def flipped(model: Any, images: Tensor, targets: Tensor, *, generator: Any) -> np.ndarray:
    return images.sum(1, keepdim=True).numpy()[:, :, ::-1][:, :, ::-1]


class Brightness:
    def __call__(self, model: Any, images: Tensor, targets: Tensor, scale: float = 1) -> Tensor:
        return scale * images.sum(1, keepdim=True)


@pytest.mark.parametrize("method", [gray, numbers, flipped, Brightness(), partial(Brightness(), scale=1)])
def test_maps_may_be_arrays_and_have_no_channel(method: Any, network: nn.Module) -> None:
    maps = saliency_assay.attribute(method, network, IMAGES, TARGETS, batch_size=3)
    torch.testing.assert_close(maps, IMAGES.sum(1, keepdim=True))
    smooth = saliency_assay.attribute("smoothgrad", network, IMAGES, TARGETS, base=method, samples=2, noise=0)
    torch.testing.assert_close(smooth, maps)


def test_a_function_may_have_no_module(network: nn.Module) -> None:
    names: dict[str, Any] = {}
    exec("def own(model, images, targets, *, generator):\n    return images", names)
    names["own"].__module__ = None
    assert torch.equal(saliency_assay.attribute(names["own"], network, IMAGES, TARGETS), IMAGES)


def test_metrics_that_compute_maps_take_such_methods(network: nn.Module) -> None:
    maps = IMAGES.sum(1)
    scores = saliency_assay.score("sensitivity_max", network, IMAGES, TARGETS, maps, method=numbers)
    expected = saliency_assay.score("sensitivity_max", network, IMAGES, TARGETS, maps, method=Brightness())
    np.testing.assert_allclose(scores["sensitivity_max"], expected["sensitivity_max"], rtol=1e-5)


def test_scores_may_be_arrays_or_lists(network: nn.Module) -> None:
    def array(predict: Any, images: Tensor, targets: Tensor, maps: Tensor) -> np.ndarray:
        return maps[:, 0, 0, 0].double().numpy()

    def listed(predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: Any) -> list[float]:
        return [float(each) for each in maps[:, 0, 0, 0]]

    for metric in (array, listed):
        scores = saliency_assay.score(metric, network, IMAGES, TARGETS, IMAGES)
        np.testing.assert_array_equal(scores[metric.__name__], IMAGES[:, 0, 0, 0].double())


def test_other_shapes_and_types_are_named(network: nn.Module) -> None:
    def five(model: Any, images: Tensor, targets: Tensor) -> Tensor:
        return images.new_zeros(len(images), 5, 6, 6)

    def words(model: Any, images: Tensor, targets: Tensor) -> Any:
        return np.full((len(images), 6, 6), "a")

    def too_few(model: Any, images: Tensor) -> Tensor:
        return images

    for method, message in (
        (five, r"five: returned float32 \[4, 5, 6, 6\] on cpu, expected float32 \[4, 3 or 1, 6, 6\]"),
        (words, r"words: returned ndarray, expected float32 \[4, 3 or 1, 6, 6\]"),
        (too_few, r"too_few: too many positional arguments; expected \(model, images, targets"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            saliency_assay.attribute(method, network, IMAGES, TARGETS)
        assert "\n" not in str(raised.value)


def test_the_identity_is_that_of_the_function() -> None:
    assert identity_of(OwnFunction(gray)) == identity_of(gray)


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")
def test_classes_and_objects_of_captum_are_methods(network: nn.Module) -> None:
    attr = pytest.importorskip("captum.attr")
    expected = attr.IntegratedGradients(network).attribute(IMAGES, target=TARGETS, n_steps=5)
    forms = (attr.IntegratedGradients, attr.IntegratedGradients(network))
    for form in forms:
        maps = saliency_assay.attribute(form, network, IMAGES, TARGETS, n_steps=5)
        torch.testing.assert_close(maps, expected, rtol=1e-4, atol=1e-5)
    result = run(network, [attr.Saliency(network), {"method": forms[0], "n_steps": 5, "label": "IG"}, "ig"])
    assert set(result.scores["method"]) == {"Saliency", "IntegratedGradients", "integrated_gradients"}
    torch.testing.assert_close(torch.tensor(result.kept()[1]["IG"]), expected.float(), rtol=1e-4, atol=1e-5)
    assert set(run(network, attr.Saliency(network)).scores["method"]) == {"Saliency"}
    background = run(network, [attr.GradientShap], background=IMAGES)
    assert set(background.scores["method"]) == {"GradientShap"}
    for wrong, message in (
        ({"method": attr.Saliency, "n_steps": 5}, "Saliency: unknown argument 'n_steps'"),
        (attr.NoiseTunnel(attr.Saliency(network)), "captum: found NoiseTunnel"),
        (attr.LayerGradCam, "LayerGradCam: layer: found ''"),
    ):
        with pytest.raises(ValueError, match=message):
            run(network, [wrong])


def test_other_libraries_need_an_adapter(network: nn.Module) -> None:
    cam = type("GradCAM", (), {"__module__": "pytorch_grad_cam.grad_cam", "__call__": lambda self: None})
    sparseness = type("Sparseness", (), {"__module__": "quantus.metrics.sparseness"})
    for method in (cam, cam()):
        with pytest.raises(
            ValueError, match=r"GradCAM .*saliency_assay\.adapters\.grad_cam\.method\(GradCAM"
        ):
            run(network, [method])
        with pytest.raises(
            ValueError, match=r"GradCAM .*saliency_assay\.adapters\.grad_cam\.method\(GradCAM"
        ):
            saliency_assay.attribute(method, network, IMAGES, TARGETS)
    for metric in (sparseness, sparseness()):
        with pytest.raises(ValueError, match=r"saliency_assay\.adapters\.quantus\.metric\(Sparseness"):
            saliency_assay.score(metric, network, IMAGES, TARGETS, IMAGES)


def test_an_object_of_captum_explains_the_model(network: nn.Module) -> None:
    attr = pytest.importorskip("captum.attr")
    normalized = saliency_assay.wrap(network, classes=3, mean=[0.5] * 3, std=[0.1] * 3)
    plain = saliency_assay.wrap(network, classes=3, mean=[0.0] * 3, std=[1.0] * 3)
    expected = saliency_assay.attribute(attr.Saliency, normalized, IMAGES, TARGETS)
    for forward in (normalized, normalized.forward, normalized.__call__):
        maps = saliency_assay.attribute(attr.Saliency(forward), normalized, IMAGES, TARGETS)
        torch.testing.assert_close(maps, expected)
    for forward, model in ((network, plain), (plain, network)):
        saliency_assay.attribute(attr.Saliency(forward), model, IMAGES, TARGETS)
    other = nn.Sequential(nn.Flatten(), nn.Linear(108, 3))
    for forward, model in ((network, normalized), (other, network), (normalized, plain)):
        with pytest.raises(ValueError, match=r"Saliency: .*captum\.attr\.Saliency"):
            run(model, {"mine": attr.Saliency(forward), "random": {}})
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    with pytest.raises(
        ValueError, match=r"Saliency: .*captum\.attr\.Saliency"
    ):  # it would not follow the copy
        saliency_assay.score(
            "emprt",
            network,
            IMAGES,
            TARGETS,
            maps,
            method=attr.Saliency(network),
            randomized_model=saliency_assay.randomize(network),
        )


def test_an_object_of_captum_explains_a_function() -> None:
    attr = pytest.importorskip("captum.attr")

    def predict(images: Tensor) -> Tensor:
        return images.flatten(2).mean(2)

    maps = saliency_assay.attribute(attr.FeatureAblation(predict), predict, IMAGES, TARGETS)
    assert maps.shape == IMAGES.shape


class Slotted:
    __slots__ = ("network", "others")

    def __init__(self, network: nn.Module, others: Any = ()) -> None:
        self.network, self.others = network, others

    def __call__(self, model: Any, images: Tensor, targets: Tensor) -> Tensor:
        return images

    explain = __call__


def captum_object(network: nn.Module) -> Any:
    attr = pytest.importorskip("captum.attr")
    return saliency_assay.api.own_functions.adapted("method", attr.Saliency(network), {})[0]


@pytest.mark.parametrize(
    "form",
    [
        Slotted,
        captum_object,
        lambda network: Slotted(network).explain,
        lambda network: partial(Slotted(nn.ReLU(), [{"a": deque([Slotted(network)])}]), scale=1),
        lambda network: Slotted(nn.ReLU(), [[[[[[network.forward]]]]]]),
        lambda network: Slotted(nn.ReLU(), [network.weight.numpy(force=True)]),
        lambda network: Slotted(nn.ReLU(), [np.array([network], dtype=object)]),
    ],
)
def test_the_identity_contains_the_state_of_objects(form: Any) -> None:
    network, same = nn.Linear(2, 2), nn.Linear(2, 2)
    same.load_state_dict(network.state_dict())
    value = form(network)
    first = identity_of(value)
    assert identity_of(form(same)) == first == identity_of(value)
    with torch.no_grad():
        network.weight[0, 0] += 1
    assert identity_of(value) != first


def test_the_identity_of_cyclic_and_opaque_objects_is_reproducible() -> None:
    def cyclic(number: int) -> Any:
        value = Slotted(nn.ReLU(), [number, threading.Lock(), np, {"b", "a", "c"}])
        value.others.append(value)
        return value

    assert identity_of(cyclic(1)) == identity_of(cyclic(1)) != identity_of(cyclic(2))
    assert "0x" not in str(identity_of(cyclic(1)))


def test_results_are_not_reused_after_a_network_in_an_object_has_changed(tmp_path: Any) -> None:
    other = nn.Linear(6, 6)

    class Mine:
        def __init__(self) -> None:
            self.parts = {"network": other}

        def explain(self, model: Any, images: Tensor, targets: Tensor) -> Tensor:
            return self.parts["network"](images).detach()

    network = nn.Sequential(nn.Flatten(), nn.Linear(108, 3))
    methods = {"mine": Mine().explain, "random": {}}
    first = run(network, methods, path=tmp_path / "saved").scores["score"]
    with torch.no_grad():
        other.weight.copy_(torch.rand(6, 6))
    expected = run(network, methods).scores["score"]
    again = run(network, methods, path=tmp_path / "saved").scores["score"]
    assert not np.allclose(first, expected)
    np.testing.assert_allclose(again, expected)

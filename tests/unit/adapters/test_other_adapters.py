"""Quantus and pytorch-grad-cam: methods in their conventions and theirs in this package's."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.adapters import quantus as adapter

IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2, 0])


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 64, 3)
    return nn.Sequential(*layers).eval()


def test_a_method_as_an_explain_function(network: nn.Module) -> None:
    explain = adapter.explain_func("integrated_gradients", steps=4)
    maps = explain(model=network, inputs=IMAGES.numpy(), targets=TARGETS.numpy(), normalise=True)
    expected = saliency_assay.attribute("integrated_gradients", network, IMAGES, TARGETS, steps=4)
    np.testing.assert_allclose(maps, expected, rtol=1e-5, atol=1e-7)


def test_an_explain_function_as_a_method(network: nn.Module) -> None:
    def brightness(model: Any, inputs: np.ndarray, targets: np.ndarray, scale: float = 1) -> np.ndarray:
        return scale * inputs.sum(1)

    maps = saliency_assay.attribute(adapter.method(brightness, scale=2), network, IMAGES, TARGETS)
    torch.testing.assert_close(maps, 2 * IMAGES.sum(1, keepdim=True))


def test_quantus_takes_an_explain_function(network: nn.Module) -> None:
    quantus = pytest.importorskip("quantus")
    metric = quantus.Sparseness(disable_warnings=True, abs=True, normalise=False)
    explain = adapter.explain_func("gradient")
    scores = metric(network, IMAGES.numpy(), TARGETS.numpy(), explain_func=explain, explain_func_kwargs={})
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    of_maps = metric(network, IMAGES.numpy(), TARGETS.numpy(), a_batch=maps.numpy())
    np.testing.assert_allclose(scores, of_maps, rtol=1e-5)


def test_quantus_explanations_as_a_method(network: nn.Module) -> None:
    quantus = pytest.importorskip("quantus")
    method = adapter.method(quantus.explain, method="Saliency", abs=False)
    maps = saliency_assay.attribute(method, network, IMAGES, TARGETS)
    expected = quantus.explain(network, IMAGES.numpy(), TARGETS.numpy(), method="Saliency", abs=False)
    np.testing.assert_allclose(maps, expected.reshape(maps.shape), rtol=1e-4, atol=1e-6)


def test_grad_cam_as_a_method(network: nn.Module) -> None:
    library = pytest.importorskip("pytorch_grad_cam")
    from saliency_assay.adapters import grad_cam

    method = grad_cam.method(library.GradCAM, ["1"])
    maps = saliency_assay.attribute(method, network, IMAGES, TARGETS)
    model = saliency_assay.wrap(network, classes=3, mean=[0] * 3, std=[1] * 3, cam_layer="1")
    own = saliency_assay.attribute("gradcam", model, IMAGES, TARGETS)
    scaled = own / own.amax((1, 2, 3), keepdim=True)
    low = scaled.amin((1, 2, 3), keepdim=True)
    torch.testing.assert_close(maps, (scaled - low) / (1 - low), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="target_layers"):
        saliency_assay.attribute(grad_cam.method(library.GradCAM, ["9"]), network, IMAGES, TARGETS)


def test_arguments_of_grad_cam(network: nn.Module) -> None:
    library = pytest.importorskip("pytorch_grad_cam")
    targets = pytest.importorskip("pytorch_grad_cam.utils.model_targets")
    from saliency_assay.adapters import grad_cam

    method = grad_cam.method(library.GradCAM, [network[1]], eigen_smooth=True)
    maps = saliency_assay.attribute(method, network, IMAGES, TARGETS)
    outputs = [targets.ClassifierOutputTarget(target) for target in TARGETS.tolist()]
    with library.GradCAM(model=network, target_layers=[network[1]]) as cam:
        expected = cam(IMAGES.clone(), outputs, eigen_smooth=True)
    np.testing.assert_allclose(maps[:, 0], expected, atol=1e-4)
    random = grad_cam.method(library.RandomCAM, ["1"])
    first, again, other = (
        saliency_assay.attribute(random, network, IMAGES, TARGETS, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)
    with pytest.raises(ValueError, match="unknown argument 'smooth'"):
        grad_cam.method(library.GradCAM, ["1"], smooth=True)
    with pytest.raises(ValueError, match="target_layers: found '1', expected a list"):
        grad_cam.method(library.GradCAM, "1")


def test_other_target_objects_are_outputs(network: nn.Module) -> None:
    targets = pytest.importorskip("pytorch_grad_cam.utils.model_targets")
    from saliency_assay.adapters import grad_cam

    output = grad_cam.output(targets.ClassifierOutputSoftmaxTarget(2))
    model = saliency_assay.wrap(network, output=output, mean=[0] * 3, std=[1] * 3)
    maps = saliency_assay.attribute("gradient", model, IMAGES, 0)
    pixels = IMAGES.clone().requires_grad_()
    (expected,) = torch.autograd.grad(network(pixels).softmax(1)[:, 2].sum(), pixels)
    torch.testing.assert_close(maps, expected)


def test_metrics_of_quantus(network: nn.Module) -> None:
    quantus = pytest.importorskip("quantus")
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    sparseness = quantus.Sparseness(disable_warnings=True, normalise=False)
    scores = saliency_assay.score(adapter.metric(sparseness), network, IMAGES, TARGETS, maps)
    expected = sparseness(network, IMAGES.numpy(), TARGETS.numpy(), a_batch=maps.numpy())
    np.testing.assert_allclose(scores["Sparseness"], expected, rtol=1e-5)
    game = adapter.metric(quantus.PointingGame(disable_warnings=True))
    mask = torch.ones(4, 8, 8, dtype=torch.bool)
    assert (saliency_assay.score(game, network, IMAGES, TARGETS, maps, mask=mask)["PointingGame"] == 1).all()
    sensitivity = quantus.MaxSensitivity(disable_warnings=True, nr_samples=2, normalise=False)
    first, again = (
        saliency_assay.score(adapter.metric(sensitivity), network, IMAGES, TARGETS, maps, method="gradient")
        for _ in range(2)
    )
    assert (first["MaxSensitivity"] > 0).all()
    np.testing.assert_array_equal(first["MaxSensitivity"], again["MaxSensitivity"])


def test_a_metric_in_the_form_of_quantus(network: nn.Module) -> None:
    class Peak:
        def __call__(self, model: Any, x_batch: Any, y_batch: Any, a_batch: Any, **_: Any) -> list[float]:
            return [float(each.max()) for each in a_batch]

    scores = saliency_assay.score(adapter.metric(Peak()), network, IMAGES, TARGETS, IMAGES)
    np.testing.assert_allclose(scores["Peak"], IMAGES.amax((1, 2, 3)))
    with pytest.raises(ValueError, match=r"metric: found the class Peak, .*Peak\(\)"):
        adapter.metric(Peak)


def test_target_objects_are_classes() -> None:
    targets = pytest.importorskip("pytorch_grad_cam.utils.model_targets")
    from saliency_assay.adapters import grad_cam

    objects = [targets.ClassifierOutputTarget(number) for number in (2, 0)]
    assert grad_cam.classes(objects).tolist() == [2, 0]
    with pytest.raises(ValueError, match="targets"):
        grad_cam.classes([targets.RawScoresOutputTarget()])

"""captum's classes as methods, and methods behind captum's ``attribute``."""

import re
from typing import Any

import captum.attr
import captum.metrics
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.adapters import captum as adapter
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
IMAGES = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2, 0, 1])
BACKGROUND = torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(96, 3)
    return nn.Sequential(*layers).eval()


DETERMINISTIC: dict[str, dict[str, Any]] = {
    "IntegratedGradients": {"n_steps": 7},
    "Saliency": {"abs": False},
    "InputXGradient": {},
    "FeatureAblation": {},
    "Occlusion": {"sliding_window_shapes": [3, 4, 4]},
}


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")  # of the direct call
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_a_class_has_the_maps_of_a_direct_call(name: str, network: nn.Module) -> None:
    arguments = DETERMINISTIC[name]
    own = {key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()}
    expected = getattr(captum.attr, name)(network).attribute(IMAGES, target=TARGETS, **own)
    for form in (name, getattr(captum.attr, name), getattr(captum.attr, name)(network)):
        maps = saliency_assay.attribute(adapter.method(form, **arguments), network, IMAGES, TARGETS)
        torch.testing.assert_close(maps, expected.detach(), rtol=1e-4, atol=1e-5)


def test_a_layers_map_is_interpolated(network: nn.Module) -> None:
    method = adapter.method("LayerGradCam", layer="1", relu_attributions=True)
    maps = saliency_assay.attribute(method, network, IMAGES, TARGETS)
    own = saliency_assay.attribute(
        "gradcam",
        saliency_assay.wrap(network, classes=3, mean=[0] * 3, std=[1] * 3, cam_layer="1"),
        IMAGES,
        TARGETS,
    )
    assert maps.shape == (5, 1, 8, 8)
    torch.testing.assert_close(maps, own, rtol=1e-4, atol=1e-6)
    coarse = saliency_assay.attribute(adapter.method("LayerActivation", layer="2"), network, IMAGES, TARGETS)
    assert coarse.shape == (5, 1, 8, 8)


@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
@pytest.mark.parametrize("name", ["GradientShap", "KernelShap", "DeepLiftShap"])
def test_random_maps_depend_on_the_seed_and_not_on_the_batch(name: str, network: nn.Module) -> None:
    method = adapter.method(name, **({} if name == "DeepLiftShap" else {"n_samples": 4}))
    background = {} if name == "KernelShap" else {"background": BACKGROUND}

    def maps(**options: int) -> Tensor:
        torch.rand(1)
        return saliency_assay.attribute(method, network, IMAGES, TARGETS, **background, **options)

    torch.testing.assert_close(maps(batch_size=2), maps(batch_size=5), rtol=1e-4, atol=1e-6)
    assert (name == "DeepLiftShap") == bool(torch.equal(maps(seed=0), maps(seed=1)))


def test_the_callers_random_numbers_are_left_alone(network: nn.Module) -> None:
    def after(action: Any) -> tuple[float, float]:
        torch.manual_seed(3)
        np.random.seed(3)  # noqa: NPY002
        action()
        return torch.rand(1).item(), float(np.random.rand())  # noqa: NPY002

    method = adapter.method("GradientShap", n_samples=2)
    arguments = method, network, IMAGES, TARGETS
    assert after(lambda: saliency_assay.attribute(*arguments, background=BACKGROUND)) == after(lambda: None)


def test_methods_behind_captums_call(network: nn.Module) -> None:
    expected = saliency_assay.attribute("lrp_epsilon", network, IMAGES, TARGETS)
    attribution = adapter.Attribution("lrp_epsilon", network)
    torch.testing.assert_close(attribution.attribute(IMAGES, target=TARGETS), expected)
    torch.testing.assert_close(attribution.attribute(IMAGES, target=TARGETS.tolist()), expected)
    of_one_class = saliency_assay.attribute("lrp_epsilon", network, IMAGES, torch.ones(5, dtype=torch.int64))
    torch.testing.assert_close(attribution.attribute(IMAGES, target=1), of_one_class)
    with pytest.raises(ValueError, match="inputs"):
        attribution.attribute((IMAGES, IMAGES))  # type: ignore[arg-type]


def test_normalized_inputs(network: nn.Module) -> None:
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
    normalized = (IMAGES - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    model = saliency_assay.wrap(network, classes=3, mean=mean, std=std)
    expected = saliency_assay.attribute("integrated_gradients", model, IMAGES, TARGETS, steps=5)
    attribution = adapter.Attribution("integrated_gradients", network, mean=mean, std=std, steps=5)
    maps = attribution.attribute(normalized, target=TARGETS)
    torch.testing.assert_close(maps, expected, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="inputs"):
        attribution.attribute(10 * normalized, target=TARGETS)
    with pytest.raises(ValueError, match="std"):
        adapter.Attribution("gradient", network, mean=mean).attribute(normalized, target=TARGETS)


def test_a_forward_function_with_further_arguments(network: nn.Module) -> None:
    def scaled(images: Tensor, scale: float) -> Tensor:
        return scale * network(images)

    maps = saliency_assay.attribute("gradient", adapter.model(scaled, 3.0), IMAGES, TARGETS)
    expected = 3 * saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    torch.testing.assert_close(maps, expected)
    behind = adapter.Attribution("gradient", scaled).attribute(IMAGES, TARGETS, additional_forward_args=3.0)
    torch.testing.assert_close(behind, expected)


def perturb(images: Tensor) -> tuple[Tensor, Tensor]:
    noise = 0.1 * torch.randn_like(images)
    return noise, images - noise


def test_functions_of_maps_are_metrics(network: nn.Module) -> None:
    def exact(images: Tensor) -> tuple[Tensor, Tensor]:
        return 0.5 * images, 0.5 * images

    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    expected = captum.metrics.infidelity(network, exact, IMAGES, maps, target=TARGETS)
    metric = adapter.metric(captum.metrics.infidelity, perturb_func=exact)
    scores = saliency_assay.score(metric, network, IMAGES, TARGETS, maps)
    np.testing.assert_allclose(scores["infidelity"], expected.detach(), rtol=1e-4)
    random = adapter.metric(captum.metrics.infidelity, perturb_func=perturb, n_perturb_samples=3)
    one, two, other = (
        saliency_assay.score(random, network, IMAGES, TARGETS, maps[:, :1], batch_size=size, seed=seed)
        for size, seed in ((2, 0), (5, 0), (5, 1))
    )
    np.testing.assert_allclose(one["infidelity"], two["infidelity"], rtol=1e-4)
    assert not np.allclose(two["infidelity"], other["infidelity"])


@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require gradients")  # of the direct call
def test_functions_of_a_method_are_metrics(network: nn.Module) -> None:
    def brighter(inputs: Any, radius: float) -> Any:
        return inputs + radius

    arguments = {"perturb_func": brighter, "perturb_radius": 0.2, "n_perturb_samples": 2}
    metric = adapter.metric(captum.metrics.sensitivity_max, **arguments)
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    scores = saliency_assay.score(metric, network, IMAGES, TARGETS, maps, method="gradient")
    explain = captum.attr.Saliency(network).attribute
    expected = captum.metrics.sensitivity_max(explain, IMAGES, target=TARGETS, abs=False, **arguments)
    np.testing.assert_allclose(scores["sensitivity_max"], expected, rtol=1e-4)
    entry = {"metric": metric, "direction": "lower"}
    result = saliency_assay.benchmark(network, (IMAGES, TARGETS), ["gradient"], [entry], progress=False)
    np.testing.assert_allclose(result.scores["score"], scores["sensitivity_max"], rtol=1e-4)
    with pytest.raises(ValueError, match="method: missing"):
        saliency_assay.score(metric, network, IMAGES, TARGETS, maps)


def test_a_metric_without_its_adapter_names_it(network: nn.Module) -> None:
    with pytest.raises(ValueError, match=r"adapters\.captum\.metric\(infidelity"):
        saliency_assay.score(captum.metrics.infidelity, network, IMAGES, TARGETS, IMAGES)
    for function, arguments, message in (
        (captum.metrics.infidelity, {}, "infidelity: perturb_func: missing"),
        (captum.metrics.infidelity, {"perturb_func": perturb, "samples": 3}, "unknown argument 'samples'"),
        (perturb, {}, "captum: found perturb"),
    ):
        with pytest.raises(ValueError, match=message):
            adapter.metric(function, **arguments)


INVALID: dict[str, tuple[Any, dict[str, Any], str]] = {
    "class": ("GradientShapp", {}, "GradientShap"),
    "argument": ("GradientShap", {"samples": 3}, "n_samples"),
    "neuron": ("NeuronGradient", {}, "neuron"),
    "wrapper": ("NoiseTunnel", {}, "NoiseTunnel"),
    "batch": ("FeaturePermutation", {}, "batch"),
    "no attribution": ("visualization", {}, "captum"),
    "missing layer": ("LayerGradCam", {}, "layer"),
    "superfluous layer": ("Saliency", {"layer": "1"}, "layer"),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_calls_are_refused(case: str) -> None:
    name, arguments, place = INVALID[case]
    with pytest.raises(ValueError, match=place):
        adapter.method(name, **arguments)


def test_an_unknown_layer_is_refused(network: nn.Module) -> None:
    with pytest.raises(ValueError, match="layer"):
        saliency_assay.attribute(adapter.method("LayerGradCam", layer="conv9"), network, IMAGES, TARGETS)


@pytest.mark.filterwarnings("ignore")
def test_the_page_on_other_libraries_runs(network: nn.Module) -> None:
    page = (ROOT / "docs/howto/coming-from.md").read_text()
    mean, std = [0.5] * 3, [0.25] * 3
    names: dict[str, Any] = {"network": network, "mean": mean, "std": std, "background": BACKGROUND}
    names |= {"images": IMAGES, "targets": TARGETS, "inputs": (IMAGES - 0.5) / 0.25}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "docs/howto/coming-from.md", "exec"), names)
    torch.testing.assert_close(names["ours"], torch.as_tensor(names["array"]))
    calls = re.findall(r"\| `(saliency_assay\.(?:attribute|score|wrap)\(.*?)` \|$", page, re.MULTILINE)
    assert len(calls) == 10
    for call in calls:
        eval(call, names)

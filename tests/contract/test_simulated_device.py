"""Every method, every metric and a training step on a device that exists only in tests."""

import functools
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import test_metrics_contract as contract
import torch
from scipy import stats
from simulated_device import DEVICE, SimulatedTensor, Simulation, simulated, to_simulated
from support import (
    attention_classifier,
    bound,
    conv_classifier,
    cyclic_targets,
    designed_classifier,
    random_images,
)
from torch import Tensor, nn

from saliency_assay.methods import METHODS, Method, sampling
from saliency_assay.methods.engine import frozen
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.sampling import BlockGenerator, each_sample, hashed, standard_normal, uniform
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.metrics import Metric
from saliency_assay.metrics.engine import Explainer, MetricInputs, model_responses, score
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating
from saliency_assay.registry.records import resolve
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import _optimizer, _training_step, augment, remove_pixels
from saliency_assay.training.state import Progress

LIBRARY = "computed by a library on the CPU"
SHAPE = "the size of the result depends on the values"
ONCE = "an error must be raised before the scores are used; once for each order of pixels or set of masks"
WAITS = {
    "methods.cam:_is_head": "the layer must be checked before its weights are used; once for each batch",
    "methods.cam:eigencam": "the singular value decomposition must have converged; once for each batch",
    "methods.kernel_shap:_padded_coalitions": "coalitions are sampled for the number of segments of each image",
    "methods.lime:sample_present": "masks are sampled for the number of segments of each image",
    "methods.optimal:factorize": "a singular matrix needs another factorization; once for all batches",
    "methods.optimal:shared_squares": "one term for each side of a square; once for all batches",
    "methods.segments:_superpixels": LIBRARY,
    "methods.segments:pixel_counts": "the largest number of segments of an image is a dimension of the result",
    "methods.xrai:xrai": LIBRARY,
    "metrics.fills:fill": LIBRARY,
    "metrics.infidelity:noisy_baselines": ONCE,
    "metrics.interpolation:impute": LIBRARY,
    "metrics.localization:_otsu": LIBRARY,
    "metrics.mprt:_complexity": LIBRARY,
    "metrics.perturbation:_check_finite": ONCE,
    "metrics.perturbation:evaluate_order": "equal perturbed images are passed once; two for each order of pixels",
    "metrics.randomization:ssim": LIBRARY,
    "metrics.randomization:ssim.<locals>.<listcomp>": LIBRARY,
    "metrics.regions:_sums": "the largest number of regions of an image is a dimension of the result",
}
"""Functions that wait for the device within a batch, and why."""
IMAGES, TARGETS = random_images(5, dtype=torch.float32), cyclic_targets(5)


@pytest.fixture
def like_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of a GPU on the CPU, too, so that values can be compared."""
    monkeypatch.setattr(sampling, "ROW_BY_ROW", set())
    monkeypatch.setattr("saliency_assay.methods.model_free.ROW_BY_ROW", set())


def functions(waits: Counter[str]) -> set[str]:
    return {wait.split()[0] for wait in waits}


# ------------------------------------------------------------------------------------- the simulation itself


def test_devices_do_not_mix() -> None:
    host = torch.ones(2)
    with simulated():
        values = SimulatedTensor(torch.ones(2))
        with pytest.raises(RuntimeError, match="same device"):
            values + host
        assert torch.equal((values + host.to(DEVICE)).cpu(), torch.full((2,), 2.0))
        with pytest.raises(RuntimeError, match="generator"):
            values.normal_(generator=torch.Generator())
        values.normal_(generator=torch.Generator(DEVICE))
        assert (values * torch.tensor(2.0)).device == DEVICE


def test_launches_and_waits_are_counted() -> None:
    with simulated() as counts:
        values = torch.zeros(3, 4, device=DEVICE)
        total = (values.T + 1).sum()
        assert sum(counts.launches.values()) == 3  # zeros, add and sum, but not the view
        assert not counts.waits
        assert total.item() == 12
        _, _ = values[values > 2], total.cpu()
        values.copy_(torch.ones(3, 4), non_blocking=True)
        values.copy_(torch.ones(3, 4))
        torch.tensor([1.0], device=DEVICE)
    reasons = Counter(wait.split(" ", 1)[1].rsplit(" ", 1)[0] for wait in counts.waits.elements())
    copies = {"copy from the device": 1, "copy to the device": 2}
    assert reasons == {"value of a tensor": 1, "index by truth values": 1, **copies}


# ----------------------------------------------------------------------------------------- methods and metrics


def classifier_for(method: Method, dtype: torch.dtype) -> Classifier:
    """A classifier that the method supports."""
    needed = {"attention": attention_classifier, "exact_importance": designed_classifier}
    kind = next((each for need, each in needed.items() if need in method.needs), conv_classifier)
    return kind(dtype=dtype)


def maps_of(method: Method, model: Classifier, images: Tensor, targets: Tensor) -> Tensor:
    """The maps in few passes, with everything that the method takes on the device of the images."""
    call = bound(method, random_images(len(images), dtype=images.dtype))
    if "background" in call.keywords:
        background = call.keywords["background"]
        moved = isinstance(images, SimulatedTensor)
        call.keywords["background"] = SimulatedTensor(background) if moved else background.to(images.device)
    with evaluating(model), frozen(model):
        return call(model, images, targets, generator=BlockGenerator(3, "method"))


@pytest.mark.usefixtures("like_a_gpu")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_method_returns_the_same_maps_and_waits_only_where_it_must(method: Method) -> None:
    model = classifier_for(method, torch.float32)
    expected = maps_of(method, model, IMAGES, TARGETS)
    with simulated() as counts:
        moved = to_simulated(deepcopy(model))
        maps = maps_of(method, moved, SimulatedTensor(IMAGES), SimulatedTensor(TARGETS))
    torch.testing.assert_close(maps.value, expected)
    assert functions(counts.waits) <= set(WAITS)


def scored(
    metric: Metric, model: Classifier, other: Classifier, mean: Tensor, counts: Simulation | None
) -> tuple[dict[Any, np.ndarray], Counter[str]]:
    """The scores of a metric, and the waits within its functions."""
    waits = Counter[str]()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            before = Counter(counts.waits) if counts else Counter[str]()
            result = function(*arguments, **keywords)
            waits.update(Counter(counts.waits) - before if counts else Counter())
            return result

        return call

    parameters = contract.cheap(metric)
    images = model, contract.IMAGES, contract.TARGETS
    run = {"seed": contract.SEED, "batch_size": contract.COUNT}
    responses: dict[str, np.ndarray] = {}
    if metric.responses:
        [responses] = model_responses(
            counted(resolve(metric.responses)),
            contract.read_by(metric.responses, parameters),
            *images,
            inputs=MetricInputs(whole={"mean": mean}),
            **run,
        )
    offered = {"mask": contract.MASK, "responses": responses}
    [block] = score(
        counted(resolve(metric.function)),
        contract.read_by(metric.function, parameters),
        *images,
        contract.MAPS,
        names=[each.name for each in metric.scores],
        inputs=MetricInputs(
            {key: values for key, values in offered.items() if key in metric.takes},
            {"mean": mean, "randomized_model": other, "finetuned_model": other},
            Explainer(smoothgrad, contract.SAMPLES, seed=1) if "explain" in metric.takes else None,
        ),
        **run,
    )
    return {key: values.numpy() for key, values in block.scores.items()}, waits


@pytest.mark.usefixtures("like_a_gpu")
@pytest.mark.parametrize("metric", contract.ON_MAPS, ids=lambda metric: metric.name)
def test_a_metric_returns_the_same_scores_and_waits_only_where_it_must(metric: Metric) -> None:
    models = contract.model(), contract.other_model()
    expected, _ = scored(metric, *models, contract.MEAN, None)
    with simulated() as counts:
        moved = [to_simulated(deepcopy(model)) for model in models]
        scores, waits = scored(metric, *moved, SimulatedTensor(contract.MEAN), counts)
    assert scores.keys() == expected.keys()
    for key, values in scores.items():
        np.testing.assert_allclose(values, expected[key], rtol=1e-6, atol=1e-9)
    assert functions(waits) <= set(WAITS)


# ---------------------------------------------------------------------------------------------- training


def trained(model: Classifier, images: Tensor, labels: Tensor, keys: Tensor) -> Classifier:
    """The model after three steps on augmented images."""
    settings = training_from(
        {"augment_flip": True, "augment_shift": 1, "momentum": 0.9, "learning_rate": 0.1}
    )
    optimizer, progress = _optimizer(model, settings), Progress.start(images.device)
    model.train()
    for _ in range(3):
        batch = augment(images, labels > 1, torch.stack([labels % 3 - 1] * 2, 1))
        batch = remove_pixels(batch, keys, 0.2, batch[0, :, 0, 0])
        _training_step(model, optimizer, batch, labels, 0.1, settings, progress, "float32")
    return model


def test_a_training_step_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # PyTorch knows the devices of fused optimizers and of autocast, which is disabled in float32.
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch.optim, "SGD", functools.partial(_unfused, torch.optim.SGD))
    model = conv_classifier(dtype=torch.float32)
    for layer in model.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    images, keys = (IMAGES * 255).to(torch.uint8), IMAGES[:, 0].flatten(1)
    expected = trained(deepcopy(model), images, TARGETS, keys).state_dict()
    with simulated() as counts:
        moved = to_simulated(deepcopy(model))
        trained(moved, *map(SimulatedTensor, (images, TARGETS, keys)))
    assert not counts.waits
    for name, values in moved.state_dict().items():
        torch.testing.assert_close(values.value, expected[name])


def _unfused(
    optimizer: type[torch.optim.Optimizer], *arguments: Any, **options: Any
) -> torch.optim.Optimizer:
    return optimizer(*arguments, **{**options, "fused": False})


# ------------------------------------------------------------------------------------------------- noise


@pytest.fixture
def noises(like_a_gpu: None) -> dict[str, Callable[[list[int], Tensor], Tensor]]:
    """The distributions as on a GPU."""
    return {"normal": standard_normal, "uniform": uniform}


@pytest.mark.parametrize("rows", [1, 64])
@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_noise_takes_the_same_launches_for_any_number_of_rows(noises: Any, name: str, rows: int) -> None:
    like = SimulatedTensor(torch.zeros(1, 3, 4, 4))
    with simulated() as counts:
        noises[name](list(range(rows)), like)
    assert sum(counts.launches.values()) <= 20
    assert not counts.waits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("name", "distribution", "arguments"), [("normal", "norm", ()), ("uniform", "uniform", (-1, 2))]
)
def test_hashed_noise_has_its_distribution_and_is_independent(
    noises: Any, name: str, distribution: str, arguments: tuple[float, ...], dtype: torch.dtype
) -> None:
    """Of consecutive seeds, the worst case of a hash."""
    values = noises[name](list(range(200)), torch.zeros(1, 3, 9, 9, dtype=dtype)).flatten(1)
    assert values.dtype == dtype
    assert stats.kstest(values.flatten().numpy(), distribution, args=arguments).pvalue > 1e-3
    correlations = torch.corrcoef(values.double())
    off_diagonal = correlations[~torch.eye(len(values), dtype=torch.bool)]
    assert off_diagonal.abs().max() < 5.5 / values.shape[1] ** 0.5
    shifted = (values[:, 1:] * values[:, :-1]).double().mean()
    assert abs(shifted) < 5 * values.double().var() / values.numel() ** 0.5


def test_hashed_values_are_splitmix64() -> None:
    """Reference values of the published generator, seed 1234567."""
    values = hashed([1234567], torch.zeros(1, 1, 1, 4, dtype=torch.float64))[0, 0, 0]
    numbers = 6457827717110365317, 3203168211198807973
    halves = [half for number in numbers for half in (number & 0xFFFFFFFF, number >> 32)]
    assert values.tolist() == [(half - (1 << 32) if half >> 31 else half) / 2**31 for half in halves]


def test_a_row_depends_on_its_seed_alone(noises: Any) -> None:
    like, seeds = torch.zeros(2, 3, 5, 5), [5, 9, 2**62, 11, 0, 7]
    whole = standard_normal(seeds, like)
    for seed, row in zip(seeds, whole, strict=True):
        assert torch.equal(standard_normal([seed], like)[0], row)
    samples = list(each_sample(standard_normal, seeds, 3, like))  # of two images, image after image
    assert torch.equal(torch.stack(samples, 1).flatten(0, 1), whole)


def test_smoothgrad_adds_few_launches_to_its_passes(noises: Any) -> None:
    """In percent of the passes alone, for a network with as many layers as a ResNet-50."""
    layers = [nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU()) for _ in range(50)]
    network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4)).eval()
    with simulated() as counts, frozen(network):  # type: ignore[arg-type]
        moved = to_simulated(network)
        images, targets = map(SimulatedTensor, (IMAGES, TARGETS))
        gradient(moved, images, targets, generator=torch.Generator())
        passes = 10 * sum(counts.launches.values())
        counts.launches.clear()
        smoothgrad(moved, images, targets, generator=torch.Generator(), samples=10)
    assert sum(counts.launches.values()) < 1.05 * passes

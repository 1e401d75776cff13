"""Compare metrics with Quantus 0.6.0, on small random networks and gray images in float64.

    pip install --no-deps quantus==0.6.0 cachetools opencv-python-headless
    python benchmarks/parity_metrics.py

Images are gray, since Quantus treats each channel of a pixel as a feature. Baselines are numbers, since its named ones
differ from our fills. It uses our random samples and superpixels. Some metrics are converted:

- Completeness is Boolean in Quantus; the error is computed from the outputs that it compares.
- IROF: with r_l = f(x^l) / f(x⁰), Quantus returns Q = L − ∫ r over l = 1 … L, and ours is (Q − (1 + r_1) / 2) / L.
- Monotonicity inserts pixels by our function, since Quantus's own changes nothing. Ours is compared with 1.
- Non-sensitivity counts pixels, ours is their share. Like effective complexity, it is given maps with the maximum 1.
- Input invariance is Boolean; the relative change is computed from the maps that it compares, for a network without
  padding.
- Random logit compares maps as images with values from −1 to 1, for which both scale SSIM's constants alike.

For each metric, the program prints the largest difference relative to the largest value, and it exits with status 1
if one is above 1e-5. Then it prints where Quantus departs from the definitions: its number and the definition's.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import common  # noqa: F401  # puts the source folder first on the import path
import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.methods.segments import segment
from saliency_assay.metrics.completeness import completeness
from saliency_assay.metrics.concentration import complexity, effective_complexity, sparseness
from saliency_assay.metrics.faithfulness import single_pixels
from saliency_assay.metrics.input_invariance import input_invariance
from saliency_assay.metrics.localization import mask_ranking
from saliency_assay.metrics.monotonicity import monotonicity
from saliency_assay.metrics.mprt import emprt
from saliency_assay.metrics.non_sensitivity import non_sensitivity
from saliency_assay.metrics.random_logit import random_logit
from saliency_assay.metrics.regions import irof, region_perturbation
from saliency_assay.metrics.relative_stability import relative_stability
from saliency_assay.metrics.sensitivity_n import faithfulness_correlation, random_sets
from saliency_assay.metrics.subsets import sample_subsets, shared
from saliency_assay.models.classifier import Classifier

AGREEMENT = 1e-5
IMAGES, SIZE, CLASSES, SEED = 4, 12, 5, 3
BASELINE = 0.3
FILL: dict[str, Any] = {"fill": "mean", "mean": torch.tensor([BASELINE], dtype=torch.float64)}
SHIFT: dict[str, Any] = {"input_shift": -0.3, "perturb_func": lambda arr, input_shift, **_: arr + input_shift}
"""A shift of all values; Quantus's own leaves out the first one."""
Comparison = tuple[str, np.ndarray, np.ndarray]
Departure = tuple[str, Any, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.set_default_dtype(torch.float64)  # Quantus converts images to the default type
    warnings.simplefilter("ignore")
    patch("numpy.trapz", np.trapezoid, create=True).start()  # Quantus calls it, but NumPy 2.4 removed it
    agrees = True
    comparisons = (map_metrics, axioms, perturbations, monotonicities, randomizations, stabilities)
    for compare in comparisons:
        for name, ours, theirs in compare():
            assert ours.shape == theirs.shape, name
            largest = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
            print(f"{name}: {largest:.1e}", flush=True)
            agrees &= largest <= AGREEMENT  # False if NaN
    print(f"\n{'departures':82} {'Quantus':>10} {'definition':>10}")
    for depart in (
        *(departures_of_maps, departures_of_axioms, departures_of_fills),
        *(departures_of_irof, departures_of_randomness),
    ):
        for departure, number, definition in depart():
            print(f"{departure:82} {number:10.4g} {definition:10.4g}", flush=True)
    sys.exit(not agrees)


@dataclass(frozen=True)
class Case:
    """A model, images ``[N, C, H, W]``, classes ``[N]`` and maps ``[N, C or 1, H, W]``."""

    model: nn.Module
    images: Tensor
    targets: Tensor
    maps: Tensor

    def ours(self, metric: Callable[..., Any], **settings: Any) -> dict[str, np.ndarray]:
        """Return our scores by name."""
        scored = metric(self.model, self.images, self.targets, self.maps, generator=generator(), **settings)
        return {name: values.numpy() for (name, _), values in scored.scores.items()}

    def theirs(self, name: str, call: dict[str, Any] | None = None, **settings: Any) -> np.ndarray:
        """Return Quantus's scores, with ``settings`` of the metric and of its ``call``."""
        settings = {"return_aggregate": False, "disable_warnings": True, **settings}
        settings.setdefault("normalise", False)  # codespell:ignore
        metric = getattr(import_module("quantus"), name)(**settings)
        # Copies, since some of its metrics change the arrays.
        x, y, a = (values.numpy().copy() for values in (self.images, self.targets, self.maps))
        return np.asarray(
            metric(self.model, x_batch=x, y_batch=y, a_batch=a, channel_first=True, **(call or {}))
        )


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)


def random_case() -> Case:
    """Return a network with a hidden layer, images with superpixels, and gradients."""
    torch.manual_seed(SEED)
    head = nn.Linear(4 * SIZE**2, CLASSES)
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Softplus(), nn.Flatten(), head)
    head.weight.data *= 4
    blocks, noise = torch.rand(IMAGES, 1, 3, 3), torch.rand(IMAGES, 1, SIZE, SIZE)
    images, targets = nn.Upsample(SIZE)(blocks) * 0.8 + noise * 0.2, torch.arange(IMAGES) % CLASSES
    model = model.eval().requires_grad_(False)
    return Case(model, images, targets, gradient(images, targets, model=model))


def linear_case(weights: Tensor, images: Tensor, maps: Tensor) -> Case:
    """Return a model with logits 0 and the sum of ``weights`` times the image, which is explained."""
    head = nn.Linear(weights.numel(), 2, bias=False)
    head.weight.data = torch.stack([weights.flatten(), torch.zeros(weights.numel())])
    model = nn.Sequential(nn.Flatten(), head).requires_grad_(False)
    return Case(model.eval(), images, torch.zeros(len(images), dtype=torch.int64), maps)


def gradient(images: Tensor, targets: Tensor, *, model: nn.Module) -> Tensor:
    images = images.clone().requires_grad_()
    return torch.autograd.grad(model(images).gather(1, targets[:, None]).sum(), images)[0]


def gradient_x_input(images: Tensor, targets: Tensor, *, model: nn.Module) -> Tensor:
    return images * gradient(images, targets, model=model)


def explained_by(explain: Callable[..., Tensor]) -> dict[str, Any]:
    """Return a method as the argument of Quantus's calls, a function of arrays."""

    def explain_arrays(model: nn.Module, inputs: np.ndarray, targets: np.ndarray) -> Any:
        return explain(torch.from_numpy(inputs), torch.from_numpy(targets), model=model).numpy()

    return {"explain_func": explain_arrays}


def map_metrics() -> Iterator[Comparison]:
    """Compare sparseness, complexities, the ROC AUC of a mask, and the two numbers that completeness compares."""
    case, outputs = random_case(), list[np.ndarray]()
    yield "sparseness", case.ours(sparseness)["sparseness"], case.theirs("Sparseness")
    yield "complexity", case.ours(complexity)["complexity"], case.theirs("Complexity")
    threshold = 0.1
    count = scaled_case().theirs("EffectiveComplexity", eps=threshold)
    ours = case.ours(effective_complexity, threshold=threshold)
    yield "effective complexity", ours["effective_complexity"], count
    mask = case.images > case.images.mean()
    auc = case.theirs("AUC", {"s_batch": mask.numpy()})
    yield "mask auc", case.ours(mask_ranking, mask=mask[:, 0])["mask_auc"], auc
    case.theirs("Completeness", perturb_baseline=0.0, output_func=outputs.append)
    error = np.abs(case.maps.sum((1, 2, 3)).numpy() - outputs[0])
    yield "completeness", case.ours(completeness)["completeness"], error


def axioms() -> Iterator[Comparison]:
    """Compare non-sensitivity, and the maps that input invariance compares."""
    case, threshold = scaled_case(), 1e-3
    count = case.theirs("NonSensitivity", eps=threshold, perturb_baseline=BASELINE)
    assert 0 < count.min() < count.max() < SIZE**2
    inputs = case.model, case.images, case.targets
    responses = single_pixels(*inputs, generator=generator(), pixels=SIZE**2, **FILL)
    share = case.ours(non_sensitivity, responses=responses, threshold=threshold)["non_sensitivity"]
    yield "non-sensitivity", share * SIZE**2, count

    for name, explain in (("gradient", gradient), ("gradient × input", gradient_x_input)):
        case, explained = invariance_case(explain, padding=0), list[Tensor]()

        def explain_and_keep(
            *inputs: Tensor, explain: Any = explain, maps: Any = explained, **model: Any
        ) -> Any:
            maps.append(explain(*inputs, **model))
            return maps[-1]

        case.theirs("InputInvariance", explained_by(explain_and_keep), **SHIFT)
        change = (explained[-1] - case.maps).flatten(1).norm(dim=1) / case.maps.flatten(1).norm(dim=1)
        ours = invariance(case, explain)
        yield f"input invariance of {name}, plus 1", 1 + ours, 1 + change.numpy()


def scaled_case() -> Case:
    """Return the random case with maps whose largest absolute value is 1."""
    case = random_case()
    return replace(case, maps=case.maps / case.maps.abs().amax((1, 2, 3), keepdim=True))


def invariance_case(explain: Callable[..., Tensor], *, padding: int) -> Case:
    """Return a network whose first layer has the ``padding``, and maps of a method."""
    case = random_case()
    torch.manual_seed(SEED)
    side = SIZE - 2 + 2 * padding
    first, head = nn.Conv2d(1, 4, 3, padding=padding), nn.Linear(4 * side**2, CLASSES)
    model = nn.Sequential(first, nn.Softplus(), nn.Flatten(), head).eval().requires_grad_(False)
    return replace(case, model=model, maps=explain(case.images, case.targets, model=model))


def invariance(case: Case, explain: Callable[..., Tensor]) -> np.ndarray:
    """Return our input invariance for the network of a case, with pixels as they are."""
    unchanged: dict[str, Any] = {"mean": [0.0], "std": [1.0], "cam_layer": "0", "concept_layers": ()}
    model = Classifier(case.model, classes=CLASSES, **unchanged).double()
    of_classifier = replace(case, model=model)
    return of_classifier.ours(input_invariance, explain=explain, shift=-0.3)["input_invariance"]


def perturbations() -> Iterator[Comparison]:
    """Compare region perturbation, IROF and faithfulness correlation."""
    case = random_case()
    aopc = case.ours(region_perturbation, side=4, regions=6, **FILL)
    for order in ("morf", "lerf"):
        settings: dict[str, Any] = {"patch_size": 4, "regions_evaluation": 6, "perturb_baseline": BASELINE}
        drops = case.theirs("RegionPerturbation", order=order, **settings)
        yield f"region perturbation {order}", aopc[f"region_perturbation_{order}"], drops.sum(1) / 7

    labels, utils = segment(case.images, "superpixels", 9), import_module("quantus.helpers.utils")
    with patch.object(utils, "calculate_auc", wraps=utils.calculate_auc) as area:
        # One image at a time, since the score depends on the others if they have more superpixels.
        areas = quantus_irof(case, labels, {"batch_size": 1}, perturb_baseline=BASELINE)
    first_ratios = np.array([call.args[0][0, 0] for call in area.call_args_list])
    converted = (areas - (1 + first_ratios) / 2) / (labels.amax((1, 2)).numpy() + 1)
    yield "irof", case.ours(irof, segments=9, **FILL)["irof"], converted

    subsets, size = 40, round(0.2 * SIZE**2)
    sizes = torch.full((subsets,), size)
    sets = torch.cat([*sample_subsets(sizes, SIZE**2, shared(generator()), case.images.device)])
    with patch("numpy.random.choice", side_effect=[np.flatnonzero(row) for row in sets for _ in case.images]):
        settings = {"nr_runs": subsets, "subset_size": size, "perturb_baseline": BASELINE}
        rho = case.theirs("FaithfulnessCorrelation", **settings)
    inputs = case.model, case.images, case.targets
    responses = random_sets(*inputs, generator=generator(), subsets=subsets, **FILL)
    scores = case.ours(faithfulness_correlation, responses=responses, subsets=subsets)
    yield "faithfulness correlation", scores["faithfulness_correlation"], rho


def quantus_irof(
    case: Case, labels: Tensor, call: dict[str, Any] | None = None, **settings: Any
) -> np.ndarray:
    with patch("quantus.helpers.utils.get_superpixel_segments", side_effect=list(labels.numpy())):
        return case.theirs("IROF", call, **settings)


def monotonicities() -> Iterator[Comparison]:
    """Compare monotonicity for images with and without a pixel that decreases the output."""
    case, weights = random_case(), torch.rand(SIZE, SIZE) / SIZE
    weights[5, 5] *= -1
    case.images[::2, :, 5, 5] = 0
    case = linear_case(weights, case.images, case.maps)

    def insert(arr: np.ndarray, indices: np.ndarray, **_: Any) -> np.ndarray:
        originals = case.images.flatten(1).numpy()
        np.put_along_axis(arr, indices, np.take_along_axis(originals, indices, 1), 1)
        return arr

    is_monotonic = case.theirs("Monotonicity", abs=False, perturb_func=insert, perturb_baseline=0.0)
    assert set(is_monotonic.tolist()) == {True, False}
    share = case.ours(monotonicity, steps="exact")["monotonicity"]
    yield "monotonicity", (share == 1).astype(float), is_monotonic.astype(float)


def randomizations() -> Iterator[Comparison]:
    """Compare random logit, for our classes, and efficient MPRT, for Quantus's randomized model."""
    case, classes = random_case(), list[Tensor]()

    def explain(images: Tensor, targets: Tensor, *, model: nn.Module = case.model) -> Tensor:
        classes.append(targets)
        maps = gradient(images, targets, model=model)
        bounds = torch.where(maps > 0, maps.amax((1, 2, 3), True), -maps.amin((1, 2, 3), True))
        return maps / bounds

    def ssim(*maps: np.ndarray, **_: Any) -> Any:
        images = (each.reshape(-1, SIZE, SIZE) for each in maps)
        return import_module("quantus").similarity_func.ssim(*images, batched=True)

    scaled = replace(case, maps=explain(case.images, case.targets))
    similarity = scaled.ours(random_logit, explain=explain)["random_logit"]
    numbers = classes[-1] - (classes[-1] > case.targets).long()  # among all classes but the target
    with patch("numpy.random.randint", return_value=numbers.numpy()):
        theirs = scaled.theirs(
            "RandomLogit", explained_by(explain), similarity_func=ssim, num_classes=CLASSES
        )
    assert torch.equal(classes[-1], classes[-2])
    yield "random logit", similarity, theirs

    rise = case.theirs("EfficientMPRT", explained_by(gradient), complexity_func_kwargs={"n_bins": 100})
    scores = case.ours(emprt, explain=gradient, randomized_model=randomized(case.model), bins=100)
    yield "efficient mprt", scores["emprt"], rise


def randomized(model: nn.Module) -> nn.Module:
    """Return the model of Quantus's efficient MPRT, with all layers randomized."""
    wrapper = import_module("quantus").helpers.utils.get_wrapped_model(model, True, False)
    *_, (_, new_model) = wrapper.get_random_layer_generator(order="bottom_up", seed=42)
    copied: nn.Module = deepcopy(new_model)
    return copied


def stabilities() -> Iterator[Comparison]:
    """Compare relative stability for the same neighbors."""
    case, samples, noise = random_case(), 5, 0.01
    seeds = sample_seeds(IMAGES, samples, generator())
    neighbors = [
        case.images + noise * standard_normal(seeds[i::samples], case.images) for i in range(samples)
    ]
    explain = {"explain": lambda *inputs: gradient(*inputs, model=case.model)}
    ours = case.ours(relative_stability, **explain, noise=noise, samples=samples)
    yield "ris", ours["ris"], quantus_stability(case, "Input", neighbors, gradient)
    yield "ros", ours["ros"], quantus_stability(case, "Output", neighbors, gradient)
    theirs = quantus_stability(case, "Representation", neighbors, gradient, layer_names=["2"])
    yield "rrs", ours["rrs"], theirs


def quantus_stability(
    case: Case, of: str, neighbors: list[Tensor], explain: Callable[..., Tensor], **settings: Any
) -> np.ndarray:
    arrays = iter(neighbors)
    settings |= {"nr_samples": len(neighbors), "perturb_func": lambda **_: next(arrays).flatten(1).numpy()}
    return case.theirs(f"Relative{of}Stability", explained_by(explain), **settings)


def departures_of_maps() -> Iterator[Departure]:
    """Compare the Gini index of tiny values, complete maps, and SSIM of transposed maps."""
    random, quantus = random_case(), import_module("quantus")
    peaks = torch.zeros(2, 1, SIZE, SIZE)
    peaks[:, 0, 5, 5] = torch.tensor([1e-9, 1])
    case = replace(random, images=random.images[:2], targets=random.targets[:2], maps=peaks)
    gini = 1 - SIZE**-2
    yield "Sparseness of one pixel of 1e-9: 1e-7 is added to all", case.theirs("Sparseness")[0], gini
    beside = case.theirs("Sparseness", normalise=True)[0]  # codespell:ignore
    yield "  normalized by default: by the maximum of the batch, 1", beside, gini

    weights = torch.rand(SIZE, SIZE)
    case = linear_case(weights, random.images, weights * random.images)
    completed = case.theirs("Completeness", perturb_baseline=0.0)
    yield "Completeness, share of complete maps, image × gradient of a linear model: ==", completed.mean(), 1
    weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    case = linear_case(weights, torch.ones(1, 1, 2, 2), weights[None, None])
    completed = case.theirs("Completeness", perturb_baseline=0.0, normalise=True)  # codespell:ignore
    yield "  with integers, which are exact: maps are normalized by default", completed[0], 1

    rows = torch.linspace(0, 9, SIZE).sin()[:, None] * torch.ones(SIZE)
    maps = torch.stack([rows, rows.roll(2, 0)])[:, None]
    for name, (first, second) in {"rows": maps, "columns": maps.mT}.items():
        case = replace(random, images=random.images[:1], targets=random.targets[:1], maps=first[None])
        other = {"explain": lambda *_, second=second, **__: second[None]}
        theirs = case.theirs("RandomLogit", explained_by(other["explain"]), num_classes=CLASSES)[0]
        definition = case.ours(random_logit, **other)["random_logit"][0]
        yield f"Random logit of constant {name}: SSIM of vectors", theirs, definition
    is_higher = quantus.RegionPerturbation.score_direction.value == "higher"
    yield "Region perturbation, MoRF by default: is a higher score declared better?", is_higher, True


def departures_of_axioms() -> Iterator[Departure]:
    """Compare counts of tiny values, effects of several pixels, and shifts of images and of layers with padding."""
    peaks = torch.zeros(1, 1, 2, 2)
    peaks[0, 0, 0] = torch.tensor([1e-9, 2e-9])
    case = linear_case(torch.ones(2, 2), torch.ones(1, 1, 2, 2), peaks)
    count = case.ours(effective_complexity)["effective_complexity"][0]
    yield (
        "Effective complexity of two pixels of 1e-9 and 2e-9: the threshold is absolute",
        case.theirs("EffectiveComplexity")[0],
        count,
    )

    weights = torch.ones(2, 2)
    weights[0, 0] = 0
    case = linear_case(weights, torch.ones(1, 1, 2, 2), weights[None, None])
    steps = case.theirs("NonSensitivity", features_in_step=4)[0]
    yield "Non-sensitivity of an exact map, four pixels at a time: compared with single pixels", steps, 0

    case = invariance_case(gradient, padding=1)
    is_invariant = case.theirs("InputInvariance", explained_by(gradient), **SHIFT)
    expected = (invariance(case, gradient) < AGREEMENT).mean()
    yield "Input invariance of the gradient, first layer padded: wrong bias", is_invariant.mean(), expected

    def explain_and_count(images: Tensor, targets: Tensor, *, model: nn.Module) -> Tensor:
        counts.append(int((images != case.images).sum()) // IMAGES)
        return images

    counts = list[int]()
    case.theirs("InputInvariance", explained_by(explain_and_count))
    yield "  pixels of an image that are shifted: all but the first", counts[-1], SIZE**2


def departures_of_fills() -> Iterator[Departure]:
    """Compare the fills black and mean, and the pixels that monotonicity inserts."""
    images, maps = torch.tensor([[[[0.0, 0.0], [0.0, 1.0]]]]), torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    logit, ones = {"softmax": False}, torch.ones(2, 2)
    drops = linear_case(ones, images / 2 + 0.5, maps).theirs("RegionPerturbation", logit, patch_size=1)
    yield "Region perturbation, black: decrease of the sum 2.5 without all pixels", drops[0, -1], 2.5
    settings = {"patch_size": 1, "perturb_baseline": "mean"}
    drops = linear_case(ones, images, maps).theirs("RegionPerturbation", logit, **settings)
    yield "  mean: decrease of the sum 1 if two pixels are filled: mean of the filled image", drops[0, 1], 0.5
    case = linear_case(-ones, images / 2 + 0.5, maps)
    share = case.ours(monotonicity, steps="exact")["monotonicity"][0]
    yield (
        "Monotonicity, all pixels decrease the output: it inserts none",
        case.theirs("Monotonicity")[0],
        share,
    )


def departures_of_irof() -> Iterator[Departure]:
    """Compare IROF for models that ignore the image or use one pixel, batches, and images of three channels."""
    images, maps = torch.ones(1, 1, 4, 4), torch.arange(16.0).reshape(1, 1, 4, 4)
    few, many = torch.arange(16).reshape(1, 4, 4) // 4, torch.arange(16).reshape(1, 4, 4)
    case = linear_case(torch.zeros(4, 4), images, maps)
    yield "IROF, model ignores the image: begins without a superpixel", quantus_irof(case, few)[0], 0
    pair = linear_case(torch.zeros(4, 4), images.expand(2, -1, -1, -1), maps.expand(2, -1, -1, -1))
    in_batch = quantus_irof(pair, torch.cat([few, many]))[0]
    yield "  beside an image with more superpixels: a trapezoid more", in_batch, 0
    case = linear_case(torch.where(maps == 15, 100.0, 0.0), images, maps)
    for labels, count in ((few, 4), (many, 16)):
        area = quantus_irof(case, labels, perturb_baseline=-1.0)[0]
        yield f"IROF, first of {count} superpixels decides: not divided by {count}", area, 1 - 1 / (2 * count)
    case = linear_case(torch.ones(4, 4), maps / 16, maps)
    pair = replace(pair, model=case.model, images=torch.cat([case.images, images]))
    beside, alone = quantus_irof(pair, torch.cat([few, few]))[0], quantus_irof(case, few)[0]
    yield "IROF, mean by default: beside a white image, and alone: mean of the batch", beside, alone
    case = linear_case(torch.ones(3, 4, 4), maps.repeat(1, 3, 1, 1) / 48, maps)
    try:
        area = quantus_irof(case, few)[0]
    except AssertionError:  # the shape of the mask, which has one channel
        area = np.nan
    colored = case.ours(irof, segments=4, fill="black")["irof"][0]
    yield "IROF, three channels: AssertionError", area, colored


def departures_of_randomness() -> Iterator[Departure]:
    """Compare samples of classes, weights and neighbors, and numbers of bins."""
    case, quantus = random_case(), import_module("quantus")
    case = replace(case, maps=case.images, targets=torch.zeros_like(case.targets))

    def numbered(images: Tensor, targets: Tensor, *, model: nn.Module) -> Tensor:
        return images * targets[:, None, None, None]

    def ratio(one: np.ndarray, other: np.ndarray, **_: Any) -> np.ndarray:
        ratios: np.ndarray = np.round(other[:, 0] / one[:, 0])
        return ratios

    call = {**explained_by(numbered), "batch_size": 1}
    classes = case.theirs("RandomLogit", call, num_classes=CLASSES, similarity_func=ratio)
    expected = (CLASSES - 1) * (1 - (1 - 1 / (CLASSES - 1)) ** IMAGES)
    yield "Random logit, batches of 1: other classes, seeded in each", len(np.unique(classes)), expected
    first, _, second, _ = randomized(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).eval()).parameters()
    is_same = torch.equal(first, second)
    yield "Efficient MPRT: are new weights of two layers equal? seeded for each layer", is_same, False
    bins = quantus.functions.n_bins_func.rice_rule(torch.rand(1, 16, 16, 16).numpy())
    yield "  bins by Rice's rule, 2 n^(1/3), for n = 4096: n is the number of axes", bins, 32

    perturb = quantus.RelativeInputStability(disable_warnings=True).perturb_func
    noise = perturb(arr=np.zeros((1, 9999)), indices=np.arange(9999)[None])
    yield "Relative stability: mean of the noise, by default uniform in [0.02, 0.2]", noise.mean(), 0
    case = linear_case(torch.ones(2, 2), torch.ones(1, 1, 2, 2), torch.arange(-1.0, 3).reshape(1, 1, 2, 2))

    def product(images: Tensor, targets: Tensor, *, model: nn.Module) -> Tensor:
        return images * case.maps

    largest, with_other = (
        quantus_stability(case, "Input", [factor * case.images for factor in factors], product)[0]
        for factors in ((1.5,), (1.5, -1))
    )
    yield "RIS if one of two neighbors has another class", with_other, largest


if __name__ == "__main__":
    main()

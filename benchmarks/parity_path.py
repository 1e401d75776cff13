"""Compare the path methods with captum and with their authors' code, on shared random weights in float64.

- GradientSHAP and, without noise, Expected Gradients: captum's GradientShap, which is given our background images,
  positions and noise.
- Guided IG, Blur IG and XRAI: a clone of PAIR-code/saliency, the code of their authors. Blur IG is given gradients
  averaged over both ends of an interval, and a derivative over a whole interval, which makes its sum the trapezoid
  rule; "as released" is the left sum of the code itself, from which ours differs by quadrature error. XRAI is given our
  integrated gradients, and segments the image of 224 pixels by itself.

For each, the program prints the largest difference relative to the largest value of the map, and the time of the other
code divided by ours, for one image at a time, since the authors' code explains a single image. It exits with status 1
if a difference is above 1e-5 where equality is expected.

    python benchmarks/parity_path.py --saliency saliency --threads 1
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

import captum.attr
import numpy as np
import torch
from common import CLASSES, classifier, parser_of
from skimage.data import astronaut
from torch import Tensor

from saliency_assay.methods.blur_ig import blur_ig
from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.methods.expected_gradients import expected_gradients, gradient_shap, sample_starts
from saliency_assay.methods.guided_ig import guided_ig
from saliency_assay.methods.path import mean_gradient, quadrature
from saliency_assay.methods.sampling import standard_normal
from saliency_assay.methods.xrai import xrai
from saliency_assay.models.classifier import Classifier

AGREEMENT = 1e-5
IMAGES, BACKGROUND, SAMPLES, NOISE = 3, 5, 25, 0.125
XRAI_SIZE, XRAI_STEPS = 224, 5
BLUR_STEPS, BLUR_SIGMA = 100, 0.22
GUIDED: tuple[dict[str, Any], ...] = (
    {},
    {"steps": 50, "fraction": 0.1, "max_dist": 0.1, "baseline": "mean"},
    {"steps": 30, "max_dist": 1.0},
    {"steps": 25, "max_dist": 0.0},
)
Maps = Callable[[Tensor, Tensor], Tensor]
"""Function of an image ``[1, C, H, W]`` and its target ``[1]`` that returns its map."""


class Comparison(NamedTuple):
    """Two functions, whose maps are equal if ``equal``, and the size of their images."""

    name: str
    ours: Maps
    theirs: Maps
    size: int = 32
    equal: bool = True


def photographs(size: int) -> Tensor:
    """Return parts of a photograph, float64 ``[IMAGES, 3, size, size]`` in [0, 1]."""
    photograph = torch.from_numpy(astronaut()).permute(2, 0, 1).double() / 255
    parts = torch.stack([photograph[:, start : start + 224, start : start + 224] for start in (0, 100, 200)])
    return torch.nn.functional.adaptive_avg_pool2d(parts, size)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def captum_gradient_shap(
    model: Classifier, background: Tensor, noise: float, image: Tensor, target: Tensor
) -> Tensor:
    """Compute captum's GradientShap with our samples in place of those of the global generators."""
    sources, positions, seeds = sample_starts(1, SAMPLES, BACKGROUND, seeded())
    with (
        patch.object(np.random, "choice", lambda *_: sources[0].numpy()),
        patch.object(np.random, "uniform", lambda *_: positions[0].numpy()),
        patch.object(torch, "normal", lambda mean, scales: scales * standard_normal(seeds, image)),
    ):
        return (
            captum.attr.GradientShap(model)
            .attribute(image, background, n_samples=SAMPLES, stdevs=noise, target=target)
            .detach()
        )


def last(image: Tensor) -> np.ndarray:
    """Return one image with its channels last."""
    return image[0].permute(1, 2, 0).numpy()


def first(values: np.ndarray) -> Tensor:
    """Return one map with its channels first, ``[1, C, H, W]``."""
    return torch.from_numpy(np.atleast_3d(values)).permute(2, 0, 1)[None]


def gradients(model: Classifier, target: Tensor, average_to: np.ndarray | None = None) -> Callable[..., Any]:
    """Return the model function of the authors' code.

    With the last image of a path, ``average_to``, the gradients at an image and at the following one are averaged.
    """

    def call(images: np.ndarray, call_model_args: object = None, expected_keys: object = None) -> Any:
        points = images if average_to is None else np.concatenate([images, average_to[None]])
        pixels = torch.from_numpy(np.ascontiguousarray(points)).permute(0, 3, 1, 2)
        slopes = input_gradient(model, pixels, target.expand(len(pixels)))
        if average_to is not None:
            slopes = (slopes[:-1] + slopes[1:]) / 2
        return {"INPUT_OUTPUT_GRADIENTS": slopes.permute(0, 2, 3, 1).numpy()}

    return call


class OldNumPy:
    """NumPy with the argument ``interpolation`` of ``quantile``, which NumPy 2.4 removed and the authors' code uses."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def quantile(values: np.ndarray, share: float, interpolation: Any) -> Any:
        return np.quantile(values, share, method=interpolation)


def pair_guided_ig(
    model: Classifier,
    image: Tensor,
    target: Tensor,
    steps: int = 200,
    baseline: str = "black",
    **options: float,
) -> Tensor:
    module = import_module("saliency.core.guided_ig")
    module.__dict__["np"] = OldNumPy()
    start = model.mean.expand_as(image) if baseline == "mean" else torch.zeros_like(image)
    settings = {"x_baseline": last(start), "x_steps": steps, **options}
    return first(module.GuidedIG().GetMask(last(image), gradients(model, target), **settings))


def pair_blur_ig(model: Classifier, released: bool, image: Tensor, target: Tensor) -> Tensor:
    module = import_module("saliency.core.blur_ig")
    largest = BLUR_SIGMA * max(image.shape[2:])
    if released:
        function, derivative_step, batch_size = gradients(model, target), 0.01, 1
    else:
        blurred = module.gaussian_blur(last(image), largest)
        function, derivative_step, batch_size = (
            gradients(model, target, blurred),
            largest / BLUR_STEPS,
            BLUR_STEPS,
        )
    settings = {"max_sigma": largest, "steps": BLUR_STEPS, "grad_step": derivative_step}
    return first(module.BlurIG().GetMask(last(image), function, batch_size=batch_size, **settings))


def pair_xrai(model: Classifier, image: Tensor, target: Tensor) -> Tensor:
    maps = []
    for start in (torch.zeros_like(image), torch.ones_like(image)):
        slopes = mean_gradient(model, image, target, start, *quadrature("trapezoid", XRAI_STEPS))
        maps.append((image - start) * slopes)
    attribution = last((maps[0] + maps[1]) / 2)
    module = import_module("saliency.core.xrai")
    return first(module.XRAI().GetMask(last(image), None, base_attribution=attribution))


def comparisons(model: Classifier) -> Iterator[Comparison]:
    def ours(method: Callable[..., Tensor], **parameters: Any) -> Maps:
        return lambda image, target: method(model, image, target, generator=seeded(), **parameters)

    background = torch.rand(BACKGROUND, 3, 32, 32, generator=seeded(), dtype=torch.float64)
    yield Comparison(
        "expected_gradients",
        ours(expected_gradients, background=background, samples=SAMPLES),
        partial(captum_gradient_shap, model, background, 0.0),
    )
    yield Comparison(
        f"gradient_shap noise={NOISE}",
        ours(gradient_shap, background=background, samples=SAMPLES, noise=NOISE),
        partial(captum_gradient_shap, model, background, NOISE),
    )
    for parameters in GUIDED:
        name = " ".join(["guided_ig", *(f"{key}={value}" for key, value in parameters.items())])
        yield Comparison(name, ours(guided_ig, **parameters), partial(pair_guided_ig, model, **parameters))
    our_blur_ig = ours(blur_ig, steps=BLUR_STEPS + 1, max_sigma=BLUR_SIGMA)
    yield Comparison("blur_ig", our_blur_ig, partial(pair_blur_ig, model, False))
    yield Comparison("blur_ig as released", our_blur_ig, partial(pair_blur_ig, model, True), equal=False)
    our_xrai = ours(xrai, steps=XRAI_STEPS, channels="max")
    yield Comparison("xrai channels=max", our_xrai, partial(pair_xrai, model), XRAI_SIZE)


def compare(comparison: Comparison) -> tuple[float, float]:
    """Return the largest relative difference of all maps, and the time of the other code divided by ours."""
    differences, seconds = [], {"ours": 0.0, "theirs": 0.0}
    for number, image in enumerate(photographs(comparison.size)):
        maps = {}
        for key, method in (("ours", comparison.ours), ("theirs", comparison.theirs)):
            begin = time.perf_counter()
            maps[key] = method(image[None], torch.tensor([number % CLASSES]))
            seconds[key] += time.perf_counter() - begin
        largest = maps["theirs"].abs().max()
        differences.append(float((maps["ours"] - maps["theirs"]).abs().max() / largest))
    return max(differences), seconds["theirs"] / seconds["ours"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--saliency", required=True, help="folder of a clone of PAIR-code/saliency")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    sys.path.insert(0, options.saliency)
    torch.set_num_threads(options.threads)
    model = classifier(parser_of(None).parse_args([])).double().eval().requires_grad_(False)
    print(f"{'':60}{'difference':>12}{'time ratio':>12}")
    failed = False
    for comparison in comparisons(model):
        difference, ratio = compare(comparison)
        failed |= comparison.equal and not difference <= AGREEMENT
        print(f"{comparison.name:60}{difference:12.1e}{ratio:12.2f}", flush=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

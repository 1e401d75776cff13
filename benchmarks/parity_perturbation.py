"""Compare RISE, LIME and extremal perturbations with other code, on random networks in float64.

- RISE: the authors' code, a clone of eclique/RISE, with the same masks; and its masks for the same random grids.
- LIME: captum, and the authors' code (PyPI package lime) if it is installed, with the same samples.
- Extremal perturbations: the authors' code, a clone of facebookresearch/TorchRay, from the same random parameters, in
  float64, without flips, with our margin, which is wider, and with our blurred images, which do not darken at their
  border. ``--steps`` steps; the more steps, the more rounding matters.

For each of these, the program prints the largest difference relative to the largest value. It exits with status 1 if a
difference is above 1e-5.

    python benchmarks/parity_perturbation.py --rise RISE --torchray TorchRay
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, util
from math import ceil, exp, prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import Lime
from common import CLASSES, classifier, parser_of
from torch import Tensor, nn

from saliency_assay.methods import extremal, lime, rise, segments
from saliency_assay.methods.sampling import sample_seeds

AGREEMENT = 1e-5
IMAGES = 3
SEED = 5
SCALE = 30.0  # of the logits, to the size of a trained network's


class Scaled(nn.Module):
    """A network with logits times ``SCALE``."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.network(images)
        return SCALE * logits


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)


def difference(ours: Any, theirs: Any) -> float:
    ours, theirs = (torch.as_tensor(values, dtype=torch.float64) for values in (ours, theirs))
    return float((ours - theirs).abs().max() / theirs.abs().max())


def rise_differences(
    path: Path, model: nn.Module, images: Tensor, targets: Tensor
) -> Iterator[tuple[str, float]]:
    """Compare the authors' sum over our masks with our map, and their masks with ours."""
    sys.path.insert(0, str(path))
    size, samples, cells = tuple(images.shape[2:]), 50, 7
    explainer = import_module("explanations").RISE(nn.Sequential(model, nn.Softmax(1)), size)
    down, across = (rise.interpolation(side, cells) for side in size)
    maps = []
    for image, seed in zip(images, sample_seeds(len(images), 1, generator()), strict=True):
        grids, tops, lefts = rise.sample_grids(seed, samples, cells, 0.5, len(down), len(across))
        explainer.masks = torch.einsum("nhi,nij,nwj->nhw", down[tops], grids.double(), across[lefts])[:, None]
        explainer.N, explainer.p1 = samples, 0.5
        maps.append(explainer(image[None]))
    theirs = torch.stack(maps)[range(len(images)), targets]
    yield (
        "rise",
        difference(rise.rise(model, images, targets, generator=generator(), samples=samples)[:, 0], theirs),
    )
    np.random.seed(SEED)  # noqa: NPY002  # the authors' source of random numbers
    with tempfile.TemporaryDirectory() as folder:
        explainer.generate_masks(samples, cells, 0.5, str(Path(folder) / "masks.npy"))
    replay = np.random.RandomState(SEED)
    grids = torch.from_numpy(replay.rand(samples, cells, cells) < 0.5)
    shifts = [[replay.randint(0, len(down)), replay.randint(0, len(across))] for _ in range(samples)]
    tops, lefts = torch.tensor(shifts).T
    masks = torch.einsum("nhi,nij,nwj->nhw", down[tops], grids.double(), across[lefts])
    yield "rise: masks", difference(masks, explainer.masks[:, 0])


class Replay:
    """Return given samples in place of random ones."""

    def __init__(self, samples: Tensor) -> None:
        self.samples = samples

    def randint(self, low: int, high: int, size: int) -> np.ndarray:
        values: np.ndarray = self.samples.long().numpy().ravel()
        assert (low, high, size) == (0, 2, values.size)
        return values


def lime_differences(model: nn.Module, images: Tensor, targets: Tensor) -> Iterator[tuple[str, float]]:
    """Compare captum's and the authors' map with ours, for superpixels and the same samples."""
    samples, width = 200, 0.25
    labels = segments.segment(images, "superpixels", 30)
    exists = segments.pixel_counts(labels) > 0
    present = lime.sample_present(exists, samples, sample_seeds(len(images), 1, generator()))
    settings = {"segments": 30, "samples": samples, "kernel_width": width}
    maps = lime.lime(model, images, targets, generator=generator(), **settings)[:, 0]
    with_softmax = nn.Sequential(model, nn.Softmax(1))

    def similarity(image: Tensor, masked: Tensor, sample: Tensor, **_: Any) -> float:
        distance = 1 - float(nn.functional.cosine_similarity(sample, torch.ones_like(sample)))
        return exp(-(distance**2) / (2 * width**2))

    theirs = []
    for image, target, label, rows in zip(images, targets, labels, present, strict=True):
        replay = iter(rows[:, : int(label.max()) + 1].double())
        explainer = Lime(
            with_softmax,
            interpretable_model=SkLearnRidge(alpha=1.0),
            similarity_func=similarity,
            perturb_func=lambda *_, replay=replay, **__: next(replay)[None],
        )
        mask = label[None, None].expand(1, 3, -1, -1)
        theirs.append(
            explainer.attribute(image[None], target=int(target), feature_mask=mask, n_samples=samples)[0, 0]
        )
    yield "lime: captum", difference(maps, torch.stack(theirs))
    if util.find_spec("lime") is None:
        return
    explain = import_module("lime.lime_image").LimeImageExplainer(kernel_width=width)
    theirs = []
    for image, target, label, rows in zip(images, targets, labels, present, strict=True):
        explain.random_state = Replay(rows[:, : int(label.max()) + 1])
        result = explain.explain_instance(
            image.permute(1, 2, 0).numpy(),
            lambda batch: with_softmax(torch.from_numpy(batch).permute(0, 3, 1, 2)).detach().numpy(),
            labels=(int(target),),
            top_labels=None,
            hide_color=0,
            num_samples=samples,
            segmentation_fn=lambda _, label=label: label.numpy(),
            random_seed=0,
        )
        coefficients = dict(result.local_exp[int(target)])
        theirs.append(
            torch.tensor([coefficients[number] for number in label.flatten().tolist()]).reshape(label.shape)
        )
    yield "lime: lime", difference(maps, torch.stack(theirs))


class DoubleTorch:
    """The module torch, with float64 in place of float32, and with ``start`` as the first mask."""

    float32 = torch.float64

    def __init__(self, start: Tensor) -> None:
        self.start = start

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def ones(self, *shape: int) -> Tensor:
        return self.start.reshape(shape).clone() if len(shape) == 4 else torch.ones(*shape)


@contextmanager
def torchray_in_double(start: Tensor) -> Iterator[Any]:
    """Yield TorchRay's module with the changes in the description of this program."""
    module = import_module("torchray.attribution.extremal_perturbation")

    class WideMargin(module.MaskGenerator):  # type: ignore[name-defined,misc]
        """Masks on all pixels whose window reaches the grid, by a grid with one more row and column of zeros."""

        def __init__(self, shape: tuple[int, int], step: int, sigma: int) -> None:
            super().__init__([side + step for side in shape], step, sigma)
            self.shape, self.shape_in = shape, [ceil(side / step) for side in shape]
            self.shape_out = [step * (count + 2 * self.radius) for count in self.shape_in]

        @property
        def margin(self) -> int:
            return int(self.step * (1 + ceil(self.sigma / self.step)))

        @margin.setter
        def margin(self, value: int) -> None:
            """Ignore TorchRay's, which is ``sigma``."""

        def generate(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
            cropped, mask = super().generate(nn.functional.pad(parameters, (0, 1, 0, 1)))
            height, width = self.shape_out
            return cropped, mask[:, :, :height, :width]

    original = module.torch, module.MaskGenerator, module.imsmooth

    def blurred(image: Tensor, sigma: Tensor) -> Tensor:
        if sigma == 0:
            return image
        rows, columns = (extremal.blur(side, float(sigma)) for side in image.shape[2:])
        return rows @ image @ columns.T

    module.torch, module.MaskGenerator, module.imsmooth = DoubleTorch(start), WideMargin, blurred
    try:
        yield module
    finally:
        module.torch, module.MaskGenerator, module.imsmooth = original


def extremal_differences(
    path: Path, model: nn.Module, images: Tensor, targets: Tensor, steps: int
) -> Iterator[tuple[str, float]]:
    """Compare TorchRay's mask with ours for both variants and perturbations, and for cells of 1 and 3 pixels."""
    sys.path.insert(0, str(path))
    height, width = images.shape[2:]
    extremal.BLUR = 20 / min(height, width)  # TorchRay's strongest blur, for images of any size
    for step, sigma in ((1, 3), (3, 6)):
        convolution = extremal.max_convolution(height, width, step, sigma).to(images)
        start = torch.rand(len(images), convolution.cells, generator=generator())
        largest = round(0.2 * height * width)
        share = (largest - 0.5) / prod(convolution.shape)  # of TorchRay's reference, which is rounded up
        for variant in ("preserve", "delete"):
            for perturbation in ("blur", "black"):
                levels = extremal.perturbed(model, images, perturbation)
                parameters = extremal.optimized(
                    model, targets, levels, convolution, start, area=0.2, steps=steps, variant=variant
                )
                ours = convolution.crop(extremal.smooth(parameters, convolution))
                theirs = []
                for image, target, first in zip(images, targets, start, strict=True):
                    with torchray_in_double(first) as module:
                        mask, _ = module.extremal_perturbation(
                            model,
                            image[None],
                            int(target),
                            areas=[share],
                            perturbation={"black": "fade"}.get(perturbation, perturbation),
                            max_iter=steps + 1,  # it returns the mask before its last step
                            step=step,
                            sigma=sigma,
                            jitter=False,
                            variant=variant,
                        )
                    theirs.append(mask[0, 0])
                name = f"extremal_perturbation: {variant}, {perturbation}, cells of {step}"
                yield name, difference(ours[:, 0], torch.stack(theirs))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rise", type=Path, required=True, help="clone of eclique/RISE")
    parser.add_argument("--torchray", type=Path, required=True, help="clone of facebookresearch/TorchRay")
    parser.add_argument("--steps", type=int, default=20, help="of extremal perturbations")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64)
    torch.Tensor.cuda = lambda tensor: tensor  # type: ignore[method-assign]  # the authors' code needs a GPU
    model = Scaled(classifier(options).double().eval().requires_grad_(False))
    images = torch.rand(IMAGES, 3, options.size, options.size, generator=generator())
    targets = torch.arange(IMAGES) % CLASSES
    worst = 0.0
    for name, value in (
        *rise_differences(options.rise, model, images, targets),
        *lime_differences(model, images, targets),
        *extremal_differences(options.torchray, model, images, targets, options.steps),
    ):
        print(f"{name:56} {value:8.1e}")
        worst = max(worst, value)
    sys.exit(worst > AGREEMENT)


if __name__ == "__main__":
    main()

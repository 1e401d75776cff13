"""Faithfulness correlation against closed forms and sensitivity-n."""

from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn
from torch.nn.functional import interpolate

from saliency_assay.methods.gradient import gradient_x_input
from saliency_assay.metrics.sensitivity_n import faithfulness_correlation, random_sets
from saliency_assay.metrics.subsets import sample_subsets

SEED = 11


def scored(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    share: float,
    subsets: int,
    grid: int = 0,
    correlation: str = "pearson",
) -> Tensor:
    size: dict[str, Any] = {"share": share, "subsets": subsets, "grid": grid}
    responses = random_sets(model, images, targets, generator=generator(SEED), **size)
    result = faithfulness_correlation(
        model,
        images,
        targets,
        maps,
        generator=generator(SEED),
        responses=responses,
        correlation=correlation,
        **size,
    )
    return result.scores["faithfulness_correlation", ""]


def test_gradient_x_input_of_a_linear_model_is_faithful() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, 4)).double()
    images, targets = random_images(4, size=6), cyclic_targets(4)
    maps = gradient_x_input(model, images, targets, generator=generator())
    exact(scored(model, images, targets, maps, 0.25, 20), np.ones(4))
    exact(scored(model, images, targets, -maps, 0.25, 20), -np.ones(4))


@pytest.mark.parametrize(
    ("share", "grid", "size"),
    [(0.0, 0, 1), (0.2, 0, 29), (1.0, 0, 143), (0.2, 9, 16), (0.3, 5, 8), (1.0, 2, 3)],
)
@pytest.mark.parametrize(("correlation", "statistic"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_plain_loops(share: float, grid: int, size: int, correlation: str, statistic: Any) -> None:
    model, images, targets = conv_classifier(), random_images(5), cyclic_targets(5)
    maps = torch.randn(5, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    maps[3], maps[4, 1, 2, 2] = 0.5, torch.nan
    scores = scored(model, images, targets, maps, share, 12, grid, correlation)
    side = grid or 12
    blocks = sample_subsets(torch.full((12,), size), side**2, generator(SEED), torch.device("cpu"))
    cells = torch.cat(list(blocks)).reshape(12, 1, side, side).double()
    subsets = interpolate(cells, (12, 12), mode="nearest-exact")[:, 0].bool().numpy()
    for image in range(3):
        saliency, target = maps[image].sum(0).numpy(), int(targets[image])
        sums, drops = [], []
        for subset in subsets:
            shown = images[image].clone()
            shown[:, torch.tensor(subset)] = 0
            with torch.no_grad():
                before, after = model(torch.stack([images[image], shown]))[:, target].tolist()
            sums.append(float(saliency[subset].sum()))
            drops.append(before - after)
        # Equal sets have equal sums, but the order of addition would distinguish their ranks.
        expected = statistic(np.round(sums, 9), np.round(drops, 9)).statistic
        exact(scores[image], np.array(expected), tolerance=1e-6, floor=1e-8)
    assert scores[3:].isnan().all()


def test_a_grid_of_single_pixels_is_no_grid() -> None:
    model, images, targets = conv_classifier(), random_images(3), cyclic_targets(3)
    maps = torch.randn(3, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    inputs = model, images, targets, maps, 0.2, 10
    exact(scored(*inputs, grid=12), scored(*inputs))


def test_a_grid_of_more_cells_than_pixels_is_refused() -> None:
    images, targets = random_images(3), cyclic_targets(3)
    with pytest.raises(ValueError, match=r"^grid: found 13, expected at most 12"):
        scored(conv_classifier(), images, targets, images, 0.2, 10, grid=13)


def test_mu_fidelity_of_xplique() -> None:
    """The expected numbers are those of Xplique 2.0.0 (TensorFlow 2.21.0), for the same sets of cells."""

    def waves(*shape: int) -> Tensor:
        return torch.arange(prod(shape), dtype=torch.float64).mul(1.7).sin().reshape(shape)

    class Waves(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return (images.flatten(1) @ waves(2, 784).T / 5).tanh()

    images, targets = 0.5 + 0.5 * waves(3, 1, 28, 28).flip(3), torch.tensor([0, 1, 0])
    maps = waves(3, 1, 28, 28).square() * images
    scores = scored(Waves(), images, targets, maps, 0.2, 200, grid=9, correlation="spearman")
    exact(scores, np.array([0.2240966024150604, 0.14734868371709292, 0.10499962499062476]))

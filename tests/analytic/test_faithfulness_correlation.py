"""Faithfulness correlation against closed forms and sensitivity-n."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr
from support import conv_classifier, cyclic_targets, exact, generator, random_images
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient_x_input
from saliency_assay.metrics.sensitivity_n import faithfulness_correlation, random_sets
from saliency_assay.metrics.subsets import sample_subsets

SEED = 11


def scored(
    model: nn.Module, images: Tensor, targets: Tensor, maps: Tensor, share: float, subsets: int
) -> Tensor:
    size = {"share": share, "subsets": subsets}
    responses = random_sets(model, images, targets, generator=generator(SEED), **size)
    result = faithfulness_correlation(
        model, images, targets, maps, generator=generator(SEED), responses=responses, **size
    )
    return result.scores["faithfulness_correlation", ""]


def test_gradient_x_input_of_a_linear_model_is_faithful() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 36, 4)).double()
    images, targets = random_images(4, size=6), cyclic_targets(4)
    maps = gradient_x_input(model, images, targets, generator=generator())
    exact(scored(model, images, targets, maps, 0.25, 20), np.ones(4))
    exact(scored(model, images, targets, -maps, 0.25, 20), -np.ones(4))


@pytest.mark.parametrize(("share", "size"), [(0.0, 1), (0.2, 29), (1.0, 143)])
def test_plain_loops(share: float, size: int) -> None:
    model, images, targets = conv_classifier(), random_images(5), cyclic_targets(5)
    maps = torch.randn(5, 3, 12, 12, generator=generator(3), dtype=torch.float64)
    maps[3], maps[4, 1, 2, 2] = 0.5, torch.nan
    scores = scored(model, images, targets, maps, share, 12)
    blocks = sample_subsets(torch.full((12,), size), 144, generator(SEED), torch.device("cpu"))
    subsets = torch.cat(list(blocks)).reshape(12, 12, 12).numpy()
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
        exact(scores[image], np.array(pearsonr(sums, drops).statistic), floor=1e-9)
    assert scores[3:].isnan().all()

"""Grid settings: what the logits of a cell depend on, and localization scores in closed form."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from support import CLASSES, ConvNet, classifier, conv_classifier, exact, generator, with_random_state
from torch import Tensor, nn

from saliency_assay.methods.cam import gradcam, hirescam, layercam
from saliency_assay.methods.deeplift import deeplift
from saliency_assay.methods.fullgrad import fullgrad
from saliency_assay.methods.gradient import gradient, gradient_x_input
from saliency_assay.methods.guided import guided_backprop
from saliency_assay.methods.model_free import constant
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.relevance import lrp_alpha_beta, lrp_epsilon
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.grid_settings import (
    SETTINGS,
    check_dipart,
    check_gridpg,
    join,
    of_setting,
    part_of_cell,
    split,
)
from saliency_assay.models.vit import vit
from saliency_assay.studies.grid.localization import (
    aggregate,
    localization,
    positive_attribution,
    score_cells,
)

CELLS, SIDE = 3, 8
IMAGES = torch.rand(2 * CELLS**2, 3, SIDE, SIDE, generator=generator(0), dtype=torch.float64)
GRIDS = join(IMAGES, CELLS)
TARGETS = torch.tensor([1, 3])
LAST = "body.6"  # the last feature map of ConvNet


def small_network() -> Classifier:
    return classifier(with_random_state(ConvNet(3), seed=2), LAST).requires_grad_(False)


def score(method: Callable[..., Tensor], setting: str, cell: int) -> Tensor:
    cell_network = of_setting(small_network(), setting, cells=CELLS, cell=cell)
    maps = method(cell_network, GRIDS, TARGETS, generator=generator(0))
    return localization(positive_attribution(maps), cells=CELLS, cell=cell)


def test_split_and_join_are_inverse_and_count_cells_row_by_row() -> None:
    assert torch.equal(split(GRIDS, CELLS), IMAGES)
    assert torch.equal(part_of_cell(GRIDS[1], CELLS, 5), IMAGES[CELLS**2 + 5])
    with pytest.raises(ValueError, match=r"found 25 × 24 .* multiples of 3"):
        split(torch.zeros(1, 1, 25, 24), 3)


@pytest.mark.parametrize("cell", [0, 4, 8])
def test_difull_has_the_logits_of_the_single_image(cell: int) -> None:
    network = small_network()
    logits = of_setting(network, "difull", cells=CELLS, cell=cell)(GRIDS)
    exact(logits, network(IMAGES[cell :: CELLS**2]))


@pytest.mark.parametrize("cell", [0, 4, 8])
def test_dipart_has_the_head_of_a_part_of_the_last_feature_map(cell: int) -> None:
    network = small_network()
    body, normalized = network.network.body, network.network_input(GRIDS)
    logits = body[7:](part_of_cell(body[:7](normalized), CELLS, cell))
    exact(of_setting(network, "dipart", cells=CELLS, cell=cell)(GRIDS), logits)


def test_gridpg_has_the_logits_of_the_whole_grid_for_every_cell() -> None:
    network = small_network()
    for cell in range(CELLS**2):
        exact(of_setting(network, "gridpg", cells=CELLS, cell=cell)(GRIDS), network(GRIDS))


@pytest.mark.parametrize("cell", [0, 7])
@pytest.mark.parametrize(
    "method",
    [
        *(gradient, gradient_x_input, partial(integrated_gradients, steps=3), guided_backprop),
        *(lrp_epsilon, lrp_alpha_beta, partial(deeplift, baseline="black")),
    ],
)
def test_a_method_that_propagates_to_the_pixels_is_perfect_in_difull(
    method: Callable[..., Tensor], cell: int
) -> None:
    assert score(method, "difull", cell).tolist() == [1, 1]


@pytest.mark.parametrize("method", [gradient, lrp_epsilon, partial(deeplift, baseline="black")])
def test_dipart_reaches_beyond_the_cell_by_the_receptive_field_alone(method: Callable[..., Tensor]) -> None:
    cell_network = of_setting(small_network(), "dipart", cells=CELLS, cell=4)
    maps = method(cell_network, GRIDS, TARGETS, generator=generator(0))
    # Two convolutions of 3 × 3 around pooling of 2 × 2: one pixel, and one of two pixels.
    near = slice(SIDE - 3, 2 * SIDE + 3)
    inside = maps[:, :, near, near]
    assert maps.count_nonzero() == inside.count_nonzero()
    assert inside[:, :, 0].any()


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_constant_map_has_the_share_of_a_cell(setting: str) -> None:
    assert score(constant, setting, 2) == pytest.approx(1 / CELLS**2)


def test_gradcam_of_difull_weights_all_cells_and_layercam_one() -> None:
    """The weights of Grad-CAM, means over the grid, apply to the activations of every cell."""
    network, cell = small_network(), 4
    activations = join(network.network.body[:7](network.network_input(IMAGES)), CELLS)
    weights = network.network.body[10].weight[TARGETS]  # the gradient of the spatial mean of a cell
    size = activations.shape[2] * activations.shape[3]
    expected = (weights[:, :, None, None] * activations).sum(1, keepdim=True).clamp(min=0) / size
    expected = nn.functional.interpolate(expected, scale_factor=2, mode="bilinear")
    cell_network = of_setting(network, "difull", cells=CELLS, cell=cell)
    exact(gradcam(cell_network, GRIDS, TARGETS, generator=generator(0)), expected)
    nearest = partial(layercam, upsampling="nearest")
    assert score(nearest, "difull", cell).tolist() == [1, 1]
    assert score(nearest, "dipart", cell).tolist() == [1, 1]


@pytest.mark.parametrize("setting", SETTINGS)
def test_hirescam_of_a_layer_is_gradient_x_input_of_the_layer(setting: str) -> None:
    network, cell = small_network(), 1
    cell_network = of_setting(network, setting, cells=CELLS, cell=cell)
    first = network.network.body[:3]
    if setting == "difull":
        inner = join(first(network.network_input(IMAGES)), CELLS)
    else:
        inner = first(network.network_input(GRIDS))
    inner = inner.detach().requires_grad_()
    rest = classifier(network.network.body[3:], "6", channels=5)
    rest.mean, rest.std = torch.zeros(1, 5, 1, 1).double(), torch.ones(1, 5, 1, 1).double()
    logits = of_setting(rest, setting, cells=CELLS, cell=cell)(inner)
    grad = torch.autograd.grad(logits.gather(1, TARGETS[:, None]).sum(), inner)[0]
    maps = hirescam(cell_network, GRIDS, TARGETS, generator=generator(0), relu=False, layer="body.2")
    exact(maps, (grad * inner).sum(1, keepdim=True).detach())


def test_fullgrad_joins_the_biases_of_cells_and_is_refused_in_dipart() -> None:
    network = small_network()
    maps = fullgrad(
        of_setting(network, "difull", cells=CELLS, cell=4), GRIDS, TARGETS, generator=generator(0)
    )
    near = slice(SIDE - 1, 2 * SIDE + 1)  # with the pixel that bilinear upsampling reaches
    assert maps.shape == (2, 1, CELLS * SIDE, CELLS * SIDE)
    assert maps.count_nonzero() == maps[:, :, near, near].count_nonzero()
    with pytest.raises(ValueError, match="dipart"):
        fullgrad(of_setting(network, "dipart", cells=CELLS, cell=3), GRIDS, TARGETS, generator=generator(0))


def test_localization_without_positive_attribution_is_0_and_of_nan_nan() -> None:
    maps = torch.zeros(3, 2, 4, 4)
    maps[0, :, :2, :2] = -1
    maps[1, 0, 0, 0], maps[1, 1, 0, 0], maps[1, 0, 3, 3] = 5, -2, 1  # 3 and 1
    maps[2, 0, 0, 0] = torch.nan
    scores = localization(positive_attribution(maps), cells=2, cell=0)
    assert scores.tolist() == pytest.approx([0, 0.75, np.nan], nan_ok=True)


def test_aggregated_maps_are_means_of_bins_from_the_best_map_to_the_worst() -> None:
    scores = np.array([0.1, 0.9, np.nan, 0.5, 0.3])
    maps = np.arange(5.0)[:, None, None] * np.ones((1, 2, 2))
    means = aggregate(maps, scores, bins=(0, 0.25, 0.75, 0.8, 1))
    assert means[:, 0, 0].tolist() == pytest.approx([1, 3.5, np.nan, 0], nan_ok=True)


def test_cells_are_scored_one_by_one_in_batches() -> None:
    network = conv_classifier(dtype=torch.float32)
    targets = np.tile(np.arange(CELLS**2) % CELLS, (5, 1))
    grids = torch.rand(5, 3, CELLS * SIDE, CELLS * SIDE, generator=generator(1))
    arguments = {"cells": CELLS, "method": gradcam, "parameters": {}, "seed_of_cell": int}
    small, large = (
        list(score_cells(network, grids, targets, "gridpg", **arguments, batch_size=size)) for size in (9, 90)
    )
    scores = np.stack([of_cell for of_cell, _ in large])
    assert scores.shape == (CELLS**2, 5)
    # Cells of one class have the same map, of which each has its part.
    for same_class in range(CELLS):
        assert (scores[same_class::CELLS].sum(0) <= 1 + 1e-6).all()
    np.testing.assert_allclose(np.stack([of_cell for of_cell, _ in small]), scores, rtol=1e-4, atol=1e-6)


class Positional(nn.Module):
    """A head over a fixed number of positions, of adaptive pooling, so that any size is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images).flatten(1))


def test_gridpg_needs_global_pooling() -> None:
    images = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    check_gridpg(small_network(), images)
    check_dipart(small_network(), images)
    positional = classifier(with_random_state(Positional(), seed=0), "body.1")
    check_dipart(positional, images)
    with pytest.raises(ValueError, match="gridpg: found logits that depend on positions"):
        check_gridpg(positional, images)


@pytest.mark.parametrize("size", [(1, 2), (2, 1), (2, 2)])
def test_gridpg_refuses_pooling_of_each_cell_on_its_own(size: tuple[int, int]) -> None:
    head = nn.Linear(4 * size[0] * size[1], CLASSES)
    layers = (nn.Conv2d(3, 4, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(size), nn.Flatten(), head)
    of_cells = classifier(with_random_state(nn.Sequential(*layers), seed=0), "1")
    with pytest.raises(ValueError, match="gridpg: found logits that depend on positions"):
        check_gridpg(of_cells, torch.rand(2, 3, 8, 8, dtype=torch.float64))


def test_a_transformer_of_fixed_position_embeddings_takes_no_grid() -> None:
    size = {"image_size": 8, "patch": 4, "width": 8, "depth": 1, "heads": 2}
    network = vit(classes=CLASSES, channels=3, generator=generator(0), pool="mean", **size)
    transformer = classifier(network.double(), "blocks.-1")
    images = torch.rand(2, 3, 8, 8, dtype=torch.float64)
    for check in (check_gridpg, check_dipart):
        with pytest.raises(ValueError, match="does not take grids of 16 × 16"):
            check(transformer, images)
    cell_network = of_setting(transformer, "difull", cells=2, cell=3)
    grids = join(torch.rand(8, 3, 8, 8, dtype=torch.float64), 2)
    maps = layercam(cell_network, grids, TARGETS, generator=generator(0), layer="blocks.0")
    assert localization(maps[:, 0], cells=2, cell=3).tolist() == pytest.approx([1, 1], abs=0.4)


def test_unknown_settings_and_cells_are_refused() -> None:
    with pytest.raises(ValueError, match="setting: found 'pg', valid: gridpg, difull, dipart"):
        of_setting(small_network(), "pg", cells=2, cell=0)
    with pytest.raises(ValueError, match="cell: found 4, expected 0 to 3"):
        of_setting(small_network(), "difull", cells=2, cell=4)

"""Classifiers of grids of images that can use a known part of the grid (Rao et al., 2022).

A grid of n × n cells, ``[N, C, n h, n w]``, has one image in each cell; cells are numbered row by row. The three
settings differ in what the logits of a cell can depend on:

- ``gridpg``, the grid pointing game (Böhle et al., 2021): the network takes the whole grid, and every cell has the same
  logits. The network must end in global pooling.
- ``difull``: each cell has its own copy of the network, so that nothing outside of the cell can influence its logits.
- ``dipart``: the network takes the whole grid up to its last feature map, of which the head receives the cell's part.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, main_output
from saliency_assay.models.inference import uncompiled

GRIDPG, DIFULL, DIPART = "gridpg", "difull", "dipart"
SETTINGS = (GRIDPG, DIFULL, DIPART)
TOLERANCE = 1e-3
"""Largest difference of logits by rounding, in units of the largest logit, of a network with global pooling."""


def split(grids: Tensor, cells: int) -> Tensor:
    """Return the cells of grids ``[N, C, n h, n w]``, row by row, as ``[N n², C, h, w]``; n is ``cells``.

    Raises:
        ValueError: height or width is not a multiple of n.
    """
    count, channels, height, width = grids.shape
    if height % cells or width % cells:
        raise ValueError(
            f"grid: found {height} × {width} pixels or positions, expected multiples of {cells}, the cells of a row"
        )
    parts = grids.reshape(count, channels, cells, height // cells, cells, width // cells)
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(-1, channels, height // cells, width // cells)


def join(images: Tensor, cells: int) -> Tensor:
    """Return grids ``[N, C, n h, n w]`` of the images ``[N n², C, h, w]``, row by row; the inverse of ``split``."""
    total, channels, height, width = images.shape
    parts = images.reshape(total // cells**2, cells, cells, channels, height, width)
    return parts.permute(0, 3, 1, 4, 2, 5).reshape(-1, channels, cells * height, cells * width)


def part_of_cell(maps: Tensor, cells: int, cell: int) -> Tensor:
    """Return the part of maps of grids, ``[..., n h, n w]``, that is in a cell, ``[..., h, w]``."""
    row, column = divmod(cell, cells)
    height, width = (side // cells for side in maps.shape[-2:])
    return maps[..., row * height : (row + 1) * height, column * width : (column + 1) * width]


class Disconnected(nn.Module):
    """DiFull: the logits of one cell of the grid, each of whose cells is the input of its own copy of a network.

    All cells are computed, as images of one batch, because some methods read the feature maps of the whole grid.
    """

    def __init__(self, module: nn.Module, cells: int, cell: int) -> None:
        super().__init__()
        self.module, self.cells, self.cell = module, cells, cell

    def forward(self, grids: Tensor) -> Tensor:
        """Return the cell's logits ``[N, K]`` of normalized grids ``[N, C, n h, n w]``."""
        logits = main_output(self.module(split(grids, self.cells)))
        assert isinstance(logits, Tensor)
        return logits.reshape(len(grids), self.cells**2, -1)[:, self.cell]

    def joined(self, maps: Tensor) -> Tensor:
        """Return the feature maps ``[N n², K, h, w]`` of all copies of a layer as those of the grid."""
        return join(maps, self.cells)


class PartlyConnected(nn.Module):
    """DiPart: the logits of one cell, whose head receives only the cell's part of the output of ``layer``."""

    def __init__(self, module: nn.Module, layer: nn.Module, cells: int, cell: int) -> None:
        super().__init__()
        self.module, self.cells, self.cell = module, cells, cell
        self._layer = (layer,)  # in a tuple, so that it is not a second child

    def forward(self, grids: Tensor) -> Tensor:
        """Return the cell's logits ``[N, K]`` of normalized grids ``[N, C, n h, n w]``."""
        # Added for one pass, after the hooks of a method, which therefore receive the layer's whole output.
        with uncompiled():
            handle = self._layer[0].register_forward_hook(self._crop)
            try:
                logits = main_output(self.module(grids))
            finally:
                handle.remove()
        assert isinstance(logits, Tensor)
        return logits

    def _crop(self, layer: nn.Module, inputs: object, output: object) -> Tensor:
        return part_of_cell(_feature_maps(output, self.cells), self.cells, self.cell)


def of_grid(network: nn.Module, maps: Tensor) -> Tensor:
    """Return the feature maps of a layer of a classifier's ``network`` as those of the grid, ``[N, K, n h, n w]``."""
    return network.joined(maps) if isinstance(network, Disconnected) else maps


def of_setting(classifier: Classifier, setting: str, *, cells: int, cell: int) -> Classifier:
    """Return a classifier of grids of ``cells`` × ``cells`` images: the logits are those of one cell.

    It shares all layers with ``classifier``. In DiPart, the last feature map is the output of its ``cam_layer``, and
    the head consists of all layers after it. Logits and feature maps are those of the authors' program for networks
    with global average pooling; its VGG-11, which slides the linear layers over the grid in GridPG, is not supported
    there.

    Raises:
        ValueError: unknown setting or cell.
    """
    if not 0 <= cell < cells**2:
        raise ValueError(f"cell: found {cell}, expected 0 to {cells**2 - 1}")
    network = classifier.network
    if setting == DIFULL:
        network = Disconnected(network, cells, cell)
    elif setting == DIPART:
        network = PartlyConnected(network, classifier.layer(classifier.cam_layer), cells, cell)
    elif setting != GRIDPG:
        raise ValueError(f"setting: found {setting!r}, valid: {', '.join(SETTINGS)}")
    mean, std = (values.flatten().tolist() for values in (classifier.mean, classifier.std))
    result = Classifier(
        network,
        classes=classifier.classes,
        mean=mean,
        std=std,
        cam_layer=classifier.cam_layer,
        concept_layers=classifier.concept_layers,
        token_grid=classifier.token_grid,
        multi_label=classifier.multi_label,
    )
    result.mean, result.std = classifier.mean, classifier.std  # on the same device and of the same type
    result.memory_format = classifier.memory_format
    result.training = network.training = classifier.training
    return result


def check_gridpg(classifier: Classifier, images: Tensor) -> None:
    """Check that a network takes grids of ``images`` and pools the last feature map, its ``cam_layer``, globally.

    Global pooling does not depend on the order of positions, so that a flip of the feature map does not change the
    logits.

    Raises:
        ValueError: the network does not take larger images, or has no global pooling.
    """
    logits = _logits_of_grids(classifier, images, "gridpg", lambda maps: maps)
    flipped = _logits_of_grids(classifier, images, "gridpg", lambda maps: maps.flip((2, 3)))
    if (flipped - logits).abs().amax() > TOLERANCE * logits.abs().amax():
        raise ValueError(
            f"gridpg: found logits that depend on positions in the output of {classifier.cam_layer!r}, expected "
            f"global pooling of this layer; or use difull"
        )


def check_dipart(classifier: Classifier, images: Tensor) -> None:
    """Check that a network takes grids of ``images``, and that its ``cam_layer`` returns feature maps of the cells.

    Raises:
        ValueError: the network does not take larger images, or the layer returns no feature maps that can be split.
    """
    _logits_of_grids(classifier, images, "dipart", lambda maps: split(maps, 2)[:: 2**2])


def _logits_of_grids(
    classifier: Classifier, images: Tensor, setting: str, change: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return the logits of 2 × 2 grids of ``images`` with a change of the output of the ``cam_layer``."""
    # The cells differ in brightness, because pooling of each cell on its own is not global.
    brightness = torch.linspace(0.25, 1, 4, dtype=images.dtype, device=images.device).repeat(len(images))
    grids = join(images.repeat_interleave(4, 0) * brightness[:, None, None, None], 2)

    def changed(layer: nn.Module, inputs: object, output: object) -> Tensor:
        return change(_feature_maps(output, 2))

    handle = classifier.layer(classifier.cam_layer).register_forward_hook(changed)
    try:
        with torch.no_grad(), uncompiled():
            logits: Tensor = classifier(grids)
    except Exception as error:  # of the network, which may be a user's
        height, width = images.shape[2:]
        size = f"{2 * height} × {2 * width}"
        raise ValueError(
            f"{setting}: the network does not take grids of {size} pixels ({error}), expected one that takes images of "
            f"any size, with feature maps [N, K, h, w] in its cam_layer; or use difull"
        ) from error
    finally:
        handle.remove()
    return logits


def _feature_maps(output: object, cells: int) -> Tensor:
    """Check that the output of a layer is feature maps ``[N, K, n h, n w]`` with n ``cells``."""
    if not isinstance(output, Tensor) or output.ndim != 4:
        found = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(f"cam_layer: returns {found}, expected feature maps [N, K, h, w]")
    if output.shape[2] % cells or output.shape[3] % cells:
        raise ValueError(
            f"cam_layer: returns {list(output.shape)}, expected height and width that are multiples of {cells}"
        )
    return output

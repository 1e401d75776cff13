"""Deletion of single cells of a grid, for training images and for metrics that delete the same cells."""

from collections.abc import Sequence

import torch
from torch import Tensor


def grid_cells(size: Sequence[int], grid: int) -> Tensor:
    """Return the cell of each pixel in a grid of ``grid`` × ``grid`` cells, int64 ``[H, W]``, in reading order from 0.

    ``size`` is height H and width W of the image. Row r of the pixels is in row ⌊r · grid / H⌋ of the cells,
    and columns likewise: cells have equal sizes if ``grid`` divides H and W, and otherwise differ by at most one row
    and one column of pixels.

    Raises:
        ValueError: more rows or columns than the image has.
    """
    if grid > min(size):
        raise ValueError(
            f"grid: found {grid}, expected at most {min(size)}, the image's smaller side in pixels"
        )
    rows, columns = (torch.arange(side) * grid // side for side in size)
    return rows[:, None] * grid + columns


def delete_cells(images: Tensor, cells: Tensor, deleted: Tensor, fill: Tensor) -> Tensor:
    """Replace one cell of each image ``[N, C, H, W]``, int64 ``deleted [N]``, by the color ``fill [C]``.

    ``cells`` is the cell of each pixel, int64 ``[H, W]``; an image whose ``deleted`` is negative stays as it is.
    """
    return torch.where((cells == deleted[:, None, None])[:, None], fill[:, None, None], images)


def sample_deleted(count: int, grid: int, generator: torch.Generator) -> Tensor:
    """Sample the deleted cell of each of ``count`` images, int64 ``[count]`` on the generator's device.

    It is −1, no cell, with probability 1/2, and otherwise a uniformly random cell, as in Hesse et al. (2024).
    """
    device = generator.device
    cell = torch.randint(grid * grid, (count,), generator=generator, device=device)
    is_deleted = torch.rand(count, generator=generator, device=device) < 0.5
    return torch.where(is_deleted, cell, -1)

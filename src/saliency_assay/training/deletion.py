"""Deletion of single cells of a grid, for training images and for metrics that delete the same cells."""

import torch
from torch import Tensor


def grid_cells(height: int, width: int, grid: int) -> Tensor:
    """Return the cell of each pixel in a grid of ``grid`` × ``grid`` cells, int64 ``[H, W]``, in reading order from 0.

    Row r of the pixels is in row ⌊r · grid / H⌋ of the cells, and columns likewise, so that cells have equal sizes if
    ``grid`` divides height and width, and otherwise differ by at most one row and one column of pixels.

    Raises:
        ValueError: more rows or columns than the image has.
    """
    if grid > min(height, width):
        raise ValueError(
            f"grid: found {grid}, expected at most {min(height, width)}, the image's smaller side in pixels"
        )
    rows, columns = (torch.arange(size) * grid // size for size in (height, width))
    return rows[:, None] * grid + columns


def delete_cells(images: Tensor, cells: Tensor, deleted: Tensor, fill: Tensor) -> Tensor:
    """Replace one cell of each image ``[N, C, H, W]``, int64 ``deleted [N]``, by the color ``fill [C]``.

    ``cells`` is the cell of each pixel, int64 ``[H, W]``; an image whose ``deleted`` is negative stays as it is.
    """
    return torch.where((cells == deleted[:, None, None])[:, None], fill[:, None, None], images)


def sample_deleted(count: int, grid: int, generator: torch.Generator) -> Tensor:
    """Sample the deleted cell of each of ``count`` images, int64 ``[count]`` on the generator's device.

    It is −1, no cell, with probability 1/2, and otherwise a uniformly random cell, as in the fine-tuning of Hesse et al.
    (2024).
    """
    device = generator.device
    cell = torch.randint(grid * grid, (count,), generator=generator, device=device)
    is_deleted = torch.rand(count, generator=generator, device=device) < 0.5
    return torch.where(is_deleted, cell, -1)

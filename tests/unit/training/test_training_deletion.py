"""Deletion of cells: which pixels change, and how often."""

import numpy as np
import torch

from saliency_assay.training.deletion import delete_cells, grid_cells, sample_deleted


def test_one_cell_shows_the_fill() -> None:
    images = torch.arange(2 * 3 * 6 * 4, dtype=torch.uint8).reshape(2, 3, 6, 4) + 50
    fill, before = torch.tensor([1, 2, 3], dtype=torch.uint8), images.clone()
    deleted = delete_cells(images, grid_cells((6, 4), 2), torch.tensor([1, -1]), fill)
    assert deleted.dtype == torch.uint8
    expected = before.clone()
    expected[0, :, :3, 2:] = fill[:, None, None]
    assert torch.equal(deleted, expected)
    assert torch.equal(images, before)


def test_half_of_the_images_lose_a_cell_any_of_them() -> None:
    count, grid = 40_000, 3
    deleted = sample_deleted(count, grid, torch.Generator().manual_seed(2))
    shares = np.bincount(deleted + 1, minlength=1 + grid * grid) / count
    # Six standard errors of each share.
    np.testing.assert_allclose(shares[0], 1 / 2, atol=6 * 0.5 / np.sqrt(count))
    np.testing.assert_allclose(shares[1:], 1 / 18, atol=6 * np.sqrt(1 / 18 / count))

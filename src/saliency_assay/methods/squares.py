"""Squares of pixels that are removed together, as int64 ``[S, 3]``: the top row, the left column and the side of each.

Their masks are the rows of the design M ``[S, H·W]`` of square removal. M itself is never made: what least squares
asks of it, Mᵀv, MᵀM and MMᵀ, has closed forms in the squares' corners.
"""

import torch
from torch import Tensor


def every_square(height: int, width: int, smallest: int, largest: int) -> Tensor:
    """All squares of sides ``smallest`` to ``largest`` that lie inside the image, at stride 1, ``[S, 3]``.

    A side longer than the image has no square.
    """
    parts = [torch.empty(0, 3, dtype=torch.int64)]
    for side in range(smallest, min(largest, height, width) + 1):
        tops, lefts = torch.arange(height - side + 1), torch.arange(width - side + 1)
        parts.append(torch.cartesian_prod(tops, lefts, torch.tensor([side])))
    return torch.cat(parts)


def covered(squares: Tensor, height: int, width: int) -> Tensor:
    """The pixels of each square, bool ``[S, 1, H, W]``."""
    tops, lefts, sides = squares[:, :, None].unbind(1)
    row, column = (torch.arange(length, device=squares.device) for length in (height, width))
    rows, columns = (row >= tops) & (row < tops + sides), (column >= lefts) & (column < lefts + sides)
    return rows[:, None, :, None] & columns[:, None, None, :]


def paint(squares: Tensor, values: Tensor, height: int, width: int) -> Tensor:
    """Mᵀv: at each pixel the sum of the ``values [N, S]`` of the squares that cover it, ``[N, H, W]``.

    Each square enters at its four corners, with signs; running sums over rows and columns fill it in.
    """
    tops, lefts, sides = squares.unbind(1)
    bottoms, rights, stride = tops + sides, lefts + sides, width + 1
    corners = torch.cat([tops * stride + lefts, bottoms * stride + rights])
    opposite = torch.cat([tops * stride + rights, bottoms * stride + lefts])
    changes = values.new_zeros(len(values), (height + 1) * stride)
    twice = values.repeat(1, 2)
    changes.scatter_add_(1, corners.expand_as(twice), twice)
    changes.scatter_add_(1, opposite.expand_as(twice), -twice)
    return changes.reshape(-1, height + 1, stride).cumsum(1).cumsum(2)[:, :height, :width]


def shared_squares(squares: Tensor, height: int, width: int) -> Tensor:
    """MᵀM: how many squares cover both of two pixels, float64 ``[H·W, H·W]``.

    Squares of one side k are a table w of positions, and they cover pixels (r, c) and (s, d) as often as
    Σ_tl a_tr a_ts w_tl b_lc b_ld, where a_tr says whether rows t … t + k − 1 hold r, and b the same of columns.
    """
    gram = torch.zeros(height**2, width**2, dtype=torch.float64, device=squares.device)
    for side in sorted(set(squares[:, 2].tolist())):
        tops, lefts, _ = squares[squares[:, 2] == side].unbind(1)
        rows, columns = _pairs(height, side, squares.device), _pairs(width, side, squares.device)
        table = gram.new_zeros(len(rows), len(columns))
        table.index_put_((tops, lefts), table.new_ones(()), accumulate=True)
        gram.addmm_(rows.T @ table, columns)
    pixels = height * width
    return gram.reshape(height, height, width, width).transpose(1, 2).reshape(pixels, pixels)


def shared_pixels(squares: Tensor) -> Tensor:
    """MMᵀ: how many pixels two squares share, float64 ``[S, S]``."""
    starts, stops = squares[:, :2], squares[:, :2] + squares[:, 2:]
    areas = torch.empty(len(squares), len(squares), dtype=torch.float64, device=squares.device)
    for first in range(0, len(squares), 1024):  # bounds what broadcasting takes
        part = slice(first, first + 1024)
        lengths = torch.minimum(stops[part, None], stops) - torch.maximum(starts[part, None], starts)
        areas[part] = lengths.clamp(min=0).prod(2).double()
    return areas


def _pairs(length: int, side: int, device: torch.device) -> Tensor:
    """Whether an interval of ``side`` holds both of two places, ``[positions, length²]``."""
    starts = torch.arange(length - side + 1, device=device)[:, None]
    places = torch.arange(length, device=device)
    held = ((places >= starts) & (places < starts + side)).double()
    return (held[:, :, None] * held[:, None, :]).flatten(1)

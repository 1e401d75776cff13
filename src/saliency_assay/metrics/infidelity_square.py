"""Infidelity under the removal of squares (Yeh et al., 2019, section 2.4)."""

from collections.abc import Mapping

import torch
from torch import Tensor

from saliency_assay.methods.optimal_square import choose
from saliency_assay.methods.squares import covered
from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.infidelity import contributions, score
from saliency_assay.metrics.perturbation import Predict, original, subject, under
from saliency_assay.metrics.probed import drop_of
from saliency_assay.metrics.scored import Scored

BLOCK = 16_384
"""Squares whose sums are looked up at a time."""


def removed_squares(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    smallest: int = 1,
    largest: int = 10,
    squares: int = 0,
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a square black), in logits, float64 ``[N, S]``; see ``infidelity_square``.

    Raises:
        ValueError: sides or a number of squares that do not fit the images, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    chosen = _chosen(images, smallest, largest, squares, generator)

    def cover(image: Tensor, number: Tensor) -> Tensor:
        return covered(chosen[number], examined.height, examined.width).flatten(1)

    return {"drop": original(examined)[:, None] - under(examined, len(chosen), cover)}


def infidelity_square(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    smallest: int = 1,
    largest: int = 10,
    squares: int = 0,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image inside a square: of sides ``smallest`` to ``largest`` at stride 1, all or a sample.

    A sample of ``squares`` hangs on the generator's first seed alone, so that all images and the probe share it. Yeh et
    al. (2019), equation 1 and section 2.4; ``explanation`` as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: as ``removed_squares``; maps or ``probed`` that do not fit the images and squares.
    """
    values = contributions(maps, images, explanation).reshape(-1, *images.shape[2:])
    chosen = _chosen(images, smallest, largest, squares, generator)
    drop = drop_of(probed, maps, len(chosen))
    return score(maps, square_sums(values, chosen), drop, rescale)


def square_sums(values: Tensor, squares: Tensor) -> Tensor:
    """The sum of ``values``, float64 ``[N, H, W]``, over each of ``squares [S, 3]``: ``[N, S]``.

    With t(r, c) the sum above row r and left of column c, it is t(bottom, right) − t(top, right) − t(bottom, left) +
    t(top, left).
    """
    count, height, width = values.shape
    table = values.new_zeros(count, height + 1, width + 1)
    table[:, 1:, 1:] = values.cumsum(1).cumsum(2)
    found = values.new_empty(count, len(squares))
    for first in range(0, len(squares), BLOCK):
        part = slice(first, first + BLOCK)
        top, left, side = squares[part].unbind(1)
        bottom, right = top + side, left + side
        lower = table[:, bottom, right] - table[:, bottom, left]
        found[:, part] = lower - (table[:, top, right] - table[:, top, left])
    return found


def _chosen(images: Tensor, smallest: int, largest: int, squares: int, generator: torch.Generator) -> Tensor:
    seed = generator.initial_seed() if squares else None
    height, width = images.shape[2:]
    return choose(height, width, smallest, largest, squares, seed).to(images.device)

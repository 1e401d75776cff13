"""The explanation that is optimal for the removal of squares (Yeh et al., 2019, section 2.4)."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs, target_logits
from saliency_assay.methods.optimal import LARGEST, Factor, factorise, solve
from saliency_assay.methods.passes import chunks
from saliency_assay.methods.squares import covered, every_square, paint, shared_pixels, shared_squares


@dataclass(frozen=True)
class Design:
    """The squares of an image size, and their least squares made ready to solve: the same for every image."""

    height: int
    width: int
    squares: Tensor
    """int64 ``[S, 3]``, as in ``squares``."""
    primal: bool
    """Whether ``factor`` is of MᵀM ``[H·W, H·W]`` rather than of MMᵀ ``[S, S]``: the smaller of the two is."""
    factor: Factor


def square(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    smallest: int = 1,
    largest: int = 10,
    squares: int = 0,
    ridge: float = 0.0,
) -> Tensor:
    """ψ = M⁺Δ, the global explanation of least infidelity under square removal, ``[N, 1, H, W]``, in logits.

    A row of M marks the pixels of one square; Δ is the logit's drop when they turn black. Squares have sides
    ``smallest`` to ``largest``, at stride 1 inside the image: all of them, or a sample of ``squares``. A ``ridge`` λ
    gives (MᵀM + λ)⁻¹MᵀΔ. Yeh et al. (2019), section 2.4; one pass for each square, and no gradients.

    Raises:
        ValueError: a parameter out of range, squares and pixels both above ``LARGEST``, or inputs that do not fit.
    """
    check_inputs(images, targets)
    # The sample hangs on the seed alone: were it drawn from the generator's state, each batch would see other squares.
    seed = generator.initial_seed() if squares else None
    design = make_design(*images.shape[2:], smallest, largest, squares, float(ridge), seed, images.device)
    return explain(design, drops(model, images, targets, design.squares))[:, None].to(images.dtype)


@lru_cache(maxsize=1)
def make_design(
    height: int,
    width: int,
    smallest: int,
    largest: int,
    squares: int,
    ridge: float,
    seed: int | None,
    device: torch.device,
) -> Design:
    """The squares that ``square`` names and their factor; the last one made is kept for the batches that follow.

    Raises:
        ValueError: as ``square``.
    """
    chosen = choose(height, width, smallest, largest, squares, seed)
    count, pixels = len(chosen), height * width
    if min(count, pixels) > LARGEST:
        raise ValueError(
            f"squares: found {count} on {pixels} pixels, expected at most {LARGEST} of either; "
            f"give squares and ridge to solve for a sample"
        )
    if ridge < 0:
        raise ValueError(f"ridge: found {ridge}, expected at least 0")
    chosen = chosen.to(device)
    if count >= pixels:
        factor = factorise(shared_squares(chosen, height, width), count, ridge)
    else:
        factor = factorise(shared_pixels(chosen), pixels, ridge)
    return Design(height, width, chosen, count >= pixels, factor)


def choose(height: int, width: int, smallest: int, largest: int, squares: int, seed: int | None) -> Tensor:
    """The squares ``[S, 3]``: all, or ``squares`` different ones, each set of as many equally likely."""
    shorter = min(height, width)
    if not 1 <= smallest <= shorter:
        raise ValueError(f"smallest: found {smallest}, expected 1 to {shorter}, the image's shorter side")
    if largest < smallest:
        raise ValueError(f"largest: found {largest}, expected at least smallest, {smallest}")
    every = every_square(height, width, smallest, largest)
    if not 0 <= squares <= len(every):
        raise ValueError(f"squares: found {squares}, expected 0 for all or 1 to {len(every)}, as many as fit")
    if seed is None:
        return every
    order = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))
    return every[order[:squares]]


def drops(model: nn.Module, images: Tensor, targets: Tensor, squares: Tensor) -> Tensor:
    """Δ = f(x) − f(x without the square), float64 ``[N, S]``."""
    before = target_logits(model, images, targets).double()
    after = before.new_empty(len(images) * len(squares))
    for chunk in chunks(len(images), len(squares), images.device):
        holes = covered(squares[chunk.passes], *images.shape[2:])
        removed = images.detach()[chunk.images].masked_fill(holes, 0)
        after[chunk.pairs] = target_logits(model, removed, targets[chunk.images])
    return before[:, None] - after.reshape(len(images), -1)


def explain(design: Design, drops: Tensor) -> Tensor:
    """ψ float64 ``[N, H, W]`` of ``drops [N, S]``, the part that is least squares alone."""
    size = (design.height, design.width)
    if not design.primal:
        return paint(design.squares, solve(design.factor, drops.T).T, *size)
    sums = paint(design.squares, drops, *size).flatten(1)
    return solve(design.factor, sums.T).T.reshape(-1, *size)

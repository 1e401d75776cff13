"""Explanations with the least infidelity under three perturbations (Yeh et al., 2019, proposition 2.1).

The explanation with the least infidelity is the least-squares solution of XΦ ≈ Δ, where X has one row for each
perturbation and Δ is the drop of the logit under it. Only XᵀX and XᵀΔ are computed: their size does not depend on the
number of perturbations. They are float64, because the normal equations square the condition number of X.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import Predict, check_inputs, logits_of, target_logits
from saliency_assay.methods.passes import passes_of, reported
from saliency_assay.registry.limits import Limits, NonNegativeFloat, NonNegativeInt, PositiveInt
from saliency_assay.runtime.transfer import to_device

LARGEST = 10_000
"""Largest number of unknowns: their Gram matrix takes 0.8 GB in float64, and its factor another 0.8 GB."""

SAFE = 1e-9
"""Smallest ratio of the smallest to the largest pivot at which a Cholesky factor is used; below it, the eigenvalues
decide about the pseudoinverse. The ratio of pivots is only an upper bound on that of the eigenvalues, hence the margin:
it is far below this value for a singular matrix."""


@dataclass(frozen=True)
class Factor:
    """Factorization of a Gram matrix, float64."""

    matrix: Tensor
    """Lower Cholesky factor ``[n, n]`` or, for a singular matrix, the eigenvectors ``[n, r]`` of its range."""
    values: Tensor | None
    """Eigenvalues ``[r]`` for a singular matrix, otherwise None."""


def all_logits(model: Predict, images: Tensor) -> Tensor:
    """Compute the logits of all classes, float64 ``[N, K]``, without an autograd graph."""
    return logits_of(model, images).double()


def factorize(gram: Tensor, rows: int, ridge: float = 0.0) -> Factor:
    """Factorize XᵀX + ``ridge`` · 1, X of rank at most ``rows``; ``gram`` is XᵀX and is modified in place.

    For a singular matrix, eigenvalues up to ``resolution`` times the largest count as zero, and so do all but the
    ``rows`` largest, regardless of rounding errors.
    """
    gram.diagonal().add_(ridge)
    if rows >= len(gram) or ridge > 0:
        # Much faster than eigh, which is needed only for the pseudoinverse of a singular matrix.
        lower, failed = torch.linalg.cholesky_ex(gram)
        pivots = lower.diagonal().square()
        if not failed and pivots.min() > SAFE * pivots.max():
            return Factor(lower, None)
    values, vectors = torch.linalg.eigh(gram)  # in ascending order
    nonzero = values > resolution(rows, len(gram)) * values[-1]
    nonzero[: max(0, len(gram) - rows)] = False
    return Factor(vectors[:, nonzero], values[nonzero])


def resolution(rows: int, unknowns: int) -> float:
    """Return the relative rounding error of the eigenvalues of XᵀX, X ``[rows, unknowns]`` in float64.

    It is relative to the largest eigenvalue. For the singular values of X it is the square root, 2e-6 for 20,000 rows.
    """
    return max(rows, unknowns) * torch.finfo(torch.float64).eps


def solve(factor: Factor, sums: Tensor) -> Tensor:
    """Return the solutions ``[n, k]`` for right-hand sides XᵀΔ ``[n, k]``, of least norm if they are not unique."""
    if factor.values is None:
        return torch.cholesky_solve(sums, factor.matrix)
    return factor.matrix @ ((factor.matrix.T @ sums) / factor.values[:, None])


def null_space_part(factor: Factor, columns: Tensor) -> Tensor:
    """Return the part of ``columns [n, k]`` that X maps to zero, which is orthogonal to the range of XᵀX."""
    if factor.values is None:
        return torch.zeros_like(columns)
    return columns - factor.matrix @ (factor.matrix.T @ columns)


# ---- removal of squares (section 2.4)
#
# Squares of pixels that are removed together are int64 [S, 3]: the top row, the left column and the side of each. Their
# masks are the rows of the design matrix M [S, H·W]. M itself is never computed: least squares only needs Mᵀv, MᵀM and
# MMᵀ, which have closed forms in the squares' corners.


@dataclass(frozen=True)
class Design:
    """Squares for one image size and the factorization of their least-squares problem, shared by all images."""

    height: int
    width: int
    squares: Tensor  # int64 [S, 3]
    primal: bool  # True if factor is of MᵀM [H·W, H·W], False if of MMᵀ [S, S]: the smaller of the two
    factor: Factor


def optimal_square(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    smallest: PositiveInt = 1,
    largest: PositiveInt = 10,
    squares: NonNegativeInt = 0,
    ridge: NonNegativeFloat = 0.0,
) -> Tensor:
    """Compute ψ = M⁺Δ, the global explanation with the least infidelity when squares turn black, ``[N, 1, H, W]``.

    A row of M marks the pixels of one square; Δ is the drop of the logit when they turn black, so ψ is in logits.
    Squares have sides ``smallest`` to ``largest``, at stride 1 inside the image: all of them, or a sample of
    ``squares``. A ``ridge`` λ gives (MᵀM + λ)⁻¹MᵀΔ. Yeh et al. (2019), section 2.4; one pass for each square, without
    gradients.

    Raises:
        ValueError: squares and pixels both more than ``LARGEST``, or inputs that do not fit.
    """
    check_inputs(images, targets)
    # From the initial seed, since the generator's state differs between batches and all images share one design.
    seed = generator.initial_seed() if squares else None
    design = make_design(*images.shape[2:], smallest, largest, squares, float(ridge), seed, images.device)
    maps = explain_squares(design, square_drops(model, images, targets, design.squares))
    return maps[:, None].to(images.dtype)


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
    """Return the squares of ``optimal_square`` and their factorization; the last result is cached for later batches.

    Raises:
        ValueError: as ``optimal_square``.
    """
    selected = sample_squares(height, width, smallest, largest, squares, seed)
    count, pixels = len(selected), height * width
    if min(count, pixels) > LARGEST:
        raise ValueError(
            f"squares: found {count} on {pixels} pixels, expected at most {LARGEST} of either; "
            f"give squares and ridge to solve for a sample"
        )
    selected = to_device(selected, device)
    if count >= pixels:
        factor = factorize(shared_squares(selected, height, width), count, ridge)
    else:
        factor = factorize(shared_pixels(selected), pixels, ridge)
    return Design(height, width, selected, count >= pixels, factor)


def sample_squares(
    height: int, width: int, smallest: int, largest: int, squares: int, seed: int | None
) -> Tensor:
    """Return the squares ``[S, 3]``: all of them, or a random sample of ``squares`` without replacement."""
    shorter = min(height, width)
    if not 1 <= smallest <= shorter:
        raise ValueError(f"smallest: found {smallest}, expected 1 to {shorter}, the image's shorter side")
    all_squares = every_square(height, width, smallest, largest)
    if not 0 <= squares <= len(all_squares):
        raise ValueError(
            f"squares: found {squares}, expected 0 for all or 1 to {len(all_squares)}, as many as fit"
        )
    if seed is None:
        return all_squares
    order = torch.randperm(len(all_squares), generator=torch.Generator().manual_seed(seed))
    return all_squares[order[:squares]]


def square_drops(model: nn.Module, images: Tensor, targets: Tensor, squares: Tensor) -> Tensor:
    """Compute Δ = f(x) − f(x without the square), float64 ``[N, S]``."""
    original = target_logits(model, images, targets).double()
    perturbed = original.new_empty(len(images), len(squares))
    masks = (
        mask for block in torch.split(squares, len(images)) for mask in covered(block, *images.shape[2:])
    )
    for number, mask in zip(passes_of(images, len(squares)), masks, strict=True):
        perturbed[:, number] = target_logits(model, images.detach().masked_fill(mask, 0), targets)
    return original[:, None] - perturbed


def explain_squares(design: Design, drops: Tensor) -> Tensor:
    """Solve the least-squares problem for ``drops [N, S]``, and return ψ, float64 ``[N, H, W]``."""
    size = (design.height, design.width)
    if not design.primal:
        return paint(design.squares, solve(design.factor, drops.T).T, *size)
    sums = paint(design.squares, drops, *size).flatten(1)
    return solve(design.factor, sums.T).T.reshape(-1, *size)


def every_square(height: int, width: int, smallest: int, largest: int) -> Tensor:
    """Return all squares of sides ``smallest`` to ``largest`` inside the image, at stride 1, ``[S, 3]``.

    Sides longer than the image are ignored.
    """
    squares = [torch.empty(0, 3, dtype=torch.int64)]
    for side in range(smallest, min(largest, height, width) + 1):
        tops, lefts = torch.arange(height - side + 1), torch.arange(width - side + 1)
        squares.append(torch.cartesian_prod(tops, lefts, torch.tensor([side])))
    return torch.cat(squares)


def covered(squares: Tensor, height: int, width: int) -> Tensor:
    """Return the pixels of each square, bool ``[S, 1, H, W]``."""
    tops, lefts, sides = squares[:, :, None].unbind(1)
    row, column = (torch.arange(length, device=squares.device) for length in (height, width))
    rows, columns = (row >= tops) & (row < tops + sides), (column >= lefts) & (column < lefts + sides)
    return rows[:, None, :, None] & columns[:, None, None, :]


def paint(squares: Tensor, values: Tensor, height: int, width: int) -> Tensor:
    """Compute Mᵀv, at each pixel the sum of the ``values [N, S]`` of the squares that cover it, ``[N, H, W]``.

    The value of each square is added or subtracted at its four corners; cumulative sums over rows and columns then give
    the sum at each pixel.
    """
    tops, lefts, sides = squares.unbind(1)
    bottoms, rights, stride = tops + sides, lefts + sides, width + 1
    corners = torch.cat([tops * stride + lefts, bottoms * stride + rights])
    opposite = torch.cat([tops * stride + rights, bottoms * stride + lefts])
    changes = values.new_zeros(len(values), (height + 1) * stride)
    corner_values = values.repeat(1, 2)
    changes.scatter_add_(1, corners.expand_as(corner_values), corner_values)
    changes.scatter_add_(1, opposite.expand_as(corner_values), -corner_values)
    return changes.reshape(-1, height + 1, stride).cumsum(1).cumsum(2)[:, :height, :width]


def shared_squares(squares: Tensor, height: int, width: int) -> Tensor:
    """Compute MᵀM, the number of squares that cover both of two pixels, float64 ``[H·W, H·W]``.

    The squares of one side k are a table w of positions. The number that covers pixels (r, c) and (s, d) is
    Σ_tl a_tr a_ts w_tl b_lc b_ld, where a_tr is 1 if rows t … t + k − 1 contain r, else 0, and b is the same for
    columns.
    """
    gram = torch.zeros(height**2, width**2, dtype=torch.float64, device=squares.device)
    for side in sorted(set(squares[:, 2].tolist())):
        tops, lefts, _ = squares[squares[:, 2] == side].unbind(1)
        rows, columns = (
            _covered_pairs(height, side, squares.device),
            _covered_pairs(width, side, squares.device),
        )
        table = gram.new_zeros(len(rows), len(columns))
        table.index_put_((tops, lefts), table.new_ones(()), accumulate=True)
        # The sums over t and over l are separate products, whose cost does not depend on the number of squares.
        gram.addmm_(rows.T @ table, columns)
    pixels = height * width
    return gram.reshape(height, height, width, width).transpose(1, 2).reshape(pixels, pixels)


def shared_pixels(squares: Tensor) -> Tensor:
    """Compute MMᵀ, the number of pixels that two squares share, float64 ``[S, S]``."""
    starts, stops = squares[:, :2], squares[:, :2] + squares[:, 2:]
    areas = torch.empty(len(squares), len(squares), dtype=torch.float64, device=squares.device)
    for first in range(0, len(squares), 1024):  # in blocks, to bound the memory of broadcasting
        block = slice(first, first + 1024)
        lengths = torch.minimum(stops[block, None], stops) - torch.maximum(starts[block, None], starts)
        areas[block] = lengths.clamp(min=0).prod(2).double()
    return areas


def _covered_pairs(length: int, side: int, device: torch.device) -> Tensor:
    """Return 1 where an interval of length ``side`` contains both of two positions, else 0, ``[starts, length²]``."""
    starts = torch.arange(length - side + 1, device=device)[:, None]
    positions = torch.arange(length, device=device)
    inside = ((positions >= starts) & (positions < starts + side)).double()
    return (inside[:, :, None] * inside[:, None, :]).flatten(1)


# ---- removal of the left or the right half (section 5)


def optimal_halves(
    model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> Tensor:
    """Compute the global explanation with the least infidelity when either half turns black, ``[N, 1, H, W]``.

    With M ``[2, H·W]`` the pixels of each half and Δ ``[2]`` the drop of the logit without it, MMᵀ is diagonal and the
    solution of least norm, M⁺Δ, distributes each drop evenly: Φ_p = Δ_j / |half j|, in logits per pixel. Its infidelity
    under these perturbations is 0. Yeh et al. (2019), "OPT" of Table 3, after proposition 2.1; three passes, without
    gradients.

    Raises:
        ValueError: images have fewer than two columns, or inputs do not fit.
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    sides = to_device(each_half(height, width), images.device)
    logits = target_logits(model, images, targets).double()
    black = [images.detach().masked_fill(side, 0) for side in sides]
    drops = torch.stack([logits - target_logits(model, half, targets) for half in black], 1)
    spread = drops[:, :, None, None] / sides.sum((1, 2))[:, None, None]
    return (spread * sides).sum(1, keepdim=True).to(images.dtype)


def each_half(height: int, width: int) -> Tensor:
    """Return the pixels of the left and of the right half, bool ``[2, H, W]``; a middle column belongs to the right.

    Raises:
        ValueError: fewer than two columns.
    """
    if width < 2:
        raise ValueError(f"images: found width {width}, expected at least 2 columns to halve")
    left = (torch.arange(width) < width // 2).expand(height, width)
    return torch.stack([left, ~left])


# ---- difference to a noisy baseline (section 2.4)
#
# All images share their baselines z, since x − I = z does not depend on x. With z̄ their mean, f̄ the mean of f_t(z),
# u = x − z̄ and e = f_t(x) − f̄, the infidelity of an image over n baselines is
#
#     Σ (Iᵀφ − (f_t(x) − f_t(z)))² = Σ ((z − z̄)ᵀφ − (f_t(z) − f̄))² + n (uᵀφ − e)²
#
# and only its last term depends on the image. So the scatter matrix C = Σ (z − z̄)(z − z̄)ᵀ is factorized once. The
# first sum has its minimum at a = C⁻¹ Σ (z − z̄) f_t(z), the whole expression at a + n C⁻¹u (e − uᵀa) / (1 + n uᵀC⁻¹u).
# If C is singular and u has a component w in which no baseline varies, a + w (e − uᵀa) / wᵀw makes the last term zero.

BLOCK = 1024
"""Baselines sampled at a time and added to the scatter matrix; with fewer, memory access dominates the time."""
PANEL = 128  # rows of the scatter matrix that are updated by one product


@dataclass(frozen=True)
class Baselines:
    """Sampler of the baselines that all images share: an endless sequence from one seed."""

    seed: int
    shape: tuple[int, ...]  # (C, H, W)
    dtype: torch.dtype
    device: torch.device
    noise: float
    clipped: bool  # True if baselines are clipped to [0, 1]

    def portions(self, size: int) -> Iterator[Tensor]:
        """Yield the baselines from the first on, ``size`` at a time, ``[size, C, H, W]``.

        They are sampled in blocks of fixed size, because a generator yields other numbers for tensors of other sizes,
        and ``size`` depends on the batch.
        """
        child = torch.Generator(self.device).manual_seed(self.seed)
        remainder = torch.empty(0, *self.shape, dtype=self.dtype, device=self.device)
        while True:
            while len(remainder) < size:
                remainder = torch.cat([remainder, self._block(child)])
            yield remainder[:size]
            remainder = remainder[size:]

    def _block(self, child: torch.Generator) -> Tensor:
        """Sample the next ``BLOCK`` baselines."""
        block = torch.empty(BLOCK, *self.shape, dtype=self.dtype, device=self.device)
        block.normal_(generator=child).mul_(self.noise)
        return block.clamp_(0, 1) if self.clipped else block


@dataclass(frozen=True)
class Scatter:
    """Statistics of the baselines for the least-squares problem, independent of the images."""

    count: int
    mean: Tensor  # z̄, float64 [d]
    factor: Factor  # of C [d, d]


def optimal_noisy_baseline(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: PositiveInt = 20_000,
    noise: NonNegativeFloat = 0.2,
    protocol: Annotated[str, Limits(choices=("printed", "released"))] = "printed",
) -> Tensor:
    """Compute Φ, the local explanation with the least infidelity under a noisy black baseline, ``[N, C, H, W]``.

    It minimizes Σ (IᵀΦ − (f(x) − f(x − I)))² over ``samples`` perturbations I = x − z with z ~ N(0, ``noise``²), and is
    in logits per unit of a pixel in [0, 1]. With ``protocol`` ``released``, z is clipped to [0, 1], which is the
    released I = clip(x + noise, x − 1, x). Yeh et al. (2019), section 2.4; one pass for each z serves all images,
    without gradients. With fewer samples than values in an image, it is the solution of least norm.

    Raises:
        ValueError: images of more than ``LARGEST`` values, or inputs that do not fit.
    """
    check_inputs(images, targets)
    size = images[0].numel()
    if size > LARGEST:
        raise ValueError(
            f"images: found {size} values an image, optimal_noisy_baseline solves for at most {LARGEST}; "
            f"use optimal_square with a sample of squares and ridge"
        )
    # From the initial seed, since the generator's state differs between batches and all images share the baselines.
    seed, shape = generator.initial_seed(), tuple(images.shape[1:])
    baselines = Baselines(seed, shape, images.dtype, images.device, float(noise), protocol == "released")
    images = images.detach()
    logits = all_logits(model, images)
    scatter = make_scatter(baselines, samples)
    portions = responses(model, images, baselines, samples)
    products, level = cross_products(portions, scatter.mean, logits.shape[1])
    drops = (logits - level).gather(1, targets[:, None])[:, 0]
    maps = explain_noisy(scatter, products[:, targets], images.flatten(1).double(), drops)
    return maps.reshape(images.shape).to(images.dtype)


@lru_cache(maxsize=1)
def make_scatter(baselines: Baselines, samples: int) -> Scatter:
    """Compute z̄ and C of the first ``samples`` baselines; the last result is cached for the following batches."""
    size = math.prod(baselines.shape)
    gram = torch.zeros(size, size, dtype=torch.float64, device=baselines.device)
    total = gram.new_zeros(size)
    portions = baselines.portions(BLOCK)
    for first in reported(samples, BLOCK, "baselines summed"):
        rows = next(portions)[: samples - first].flatten(1).double()
        total += rows.sum(0)
        # Only panels from the diagonal on: the matrix is symmetric.
        for start in range(0, size, PANEL):
            panel = slice(start, start + PANEL)
            gram[panel, start:].addmm_(rows[:, panel].T, rows[:, start:])
    mean = total / samples
    # C = Σ z zᵀ − n z̄ z̄ᵀ. This difference loses few digits, since z̄ is at most of the order of the noise.
    gram.addr_(mean, total, alpha=-1).triu_()
    gram += gram.triu(1).T
    return Scatter(samples, mean, factorize(gram, samples - 1))


def responses(
    model: nn.Module, images: Tensor, baselines: Baselines, samples: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the baselines ``[n, d]`` and their logits, float64 ``[n, K]``, in portions for ``cross_products``.

    Every pass has as many rows as there are images, even the last one, to use the device fully; but only the first
    ``samples`` baselines are returned. A portion has at least ``BLOCK`` baselines, except the last: products of few
    rows take several times longer.
    """
    pending: list[tuple[Tensor, Tensor]] = []
    rows = baselines.portions(len(images))
    for first in reported(samples, len(images), "baselines passed through the model"):
        batch = torch.empty_like(images).copy_(next(rows))  # in the images' memory format
        pending.append((batch.flatten(1), all_logits(model, batch)))
        stop = first + len(images)
        if len(pending) * len(images) >= BLOCK or stop >= samples:
            evaluated, logits = (torch.cat(batches) for batches in zip(*pending, strict=True))
            count = min(stop, samples) - (stop - len(evaluated))
            yield evaluated[:count], logits[:count]
            pending.clear()


def cross_products(
    portions: Iterable[tuple[Tensor, Tensor]], mean: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Compute Σ (z − z̄) f(z) of every logit, ``[d, K]``, and f̄, ``[K]``.

    ``portions`` are z ``[n, d]`` and f(z) ``[n, K]``, ``mean [d]`` is z̄.
    """
    products, total = mean.new_zeros(len(mean), classes), mean.new_zeros(classes)
    origin, count = total, 0
    for rows, logits in portions:
        # Relative to the first logits: with little noise all are near them, and their differences would lose digits.
        origin = origin if count else logits[0]
        products.addmm_(rows.double().T, logits - origin)
        total += (logits - origin).sum(0)
        count += len(rows)
    return products.addr_(mean, total, alpha=-1), origin + total / count


def explain_noisy(scatter: Scatter, products: Tensor, images: Tensor, drops: Tensor) -> Tensor:
    """Solve the least-squares problem for images ``[N, d]``, and return φ, float64 ``[N, d]``.

    ``products [d, N]`` are Σ (z − z̄) f_t(z) of each image's target, ``drops [N]`` are e = f_t(x) − f̄.
    """
    offsets = (images - scatter.mean).T  # u
    slopes = solve(scatter.factor, products)  # a
    residuals = drops - (offsets * slopes).sum(0)
    direction = scatter.count * solve(scatter.factor, offsets)
    free_part = null_space_part(scatter.factor, offsets)  # w
    length = free_part.square().sum(0)
    is_free = length > resolution(scatter.count, len(offsets)) * offsets.square().sum(0)
    step = torch.where(is_free, free_part / length, direction / (1 + (offsets * direction).sum(0)))
    return (slopes + step * residuals).T

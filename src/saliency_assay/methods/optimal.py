"""Explanations of least infidelity under three perturbations (Yeh et al., 2019, proposition 2.1).

The explanation of least infidelity solves XΦ ≈ Δ, a row of X for each perturbation and Δ the logit's drop under it.
Only XᵀX and XᵀΔ are made, in float64: their size does not depend on the number of perturbations.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from saliency_assay.methods import checks
from saliency_assay.methods.differentiate import check_inputs, check_logits, target_logits
from saliency_assay.methods.passes import chunks, reported

LARGEST = 10_000
"""Unknowns that are solved for at most: their Gram matrix takes 0.8 GB in float64, and its factor as much again."""

SAFE = 1e-9
"""Least ratio of pivots at which a Cholesky factor is trusted: of a singular matrix they come out far smaller, yet
not always as small as its eigenvalues, by which the pseudo-inverse decides."""


@dataclass(frozen=True)
class Factor:
    """A Gram matrix made ready to solve with, float64."""

    matrix: Tensor
    """Its lower Cholesky factor ``[n, n]`` or, where it is singular, the eigenvectors ``[n, r]`` of its range."""
    values: Tensor | None
    """Their eigenvalues ``[r]`` where it is singular."""


def all_logits(model: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """The logits of all classes, float64 ``[N, K]``, without a graph.

    Raises:
        ValueError: the model does not return ``[N, K]``.
    """
    with torch.no_grad():
        logits = model(images)
    check_logits(logits, images)
    return logits.double()


def factorise(gram: Tensor, rows: int, ridge: float = 0.0) -> Factor:
    """Make XᵀX + ``ridge`` · 1 ready to solve with, X of rank ``rows`` at most; ``gram`` itself becomes that matrix.

    Where it is singular, eigenvalues at or below ``resolution`` of the largest count as zero, and so do all but the
    ``rows`` largest, whatever rounding made of them.
    """
    gram.diagonal().add_(ridge)
    if rows >= len(gram) or ridge > 0:
        lower, failed = torch.linalg.cholesky_ex(gram)
        pivots = lower.diagonal().square()
        if not failed and pivots.min() > SAFE * pivots.max():
            return Factor(lower, None)
    values, vectors = torch.linalg.eigh(gram)  # in ascending order
    kept = values > resolution(rows, len(gram)) * values[-1]
    kept[: max(0, len(gram) - rows)] = False
    return Factor(vectors[:, kept], values[kept])


def resolution(rows: int, unknowns: int) -> float:
    """The share of XᵀX's largest eigenvalue below which rounding leaves nothing, X ``[rows, unknowns]`` in float64.

    In X itself it is the root of that, 2e-6 of the largest singular value for 20,000 rows.
    """
    return max(rows, unknowns) * torch.finfo(torch.float64).eps


def solve(factor: Factor, sums: Tensor) -> Tensor:
    """The solutions ``[n, k]`` for right-hand sides XᵀΔ ``[n, k]``; those of least norm where there are many."""
    if factor.values is None:
        return torch.cholesky_solve(sums, factor.matrix)
    return factor.matrix @ ((factor.matrix.T @ sums) / factor.values[:, None])


def unseen(factor: Factor, columns: Tensor) -> Tensor:
    """The part of ``columns [n, k]`` that X maps to zero: what is orthogonal to the range of XᵀX."""
    if factor.values is None:
        return torch.zeros_like(columns)
    return columns - factor.matrix @ (factor.matrix.T @ columns)


# ---- removal of squares (section 2.4)
#
# Squares of pixels that are removed together are int64 [S, 3]: the top row, the left column and the side of each. Their
# masks are the rows of the design M [S, H·W]. M itself is never made: what least squares asks of it, Mᵀv, MᵀM and MMᵀ,
# has closed forms in the squares' corners.


@dataclass(frozen=True)
class Design:
    """The squares of an image size, and their least squares made ready to solve: the same for every image."""

    height: int
    width: int
    squares: Tensor  # int64 [S, 3], as in squares
    primal: bool  # whether factor is of MᵀM [H·W, H·W] rather than of MMᵀ [S, S]: the smaller of the two is
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
    checks.require(checks.sides({"smallest": smallest, "largest": largest}))
    every = every_square(height, width, smallest, largest)
    if not 0 <= squares <= len(every):
        raise ValueError(f"squares: found {squares}, expected 0 for all or 1 to {len(every)}, as many as fit")
    if seed is None:
        return every
    order = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))
    return every[order[:squares]]


def square_drops(model: nn.Module, images: Tensor, targets: Tensor, squares: Tensor) -> Tensor:
    """Δ = f(x) − f(x without the square), float64 ``[N, S]``."""
    before = target_logits(model, images, targets).double()
    after = before.new_empty(len(images) * len(squares))
    for chunk in chunks(len(images), len(squares), images.device):
        holes = covered(squares[chunk.passes], *images.shape[2:])
        removed = images.detach()[chunk.images].masked_fill(holes, 0)
        after[chunk.pairs] = target_logits(model, removed, targets[chunk.images])
    return before[:, None] - after.reshape(len(images), -1)


def explain_squares(design: Design, drops: Tensor) -> Tensor:
    """ψ float64 ``[N, H, W]`` of ``drops [N, S]``, the part that is least squares alone."""
    size = (design.height, design.width)
    if not design.primal:
        return paint(design.squares, solve(design.factor, drops.T).T, *size)
    sums = paint(design.squares, drops, *size).flatten(1)
    return solve(design.factor, sums.T).T.reshape(-1, *size)


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


# ---- removal of the left or the right half (section 5)


def halves(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """The global explanation of least infidelity when the left or the right half turns black, ``[N, 1, H, W]``.

    With M ``[2, H·W]`` the pixels of each half and Δ ``[2]`` the logit's drop without it, MMᵀ is diagonal and the
    solution of least norm, M⁺Δ, spreads each drop evenly: Φ_p = Δ_j / |half j|, in logits a pixel. Its infidelity under
    these perturbations is 0. Yeh et al. (2019), "OPT" of Table 3, after proposition 2.1; three passes, no gradients.

    Raises:
        ValueError: images of fewer than two columns, or inputs that do not fit.
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    sides = each_half(height, width).to(images.device)
    logits = target_logits(model, images, targets).double()
    black = [images.detach().masked_fill(side, 0) for side in sides]
    drops = torch.stack([logits - target_logits(model, half, targets) for half in black], 1)
    spread = drops[:, :, None, None] / sides.sum((1, 2))[:, None, None]
    return (spread * sides).sum(1, keepdim=True).to(images.dtype)


def each_half(height: int, width: int) -> Tensor:
    """The pixels of the left and of the right half, bool ``[2, H, W]``; a middle column is the right one's.

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
# and only its last term knows the image. So the scatter matrix C = Σ (z − z̄)(z − z̄)ᵀ is factorised once, the first sum
# alone has its minimum at a = C⁻¹ Σ (z − z̄) f_t(z), and the whole at a + n C⁻¹u (e − uᵀa) / (1 + n uᵀC⁻¹u). Where C is
# singular and u has a part w that no baseline varies along, a + w (e − uᵀa) / wᵀw makes the last term zero.

PROTOCOLS = ("printed", "released")
BLOCK = 1024
"""Baselines drawn at a time, and added to the scatter matrix: with fewer, reading and writing it takes most time."""
PANEL = 128  # rows of the scatter matrix that are brought up to date by one product


@dataclass(frozen=True)
class Baselines:
    """Where the baselines of all images come from: endless draws of one seed."""

    seed: int
    shape: tuple[int, ...]  # (C, H, W)
    dtype: torch.dtype
    device: torch.device
    noise: float
    clipped: bool  # to [0, 1]

    def portions(self, size: int) -> Iterator[Tensor]:
        """The baselines from the first on, ``size`` at a time, ``[size, C, H, W]``.

        They are drawn in blocks of one size: a generator yields other numbers for tensors of other sizes, and how
        many go through the model together depends on the batch.
        """
        child = torch.Generator(self.device).manual_seed(self.seed)
        left = torch.empty(0, *self.shape, dtype=self.dtype, device=self.device)
        while True:
            while len(left) < size:
                left = torch.cat([left, self._block(child)])
            yield left[:size]
            left = left[size:]

    def _block(self, child: torch.Generator) -> Tensor:
        block = torch.empty(BLOCK, *self.shape, dtype=self.dtype, device=self.device)
        block.normal_(generator=child).mul_(self.noise)
        return block.clamp_(0, 1) if self.clipped else block


@dataclass(frozen=True)
class Scatter:
    """What least squares needs of the baselines alone."""

    count: int
    mean: Tensor  # z̄, float64 [d]
    factor: Factor  # of C [d, d]


def noisy_baseline(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 20_000,
    noise: float = 0.2,
    protocol: str = "printed",
) -> Tensor:
    """Φ, the local explanation of least infidelity under a noisy black baseline, ``[N, C, H, W]``, in logits.

    It minimises Σ (IᵀΦ − (f(x) − f(x − I)))² over ``samples`` perturbations I = x − z with z ~ N(0, ``noise``²),
    ``noise`` in units of pixels in [0, 1]. Under ``protocol`` ``released`` z is clipped to [0, 1], which is the
    released I = clip(x + noise, x − 1, x). Yeh et al. (2019), section 2.4; one pass for each z serves all images, and
    no gradients. With fewer samples than values in an image it is the solution of least norm.

    Raises:
        ValueError: a parameter out of range, images of more than ``LARGEST`` values, or inputs that do not fit.
    """
    check_inputs(images, targets)
    size = images[0].numel()
    if size > LARGEST:
        raise ValueError(
            f"images: found {size} values an image, noisy_baseline solves for at most {LARGEST}; "
            f"use square with a sample of squares and ridge"
        )
    if samples < 1 or noise < 0:
        raise ValueError(f"samples, noise: found {samples}, {noise}, expected at least 1 and 0")
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol: found {protocol!r}, valid: {', '.join(PROTOCOLS)}")
    # They hang on the seed alone: drawn from the generator's state, each batch of a run would see other baselines.
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
    """z̄ and C of the first ``samples`` baselines; the last one made is kept for the batches that follow."""
    size = math.prod(baselines.shape)
    gram = torch.zeros(size, size, dtype=torch.float64, device=baselines.device)
    total = gram.new_zeros(size)
    portions = baselines.portions(BLOCK)
    for first in reported(samples, BLOCK, "baselines added up"):
        rows = next(portions)[: samples - first].flatten(1).double()
        total += rows.sum(0)
        # Panels from the diagonal on: what lies below mirrors what lies above.
        for start in range(0, size, PANEL):
            panel = slice(start, start + PANEL)
            gram[panel, start:].addmm_(rows[:, panel].T, rows[:, start:])
    mean = total / samples
    gram.addr_(mean, total, alpha=-1).triu_()
    gram += gram.triu(1).T
    return Scatter(samples, mean, factorise(gram, samples - 1))


def responses(
    model: nn.Module, images: Tensor, baselines: Baselines, samples: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The baselines ``[n, d]`` and their logits, float64 ``[n, K]``, in portions for ``cross_products``.

    A pass has as many rows as there are images, and so has the last, which keeps the device busy; but only ``samples``
    baselines count. A portion is at least a block of them: products of a few rows at a time cost several times more.
    """
    held: list[tuple[Tensor, Tensor]] = []
    rows = baselines.portions(len(images))
    for first in reported(samples, len(images), "baselines through the model"):
        shown = torch.empty_like(images).copy_(next(rows))  # of the images' memory format
        held.append((shown.flatten(1), all_logits(model, shown)))
        stop = first + len(images)
        if len(held) * len(images) >= BLOCK or stop >= samples:
            seen, logits = (torch.cat(parts) for parts in zip(*held, strict=True))
            count = min(stop, samples) - (stop - len(seen))
            yield seen[:count], logits[:count]
            held.clear()


def cross_products(
    portions: Iterable[tuple[Tensor, Tensor]], mean: Tensor, classes: int
) -> tuple[Tensor, Tensor]:
    """Σ (z − z̄) f(z) of every logit ``[d, K]``, and f̄ ``[K]``.

    ``portions`` are z ``[n, d]`` and f(z) ``[n, K]``, ``mean [d]`` is z̄.
    """
    products, total = mean.new_zeros(len(mean), classes), mean.new_zeros(classes)
    origin, count = total, 0
    for rows, logits in portions:
        # Under little noise all logits are near the first, and what they differ by would lose its digits.
        origin = origin if count else logits[0]
        products.addmm_(rows.double().T, logits - origin)
        total += (logits - origin).sum(0)
        count += len(rows)
    return products.addr_(mean, total, alpha=-1), origin + total / count


def explain_noisy(scatter: Scatter, products: Tensor, images: Tensor, drops: Tensor) -> Tensor:
    """φ float64 ``[N, d]`` of images ``[N, d]``, the part that is least squares alone.

    ``products [d, N]`` are Σ (z − z̄) f_t(z) of each image's target, ``drops [N]`` are e = f_t(x) − f̄.
    """
    offsets = (images - scatter.mean).T  # u
    slopes = solve(scatter.factor, products)  # a
    misses = drops - (offsets * slopes).sum(0)
    towards = scatter.count * solve(scatter.factor, offsets)
    beyond = unseen(scatter.factor, offsets)  # w
    length = beyond.square().sum(0)
    free = length > resolution(scatter.count, len(offsets)) * offsets.square().sum(0)
    step = torch.where(free, beyond / length, towards / (1 + (offsets * towards).sum(0)))
    return (slopes + step * misses).T

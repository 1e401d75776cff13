"""The explanation that is optimal for the difference to a noisy baseline (Yeh et al., 2019, section 2.4).

All images share their baselines z, since x − I = z does not depend on x. With z̄ their mean, f̄ the mean of f_t(z),
u = x − z̄ and e = f_t(x) − f̄, the infidelity of an image over n baselines is

    Σ (Iᵀφ − (f_t(x) − f_t(z)))² = Σ ((z − z̄)ᵀφ − (f_t(z) − f̄))² + n (uᵀφ − e)²

and only its last term knows the image. So the scatter matrix C = Σ (z − z̄)(z − z̄)ᵀ is factorised once, the first sum
alone has its minimum at a = C⁻¹ Σ (z − z̄) f_t(z), and the whole at a + n C⁻¹u (e − uᵀa) / (1 + n uᵀC⁻¹u). Where C is
singular and u has a part w that no baseline varies along, a + w (e − uᵀa) / wᵀw makes the last term zero.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.methods.optimal import LARGEST, Factor, all_logits, factorise, resolution, solve, unseen
from saliency_assay.methods.passes import reported

PROTOCOLS = ("printed", "released")
BLOCK = 1024
"""Baselines drawn at a time, and added to the scatter matrix: with fewer, reading and writing it takes most time."""
PANEL = 128
"""Rows of the scatter matrix that are brought up to date by one product."""


@dataclass(frozen=True)
class Baselines:
    """Where the baselines of all images come from: endless draws of one seed."""

    seed: int
    shape: tuple[int, ...]
    """``(C, H, W)``."""
    dtype: torch.dtype
    device: torch.device
    noise: float
    clipped: bool
    """To [0, 1]."""

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
    mean: Tensor
    """z̄, float64 ``[d]``."""
    factor: Factor
    """Of C ``[d, d]``."""


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
    maps = explain(scatter, products[:, targets], images.flatten(1).double(), drops)
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


def explain(scatter: Scatter, products: Tensor, images: Tensor, drops: Tensor) -> Tensor:
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

"""AOPC: decrease of the output as pixels are perturbed one by one (Samek et al., 2017; Tomsett et al., 2020)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import (
    Predict,
    Span,
    evaluate_order,
    original,
    perturbation_batch,
    ranks_of,
)
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, PositiveInt, ScoredOutput
from saliency_assay.runtime.transfer import to_device


def aopc(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: PositiveInt = 100,
    every: PositiveInt = 20,
    fill: Fill = "mean",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute AOPC of raw maps ``[N, C or 1, H, W]``, most relevant (MoRF) and least relevant pixels first (LeRF).

    ``lerf`` is the exact reverse of ``morf``, including ties. Scores are in [−1, 1] for probabilities, with one variant
    ``L=…`` for each of ``prefixes``; ``curves`` are the output after 0 … ``steps`` pixels, ``[N, steps + 1]``. NaN
    where a map is NaN or constant. Images are ``[N, C, H, W]`` in [0, 1]; ``targets`` is int64 ``[N]``, the classes
    that the maps explain. ``random_orders`` computes the baseline; with an equally seeded generator, both use the same
    ``random`` fill.

    Raises:
        ValueError: more steps than pixels, or a fill without its ``mean``.
    """
    removed, pixels = _removed(images, steps), images[0, 0].numel()
    fill_seeds, _ = _seeds(len(images), generator)
    fill_pixels = fill_of(fill, images, mean=mean, seeds=fill_seeds)
    saliency = reduce(maps, "sum")
    # LeRF removes the end of the same order instead of sorting again, which would order ties differently.
    first = Span(torch.zeros_like(removed), removed)
    last = Span(pixels - removed, torch.full_like(removed, pixels))
    outputs = evaluate_order(
        perturbation_batch(predict, images, targets, fill_pixels, output=output),
        ranks_of(saliency),
        [first, last],
    )
    defined = is_rankable(saliency)
    curves = {name: nan_unless(defined, curve) for name, curve in zip(("morf", "lerf"), outputs, strict=True)}
    scores = {
        (f"aopc_{name}", f"L={length}"): area_over(curve, length)
        for name, curve in curves.items()
        for length in prefixes(steps, every)
    }
    return Scored(scores, curves)


def random_orders(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: PositiveInt = 100,
    every: PositiveInt = 20,
    fill: Fill = "mean",
    random_orders: PositiveInt = 10,
    output: ScoredOutput = "probability",
) -> dict[str, Tensor]:
    """Compute AOPC's baseline: ``random_orders`` random orders of the pixels of each image ``[N, C, H, W]``.

    ``random_curve`` is float64 ``[N, steps + 1]``, the mean output over the orders; ``random_aopc`` is float64
    ``[N, random_orders, prefixes]``, the AOPC of each order. Every image has its own orders.

    Raises:
        ValueError: as ``aopc``.
    """
    removed, pixels = _removed(images, steps), images[0, 0].numel()
    fill_seeds, order_seeds = _seeds(len(images), generator)
    fill_pixels = fill_of(fill, images, mean=mean, seeds=fill_seeds)
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    # Without step 0: the output for the unperturbed image is the same for all orders and evaluated once.
    span = Span(torch.zeros_like(removed[:, 1:]), removed[:, 1:])
    unperturbed = original(batch)[:, None]
    generators = [torch.Generator().manual_seed(seed) for seed in order_seeds]
    total, areas = unperturbed.new_zeros(removed.shape), []
    for _ in range(random_orders):  # one order at a time, so that memory does not grow with their number
        ranks = torch.stack([torch.randperm(pixels, generator=child) for child in generators])
        curve = torch.cat([unperturbed, *evaluate_order(batch, to_device(ranks, images.device), [span])], 1)
        total += curve
        areas.append(torch.stack([area_over(curve, length) for length in prefixes(steps, every)], 1))
    return {"random_curve": total / random_orders, "random_aopc": torch.stack(areas, 1)}


def area_over(curve: Tensor, length: int) -> Tensor:
    """Return AOPC with L = ``length``: 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(x^k)), ``[N]``, of f(x^k) ``[N, S]``."""
    return (curve[:, :1] - curve[:, 1 : length + 1]).sum(1) / (length + 1)


def prefixes(steps: int, every: int) -> list[int]:
    """Return the scored numbers of steps L: the multiples of ``every`` below ``steps``, and ``steps``."""
    return [*range(every, steps, every), steps]


def _removed(images: Tensor, steps: int) -> Tensor:
    """Return the number of perturbed pixels at each step, from 0, int64 ``[N, steps + 1]``."""
    pixels = images.shape[-2] * images.shape[-1]
    if steps > pixels:
        raise ValueError(f"steps: found {steps}, expected at most {pixels}, the pixels of an image")
    return torch.arange(steps + 1, device=images.device).repeat(len(images), 1)


def _seeds(images: int, generator: torch.Generator) -> tuple[list[int], list[int]]:
    """Sample a seed of the random fill and one of the random orders for each image.

    Both the metric and its model responses sample both, so that they use the same fill.
    """
    seeds = sample_seeds(images, 2, generator)
    return seeds[::2], seeds[1::2]

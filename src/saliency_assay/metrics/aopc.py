"""AOPC: how far the output falls as pixels are perturbed one by one (Samek et al., 2017; Tomsett et al., 2020)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import draw_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, Span, along, original, ranks_of, subject
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, varies, where_defined


def aopc(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: int = 100,
    every: int = 20,
    fill: str = "mean",
    output: str = "probability",
) -> Scored:
    """AOPC of raw maps ``[N, C or 1, H, W]``, most relevant pixels first (``morf``) and least relevant first.

    ``lerf`` is the exact reverse of ``morf``, ties included. Scores are in [−1, 1] for probabilities, a variant ``L=…``
    for each of ``prefixes``; ``curves`` hold the output after 0 … ``steps`` pixels, ``[N, steps + 1]``. NaN where a map
    is NaN or constant. Images ``[N, C, H, W]`` in [0, 1]; ``targets`` is int64 ``[N]``, the class the maps explain.
    ``random_orders`` gives the baseline; with an equally seeded generator, its ``random`` fill is this one's.

    Raises:
        ValueError: more steps than pixels, an unknown fill or output, a fill without its ``mean``.
    """
    removed, pixels = _removed(images, steps), images[0, 0].numel()
    fill_seeds, _ = _seeds(len(images), generator)
    shown = fill_of(fill, images, mean=mean, seeds=fill_seeds)
    saliency = reduce(maps, "sum")
    first = Span(torch.zeros_like(removed), removed)
    last = Span(pixels - removed, torch.full_like(removed, pixels))
    found = along(subject(predict, images, targets, shown, output=output), ranks_of(saliency), [first, last])
    defined = varies(saliency)
    curves = {
        name: where_defined(defined, curve) for name, curve in zip(("morf", "lerf"), found, strict=True)
    }
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
    steps: int = 100,
    every: int = 20,
    fill: str = "mean",
    random_orders: int = 10,
    output: str = "probability",
) -> dict[str, Tensor]:
    """AOPC's baseline: the same with ``random_orders`` random orders of the pixels of each image ``[N, C, H, W]``.

    ``random_curve`` is float64 ``[N, steps + 1]``, the mean output over the orders; ``random_aopc`` is float64
    ``[N, random_orders, prefixes]``, the AOPC of each order.

    Raises:
        ValueError: as ``aopc``.
    """
    removed, pixels = _removed(images, steps), images[0, 0].numel()
    fill_seeds, order_seeds = _seeds(len(images), generator)
    shown = fill_of(fill, images, mean=mean, seeds=fill_seeds)
    examined = subject(predict, images, targets, shown, output=output)
    span = Span(torch.zeros_like(removed[:, 1:]), removed[:, 1:])
    unperturbed = original(examined)[:, None]
    children = [torch.Generator().manual_seed(seed) for seed in order_seeds]
    total, areas = unperturbed.new_zeros(removed.shape), []
    for _ in range(random_orders):  # one at a time, so that memory does not grow with their number
        ranks = torch.stack([torch.randperm(pixels, generator=child) for child in children])
        curve = torch.cat([unperturbed, *along(examined, ranks.to(images.device), [span])], 1)
        total += curve
        areas.append(torch.stack([area_over(curve, length) for length in prefixes(steps, every)], 1))
    return {"random_curve": total / random_orders, "random_aopc": torch.stack(areas, 1)}


def area_over(curve: Tensor, length: int) -> Tensor:
    """AOPC with L = ``length``: 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(x^k)), ``[N]``, of f(x⁰), f(x¹), … ``[N, S]``."""
    return (curve[:, :1] - curve[:, 1 : length + 1]).sum(1) / (length + 1)


def prefixes(steps: int, every: int) -> list[int]:
    """The numbers of steps L that are scored: the multiples of ``every`` below ``steps``, and ``steps`` itself."""
    return [*range(every, steps, every), steps]


def _removed(images: Tensor, steps: int) -> Tensor:
    """How many pixels are perturbed at each step from 0, int64 ``[N, steps + 1]``."""
    pixels = images.shape[-2] * images.shape[-1]
    if steps > pixels:
        raise ValueError(f"steps: found {steps}, expected at most {pixels}, the pixels of an image")
    return torch.arange(steps + 1, device=images.device).repeat(len(images), 1)


def _seeds(images: int, generator: torch.Generator) -> tuple[list[int], list[int]]:
    """For each image, of its random fill and of its random orders; metric and probe draw both, to agree on the fill."""
    seeds = draw_seeds(images, 2, generator)
    return seeds[::2], seeds[1::2]

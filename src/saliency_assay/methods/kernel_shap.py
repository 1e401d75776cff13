"""Kernel SHAP: Shapley values of an image's segments, by weighted least squares."""

from math import comb

import torch
from torch import Tensor, nn

from saliency_assay.methods import checks
from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.methods.segments import BLOCK, coalition_values, paint, pixel_counts, segment
from saliency_assay.registry.limits import Baseline, Features, PositiveInt
from saliency_assay.runtime.transfer import to_device


def kernel_shap(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    features: Features = "grid",
    segments: PositiveInt = 16,
    samples: PositiveInt = 500,
    baseline: Baseline = "black",
) -> Tensor:
    """Compute Shapley values of segments, each divided evenly among its segment's pixels, ``[N, 1, H, W]``.

    The value of a coalition of segments is f_t of the image with all other segments in the ``baseline`` color. Lundberg
    & Lee (2017), theorem 2. Exact if ``samples`` is at least 2^M − 2, with M the number of segments; a map always sums
    to f_t(x) − f_t(baseline). See ``segment`` for the segments, ``coalitions`` for the samples.

    Raises:
        ValueError: a parameter does not fit the images, or there are too few samples to determine the values.
    """
    check_inputs(images, targets)
    labels = segment(images, features, segments)
    color = baseline_color(model, images, baseline)
    sizes = pixel_counts(labels)
    members, weights = _padded_coalitions(sizes, samples, sample_seeds(len(images), 1, generator))
    values = coalition_values(model, images, targets, labels, members, color)
    games = zip(members, weights, values, sizes > 0, strict=True)
    density = torch.stack([_solve(*game) for game in games]) / sizes.clamp(min=1)
    return paint(density, labels).to(images.dtype)


def coalitions(segments: int, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return coalitions, bool ``[R, M]`` with R <= ``samples``, and their weights in the regression, float64 ``[R]``.

    If ``samples`` allows, these are all 2^M − 2 coalitions except the empty and the full one, weighted by the Shapley
    kernel π(z) = (M − 1) / (C(M, |z|) |z| (M − |z|)). Otherwise they are the 2 M coalitions of one segment and of all
    but one, with the same weights, since the regression could be singular without them; and samples of the other
    coalitions, which share the remaining weight equally: |z| by the kernel, members uniformly, each followed by its
    complement.

    Raises:
        ValueError: ``samples`` is below 2^M − 2 and below 2 M + 2.
    """
    if problem := checks.few_samples(segments, samples):
        raise ValueError(problem)
    total = 2**segments - 2
    sizes = range(1, segments)
    totals = _float64([(segments - 1) / (size * (segments - size)) for size in sizes])  # π over all of a size
    if total <= samples:
        members = (torch.arange(1, total + 1)[:, None] >> torch.arange(segments)) % 2 == 1
        kernel = totals / _float64([comb(segments, size) for size in sizes])
        return members, kernel[members.sum(1) - 1]
    singles, remaining = torch.eye(segments, dtype=torch.bool), samples - 2 * segments
    sampled = _sample_pairs(totals[1:-1], (remaining + 1) // 2, seed)[:remaining]
    # π of one segment and of all but one is (M − 1) / (M (M − 1)) = 1 / M.
    weights = [1 / segments] * (2 * segments) + [float(totals[1:-1].sum()) / remaining] * remaining
    return torch.cat([singles, ~singles, sampled]), _float64(weights)


def _float64(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _sample_pairs(shares: Tensor, pairs: int, seed: int) -> Tensor:
    """Sample coalitions of 2 to M − 2 segments, with sizes in proportion to ``shares``, each before its complement."""
    child = torch.Generator().manual_seed(seed)
    sizes = torch.multinomial(shares, pairs, replacement=True, generator=child) + 2
    # ``shares`` has an entry for each of M − 3 sizes. The ranks of M uniform values are a random permutation.
    ranks = torch.rand(pairs, len(shares) + 3, generator=child, dtype=torch.float32).argsort(1).argsort(1)
    members = ranks < sizes[:, None]
    return torch.stack([members, ~members], 1).flatten(0, 1)


def _padded_coalitions(sizes: Tensor, samples: int, seeds: list[int]) -> tuple[Tensor, Tensor]:
    """Return the coalitions of all images, bool ``[N, R, M]``, and their weights ``[N, R]``, padded with weight 0.

    The first is the empty and the second the full coalition. They have weight 0, because the regression satisfies them
    as constraints.
    """
    counts = (sizes > 0).sum(1).tolist()
    # An image may have more superpixels than the parameters allow for.
    games = [
        coalitions(count, max(samples, checks.fewest_samples(count)), seed)
        for count, seed in zip(counts, seeds, strict=True)
    ]
    rows = 2 + max(len(game) for game, _ in games)
    members = torch.zeros(len(games), rows, max(counts), dtype=torch.bool)
    weights = torch.zeros(len(games), rows, dtype=torch.float64)
    members[:, 1] = True
    for i, (game, weight) in enumerate(games):
        members[i, 2 : 2 + len(game), : counts[i]] = game
        weights[i, 2 : 2 + len(game)] = weight
    return to_device(members, sizes.device), to_device(weights, sizes.device)


def _solve(members: Tensor, weights: Tensor, values: Tensor, exists: Tensor) -> Tensor:
    """Return φ that minimizes Σ_z π(z) (v(z) − v(∅) − Σ_{j in z} φ_j)² subject to Σ φ = v(all) − v(∅).

    ``members [R, M]``, ``weights [R]`` (π) and ``values [R]`` (v) of one image begin with the empty and the full
    coalition. φ is 0 for segments where ``exists [M]`` is False. The first segment always exists; substituting its φ
    from the constraint leaves an unconstrained problem in the others.
    """
    change = values[1] - values[0]
    # A segment that does not exist has an empty row and column: a 1 on the diagonal makes its value 0.
    normal, sums = torch.diag((~exists[1:]).double()), values.new_zeros(len(exists) - 1)
    # In blocks, since the coalitions of many segments are large in float64.
    for start in range(0, len(members), BLOCK):
        rows = slice(start, start + BLOCK)
        present = members[rows].double()
        design = (present[:, 1:] - present[:, :1]) * exists[1:]
        weighted = design.mT * weights[rows]
        normal += weighted @ design
        sums += weighted @ (values[rows] - values[0] - present[:, 0] * change)
    others = torch.linalg.solve(normal, sums)
    return torch.cat([(change - others.sum())[None], others])

"""Coverage and width of the intervals of rank correlations of means, in simulated studies.

Prints a Markdown table. ``known order`` is the macro average of a validity study: the means of six levels of
degradation fall by 0.05 standard deviations from one to the next, and a quarter of the variance is common to all scores
of an image. ``rank agreement`` compares five methods under two evaluations of a retrain study, with accuracies two
points apart, and results that are correlated within images. ``bootstrap`` is the percentile bootstrap of images, or of
clusters, that both intervals were in version 0.2. ``tasks`` compares the orders of five methods under two data sets
of independent images (``reliability.across``), by win rates of normal scores with equally spaced means.

    python benchmarks/order_intervals.py --studies 1000
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from saliency_assay.reliability.across import Orders, across_tasks
from saliency_assay.reliability.comparison import win_rates
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.studies.retrain.rank_agreement import MEAN, rank_agreement
from saliency_assay.studies.validity.known_order import ALL, known_order_table, spearman_of_levels

Array = npt.NDArray[np.float64]
Interval = tuple[float, float]

LEVEL = 0.95
RESAMPLES = 400
STEP = 0.05
"""Difference of the means of adjacent levels, in standard deviations of a score."""
FALLING = (0, 1, 2, 3, 4, 5)
GAP = 0.02
"""Difference of the accuracies of methods of adjacent ranks."""


@dataclass(frozen=True)
class KnownOrder:
    """Scores of degraded maps."""

    name: str
    images: int
    rho: float
    """ρ of the means of the population; 0 if they are equal."""
    steps: tuple[int, ...] = FALLING
    """Of each level the number of steps by which its mean is below the highest."""
    curves: int = 1
    clusters: int = 0
    seeds: int = 1
    skewed: bool = False

    def scores(self, source: np.random.Generator) -> tuple[Array, dict[str, npt.NDArray[np.int64]]]:
        """Return scores ``[curves, seeds, images, levels]`` and the clusters of images."""
        shape = (self.curves, self.seeds, self.images, len(self.steps))
        noise = 0.5 * source.normal(size=(self.images, 1)) + 0.75**0.5 * source.normal(size=shape)
        clusters = {}
        if self.clusters:
            clusters = {"cut-outs": source.integers(self.clusters, size=self.images)}
            shared = source.normal(size=(self.curves, 1, self.clusters, len(self.steps)))
            noise = 0.7**0.5 * noise + 0.3**0.5 * shared[:, :, clusters["cut-outs"]]
        if self.seeds > 1:  # a training changes the means of all images
            noise = noise + STEP * source.normal(size=(self.curves, self.seeds, 1, len(self.steps)))
        if self.skewed:
            noise = np.exp(noise) / (np.exp(2) - np.exp(1)) ** 0.5
        return noise - STEP * np.array(self.steps), clusters

    def intervals(self, source: np.random.Generator) -> tuple[Interval, Interval]:
        """Return the interval of a simulated study and that of the bootstrap."""
        scores, clusters = self.scores(source)
        curve, seed, image, level = (index.ravel() for index in np.indices(scores.shape))
        table = pd.DataFrame(
            {
                "metric": "metric",
                "variant": "metric",
                "method": "gradient",
                "test": np.where(level == 0, "original", np.char.add("degradation ", curve.astype(str))),
                "level": level / (len(self.steps) - 1),
                "seed": seed,
                "image": image,
                "score": scores.ravel(),
            }
        )
        # All degradations of a method have the same original map.
        table = table[(level > 0) | (curve == 0)]
        scores[:, :, :, 0] = scores[0, :, :, 0]
        order = known_order_table(table, {"metric": "higher"}, level=LEVEL, clusters=clusters)
        row = order[order["degradation"] == ALL].iloc[0] if self.curves > 1 else order.iloc[0]
        units = clusters.get("cut-outs", np.arange(self.images))
        weights = _resampled(int(units.max()) + 1, source)[:, units]
        rho = spearman_of_levels(np.einsum("ri,cil->rcl", weights, scores.mean(1))).mean(1)
        return (row["macro_low"], row["macro_high"]), _percentiles(rho)


@dataclass(frozen=True)
class RankAgreement:
    """Accuracies of methods under two evaluations."""

    name: str
    images: int
    rho: float
    ranks: tuple[int, ...]
    """Ranks of the methods under the second evaluation; 1 to 5 under the first."""
    iterations: int = 1

    def intervals(self, source: np.random.Generator) -> tuple[Interval, Interval]:
        """Return the interval of a simulated study and that of the bootstrap."""
        difficulty = source.normal(size=self.images)
        correct = {}
        for retraining, ranks in (("yes", range(1, len(self.ranks) + 1)), ("no", self.ranks)):
            for method, rank in enumerate(ranks):
                accuracy = 0.6 + GAP * rank - 0.05 * np.arange(self.iterations)[:, None]
                latent = 0.5**0.5 * (difficulty + source.normal(size=(self.iterations, self.images)))
                correct["roar", "mean", retraining, method] = (latent < ndtri(accuracy)).astype(np.uint8)
        table = rank_agreement({(key[:3], str(key[3])): values for key, values in correct.items()})
        row = table[table["iteration"] == MEAN].iloc[0]
        weights = _resampled(self.images, source)
        first, second = (
            rankdata(
                np.stack(
                    [weights @ values.T for key, values in correct.items() if key[2] == retraining], axis=-1
                ),
                axis=-1,
            )
            for retraining in ("yes", "no")
        )
        first, second = (ranks - ranks.mean(-1, keepdims=True) for ranks in (first, second))
        # ρ is not defined, and left out, where all accuracies of a resample are equal.
        norms = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
        norms[norms == 0] = np.nan
        return (row["rho_low"], row["rho_high"]), _percentiles(
            np.nanmean((first * second).sum(-1) / norms, axis=1)
        )


@dataclass(frozen=True)
class Tasks:
    """Scores of methods under two tasks."""

    name: str
    images: int
    rho: float
    ranks: tuple[int, ...]
    """Ranks of the methods under the second task; 1 to 5 under the first."""
    gap: float = 0.3
    """Difference of the means of methods of adjacent ranks, in standard deviations."""

    def intervals(self, source: np.random.Generator) -> tuple[Interval, Interval]:
        """Return the interval of a simulated study and that of the bootstrap."""
        orders, resampled = {}, []
        for task, ranks in (("one", range(1, len(self.ranks) + 1)), ("other", self.ranks)):
            scores = self.gap * np.array(ranks) + source.normal(size=(self.images, len(self.ranks)))
            image, method = (index.ravel() for index in np.indices(scores.shape))
            keys = dict.fromkeys(("metric", "variant", "data", "model"), "same")
            columns = {"seed": 0, "method": method.astype(str), "image": image, "score": scores.ravel()}
            orders[task] = Orders(*order_tables(pd.DataFrame(keys | columns), {"same": "higher"}))
            ranked = rankdata(_resampled(self.images, source) @ win_rates(scores), axis=-1)
            resampled.append(ranked - ranked.mean(-1, keepdims=True))
        row = across_tasks(orders).agreement.iloc[0]
        first, second = resampled
        norms = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
        return (row["low"], row["high"]), _percentiles((first * second).sum(-1) / norms)


Simulated: TypeAlias = KnownOrder | RankAgreement | Tasks
STATISTICS = {KnownOrder: "known order", RankAgreement: "rank agreement", Tasks: "tasks"}


def _resampled(count: int, source: np.random.Generator) -> Array:
    """Return how often each bootstrap resample contains each of ``count`` units, ``[resamples, count]``."""
    return source.multinomial(count, np.full(count, 1 / count), RESAMPLES).astype(np.float64)


def _percentiles(values: Array) -> Interval:
    low, high = np.nanquantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def designs() -> Iterator[Simulated]:
    swapped = 1 - 6 * 2 * 2**2 / (6**3 - 6)  # the levels 1 and 3 exchanged
    for images in (60, 200):
        yield KnownOrder("weak signal", images, 1)
        yield KnownOrder("two levels exchanged", images, swapped, (0, 3, 2, 1, 4, 5))
        yield KnownOrder("no signal", images, 0, (0,) * 6)
        yield KnownOrder("log-normal scores", images, 1, skewed=True)
        yield KnownOrder("clusters of 3 images", images, 1, clusters=images // 3)
        yield KnownOrder("mean of 4 degradations", images, 1, curves=4)
        yield KnownOrder("3 seeds with training noise", images, 1, seeds=3)
    for images in (1000, 5000):
        yield KnownOrder("weak signal", images, 1)
        yield KnownOrder("two levels exchanged", images, swapped, (0, 3, 2, 1, 4, 5))
    yield KnownOrder("ten-fold signal", 200, 1, tuple(10 * step for step in FALLING))
    yield KnownOrder("ten-fold signal, two levels exchanged", 200, swapped, (0, 30, 20, 10, 40, 50))
    for images in (200, 1500):
        yield RankAgreement("equal rankings", images, 1, (1, 2, 3, 4, 5))
        yield RankAgreement("different rankings", images, 0.5, (3, 2, 1, 5, 4))
        yield RankAgreement("equal rankings, mean of 3 iterations", images, 1, (1, 2, 3, 4, 5), 3)
    yield RankAgreement("equal rankings", 10_000, 1, (1, 2, 3, 4, 5))
    yield RankAgreement("different rankings", 10_000, 0.5, (3, 2, 1, 5, 4))
    for images in (30, 100, 500):
        yield Tasks("equal orders", images, 1, (1, 2, 3, 4, 5))
        yield Tasks("different orders", images, 0.5, (3, 2, 1, 5, 4))
        yield Tasks("opposite orders", images, -1, (5, 4, 3, 2, 1))
        yield Tasks("equal orders, weak signal", images, 1, (1, 2, 3, 4, 5), 0.1)


def row(number: int, design: Simulated, studies: int) -> list[str]:
    """Return the cells of the table of one design."""
    source = np.random.default_rng([0, number])
    ends = np.array([design.intervals(source) for _ in range(studies)])  # [studies, 2, 2]
    # ρ has rounding errors of its own.
    covered = ((ends[..., 0] <= design.rho + 1e-9) & (ends[..., 1] >= design.rho - 1e-9)).mean(0)
    width = np.ptp(ends, axis=-1).mean(0)
    error = (covered[0] * (1 - covered[0]) / studies) ** 0.5
    cells = [
        STATISTICS[type(design)],
        design.name,
        str(design.images),
        f"{design.rho:.2f}",
        f"{covered[0]:.3f}",
    ]
    return [*cells, f"{error:.3f}", f"{width[0]:.2f}", f"{covered[1]:.3f}", f"{width[1]:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--statistic", choices=STATISTICS.values(), help="by default all")
    arguments = parser.parse_args()
    head = ["statistic", "design", "images", "true ρ", "coverage", "standard error", "mean width"]
    head += ["bootstrap: coverage", "mean width"]
    print(f"{arguments.studies} studies a row, nominal coverage {LEVEL}\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for number, design in enumerate(designs()):
        if arguments.statistic in (None, STATISTICS[type(design)]):
            print(f"| {' | '.join(row(number, design, arguments.studies))} |", flush=True)


if __name__ == "__main__":
    main()

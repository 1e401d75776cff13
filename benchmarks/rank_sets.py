"""Error rates and power of rank sets, and coverage of α's interval, in simulated studies.

Prints Markdown tables with the number of simulated studies. In the first table, the scores of a study are those of
equal methods on images that share cut-outs and scenes (a third as many of each as images, at least 10), or of retrained
models with and without training noise; then the same with one better method. ``previous`` is the rule of version 0.1:
better in 95 % of the bootstrap resamples of images.

    python benchmarks/rank_sets.py --studies 1000
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from saliency_assay.reliability import statistics
from saliency_assay.reliability.comparison import Factors, rank_sets

Array = npt.NDArray[np.float64]

METHODS, IMAGES = (2, 4, 8), (20, 100, 1000)
RESAMPLES = 400
LEVEL = 0.95
BETTER = {"clusters": 0.5, "training": 0.05}
"""Effect size of the better method: half a standard deviation of the scores, or five points of accuracy."""


@dataclass(frozen=True)
class Cell:
    """Parameters of simulated studies."""

    methods: int
    images: int
    correlation: float = 0.0
    """Correlation of images that share a cut-out, and of images that share a scene."""
    seeds: int = 1
    noise: float = 0.0
    """Standard deviation of accuracy between trainings."""

    def scores(self, better: float, source: np.random.Generator) -> tuple[Array, Factors]:
        """Return the scores ``[n, M]`` of a study and the factors of its rows."""
        if self.seeds == 1:
            return self._of_clusters(better, source)
        image, seed = (
            np.repeat(np.arange(self.images), self.seeds),
            np.tile(np.arange(self.seeds), self.images),
        )
        accuracy = 0.7 + self.noise * source.normal(size=(self.seeds, self.methods))[seed]
        accuracy = accuracy + 0.2 * source.normal(size=(self.images, 1))[image]
        accuracy[:, 0] += better
        return (source.random(accuracy.shape) < accuracy).astype(np.float64), {"images": image, "seeds": seed}

    def _of_clusters(self, better: float, source: np.random.Generator) -> tuple[Array, Factors]:
        scores = source.normal(size=(self.images, 1)) + (1 - 2 * self.correlation) ** 0.5 * source.normal(
            size=(self.images, self.methods)
        )
        factors = {}
        for name in ("cut-outs", "scenes") if self.correlation else ():
            count = max(self.images // 3, 10)
            factors[name] = source.integers(count, size=self.images)
            shared = source.normal(size=(count, self.methods))
            scores = scores + self.correlation**0.5 * shared[factors[name]]
        scores[:, 0] += better
        return scores, factors


def cells() -> Iterator[Cell]:
    for methods in METHODS:
        for images in IMAGES:
            for correlation in (0.0, 0.1, 0.3):
                yield Cell(methods, images, correlation)
            for seeds in (3, 5):
                for noise in (0.0, 0.01, 0.03):
                    yield Cell(methods, images, seeds=seeds, noise=noise)


def previous(scores: Array, cell: Cell, weights: Array) -> npt.NDArray[np.bool_]:
    """Return bool ``[M, M]``: True if the row's method is better in at least 95 % of the resamples of images."""
    of_images = scores.reshape(cell.images, cell.seeds, cell.methods).mean(1)
    means = weights @ of_images
    above = (means[:, :, None] > means[:, None]).mean(0) + 0.5 * (means[:, :, None] == means[:, None]).mean(0)
    return np.asarray(above >= LEVEL)


def rates(cell: Cell, studies: int) -> dict[str, float]:
    """Return error rates and power over the studies of one cell."""
    source = np.random.default_rng([cell.methods, cell.images, int(100 * cell.correlation), cell.seeds])
    weights = source.multinomial(cell.images, np.full(cell.images, 1 / cell.images), RESAMPLES) / cell.images
    counts = dict.fromkeys(("false", "false_previous", "missed", "power", "power_previous"), 0)
    effect = BETTER["training" if cell.seeds > 1 else "clusters"]
    for _ in range(studies):
        scores, factors = cell.scores(0, source)
        counts["false"] += int(rank_sets(scores, factors, level=LEVEL).better.any())
        counts["false_previous"] += int(previous(scores, cell, weights).any())
        scores, factors = cell.scores(effect, source)
        ranks = rank_sets(scores, factors, level=LEVEL)
        true = np.where(np.arange(cell.methods) == 0, 1, 2)
        counts["missed"] += int(((true < ranks.low) | (true > ranks.high)).any())
        counts["power"] += int(ranks.high[0] == 1)
        counts["power_previous"] += int(previous(scores, cell, weights)[0, 1:].all())
    return {name: count / studies for name, count in counts.items()}


def limits(studies: int) -> Iterator[tuple[str, float]]:
    """Yield designs of equal methods that violate the assumptions, with the share of studies with a false result."""

    def false_share(scores: Callable[[np.random.Generator], tuple[Array, Factors]]) -> float:
        source = np.random.default_rng(0)
        return float(np.mean([rank_sets(*scores(source)).better.any() for _ in range(studies)]))

    def unequal_noise(seeds: int) -> Callable[[np.random.Generator], tuple[Array, Factors]]:
        image, seed = np.repeat(np.arange(1000), seeds), np.tile(np.arange(seeds), 1000)

        def scores(source: np.random.Generator) -> tuple[Array, Factors]:
            accuracy = np.full((seeds, 8), 0.7)
            accuracy[:, 0] += 0.1 * source.normal(size=seeds)
            right = source.random((len(seed), 8)) < accuracy[seed]
            return right.astype(np.float64), {"images": image, "seeds": seed}

        return scores

    def log_normal(images: int) -> Callable[[np.random.Generator], tuple[Array, Factors]]:
        def scores(source: np.random.Generator) -> tuple[Array, Factors]:
            normal = np.exp(0.5) + source.normal(size=images)
            return np.stack([source.lognormal(size=images), normal], axis=1), {}

        return scores

    def few_clusters(source: np.random.Generator) -> tuple[Array, Factors]:
        factors = {name: source.integers(10, size=60) for name in ("cut-outs", "scenes")}
        shared = sum(source.normal(size=(10, 8))[factor] for factor in factors.values())
        return 0.3**0.5 * shared + 0.4**0.5 * source.normal(size=(60, 8)), factors

    for seeds in (2, 3):
        yield (
            f"one of 8 methods with a training noise of 0.1, the others with none, {seeds} seeds",
            false_share(unequal_noise(seeds)),
        )
    for images in (20, 100, 1000):
        yield f"log-normal scores against normal ones, {images} images", false_share(log_normal(images))
    yield (
        "8 methods, 60 images, 10 cut-outs and 10 scenes that carry 60 % of the variance",
        false_share(few_clusters),
    )


def mixture(images: int, share: float, source: np.random.Generator, methods: int = 5) -> Array:
    """Return scores of images that rank the methods identically with probability ``share``: their α is ``share²``."""
    ordered = source.random((images, 1)) < share
    return np.where(ordered, np.arange(float(methods)), source.random((images, methods)))


def coverage(images: int, share: float, level: float, studies: int, resamples: int) -> tuple[float, float]:
    """Return the shares of studies in which α's interval lies above and below the α of the population."""
    source = np.random.default_rng([images, int(100 * share)])
    above = below = 0
    for number in range(studies):
        estimate = statistics.alpha(
            mixture(images, share, source), level=level, resamples=resamples, seed=number
        )
        above += estimate.low > share**2
        below += estimate.high < share**2
    return above / studies, below / studies


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--coverage-studies", type=int, default=4000)
    arguments = parser.parse_args()
    head = ["methods", "images", "correlation", "seeds", "training noise", "false better", "previous rule"]
    head += ["false rank sets, one better", "best one ranked first", "previous rule"]
    print(f"{arguments.studies} studies a row\n")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for cell in cells():
        shares = rates(cell, arguments.studies)
        row = [cell.methods, cell.images, cell.correlation, cell.seeds, cell.noise]
        print(
            f"| {' | '.join([*map(str, row), *(f'{share:.3f}' for share in shares.values())])} |", flush=True
        )
    print("\n| equal methods | false better |\n|---|---|")
    for design, false_share in limits(arguments.studies):
        print(f"| {design} | {false_share:.3f} |", flush=True)
    print(f"\n{arguments.coverage_studies} sets a row, five methods\n")
    print("| α | images | level | interval above α | interval below α |\n|---|---|---|---|---|")
    for share in (0.0, 0.3, 0.6, 0.9):
        for images in (10, 20, 50, 200):
            for level, resamples in ((0.95, 1000), (0.999, 10_000)):
                above, below = coverage(images, share, level, arguments.coverage_studies, resamples)
                print(f"| {share**2:.2f} | {images} | {level} | {above:.4f} | {below:.4f} |", flush=True)


if __name__ == "__main__":
    main()

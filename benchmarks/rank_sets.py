"""Error rates and power of rank sets, and coverage of intervals, in simulated studies.

Prints Markdown tables: false "better" of equally good methods, compared by win rates and by means; power with one
better method, beside paired t-tests, Wilcoxon's signed-rank test and sign-flip tests with Holm's correction; images
that share cut-outs and scenes, and retrained models; coverage of the intervals of means, rates, probabilities of
winning, and α. Rates have their standard errors.

    python benchmarks/rank_sets.py
"""

import argparse
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata, ttest_1samp, wilcoxon

from saliency_assay.reliability import statistics
from saliency_assay.reliability.comparison import MEANS, WINS, Comparison, holm, ranks_of
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.variance import NO_FACTORS, Factors, mean_of

Array = npt.NDArray[np.float64]
Scores = Callable[[np.random.Generator], tuple[Array, Factors]]
Better = npt.NDArray[np.bool_]

LEVEL = 0.95
FLIPS = 2000
SIZES = (20, 50, 100, 500)


# ---- scores of simulated studies


def log_normal(images: int, source: np.random.Generator, sigma: float = 1.5) -> Array:
    """Return log-normal values with mean 1."""
    return source.lognormal(-(sigma**2) / 2, sigma, images)


def zeros(share: float, images: int, source: np.random.Generator) -> Array:
    """Return values with mean 1 of which a share is 0 and the others are exponential."""
    return (source.random(images) > share) * source.exponential(size=images) / (1 - share)


def beta(concentration: float, images: int, source: np.random.Generator) -> Array:
    """Return values in (0, 1) with mean 0.95."""
    return source.beta(0.95 * concentration, 0.05 * concentration, images)


Shape = Callable[[int, np.random.Generator], Array]
SHAPES: dict[str, list[Shape]] = {
    "log-normal (σ = 1.5), normal": [log_normal, lambda n, source: source.normal(1, 0.3, n)],
    "log-normal (σ = 1.5), exponential": [log_normal, lambda n, source: source.exponential(size=n)],
    "log-normal (σ = 1.5), log-normal (σ = 0.5)": [log_normal, partial(log_normal, sigma=0.5)],
    "90 % zeros, 20 % zeros": [partial(zeros, 0.9), partial(zeros, 0.2)],
    "6 methods, beta with mean 0.95": [partial(beta, each) for each in (2, 5, 10, 20, 50, 100)],
    "6 methods, normal, unequal sd": [
        lambda n, source, sd=sd: source.normal(0, sd, n) for sd in (1, 1, 2, 2, 5, 5)
    ],
}
"""Equal means, by the shapes of the scores of each method."""


def independent(
    shapes: list[Shape], images: int, shifts: Array, source: np.random.Generator
) -> tuple[Array, Factors]:
    return np.stack([shape(images, source) for shape in shapes], axis=1) + shifts, NO_FACTORS


def equal_wins(shapes: list[Shape]) -> Array:
    """Return shifts of the methods after which all have the win rate 1/2."""
    source = np.random.default_rng(0)
    values = np.stack([shape(200_000, source) for shape in shapes], axis=1)
    shifts = np.zeros(len(shapes))
    for step in 0.5 ** np.arange(1, 40):
        rates = (rankdata(values[::20] + shifts, axis=1).mean(0) - 1) / (len(shapes) - 1)
        shifts -= 4 * step * np.sign(rates - 0.5)
    return shifts


def smaller_errors(
    images: int, spread: float, sigma: float, source: np.random.Generator
) -> tuple[Array, Factors]:
    """Errors of five methods, one 3 × smaller: log-normal, times a log-normal difficulty of the image."""
    scores = source.lognormal(0, spread, (images, 1)) * source.lognormal(0, sigma, (images, 5))
    scores[:, 0] /= 3
    return -scores, NO_FACTORS


def absolute_errors(images: int, source: np.random.Generator) -> tuple[Array, Factors]:
    scores = np.abs(source.normal(size=(images, 5)))
    scores[:, 0] /= 3
    return -scores, NO_FACTORS


def shifted(images: int, methods: int, effect: float, source: np.random.Generator) -> tuple[Array, Factors]:
    scores = source.normal(size=(images, 1)) + source.normal(size=(images, methods))
    scores[:, 0] += effect
    return scores, NO_FACTORS


def skewed_shift(images: int, source: np.random.Generator) -> tuple[Array, Factors]:
    scores = source.lognormal(size=(images, 5))
    scores[:, 0] += 0.8
    return scores, NO_FACTORS


def large_cluster(effect: float, share: float, source: np.random.Generator) -> tuple[Array, Factors]:
    """40 clusters, of which one has half of 390 images; ``share`` of the variance is between clusters."""
    cluster = np.concatenate([np.zeros(195, int), np.repeat(np.arange(1, 40), 5)])
    scores = share**0.5 * source.normal(size=(40, 2))[cluster]
    scores = scores + (1 - share) ** 0.5 * source.normal(size=(len(cluster), 2))
    scores[:, 0] += effect
    return scores, {"cut-outs": cluster}


def clustered(
    images: int, correlation: float, effect: float, source: np.random.Generator, methods: int = 8
) -> tuple[Array, Factors]:
    """Images that share cut-outs and scenes, a third as many of each as images, at least 10."""
    scores = source.normal(size=(images, 1))
    scores = scores + (1 - 2 * correlation) ** 0.5 * source.normal(size=(images, methods))
    factors = {}
    for name in ("cut-outs", "scenes"):
        count = max(images // 3, 10)
        factors[name] = source.integers(count, size=images)
        scores = scores + correlation**0.5 * source.normal(size=(count, methods))[factors[name]]
    scores[:, 0] += effect
    return scores, factors


def trained(
    images: int, seeds: int, noise: float, effect: float, source: np.random.Generator, methods: int = 8
) -> tuple[Array, Factors]:
    """Right and wrong predictions of retrained models whose accuracies have a standard deviation of ``noise``."""
    image, seed = np.repeat(np.arange(images), seeds), np.tile(np.arange(seeds), images)
    accuracy = 0.7 + noise * source.normal(size=(seeds, methods))[seed]
    accuracy = accuracy + 0.2 * source.normal(size=(images, 1))[image]
    accuracy[:, 0] += effect
    return (source.random(accuracy.shape) < accuracy).astype(np.float64), {"images": image, "seeds": seed}


# ---- tests


def ours(by: str) -> Callable[[Array, Factors], Better]:
    def better(scores: Array, factors: Factors) -> Better:
        return ranks_of(Comparison(scores, factors, by), LEVEL).better  # type: ignore[arg-type]

    return better


def pairwise(p_value: Callable[[Array], tuple[float, float]]) -> Callable[[Array, Factors], Better]:
    """Return a test of all pairs of methods with Holm's correction, from the one-sided p-values of differences."""

    def better(scores: Array, _: Factors) -> Better:
        p = np.full((scores.shape[1],) * 2, np.nan)
        for one, other in combinations(range(scores.shape[1]), 2):
            p[one, other], p[other, one] = p_value(scores[:, one] - scores[:, other])
        return np.asarray(holm(p) <= 1 - LEVEL)

    return better


def student(difference: Array) -> tuple[float, float]:
    p = float(ttest_1samp(difference, 0, alternative="greater").pvalue)
    return p, 1 - p


def signed_rank(difference: Array) -> tuple[float, float]:
    greater, less = (float(wilcoxon(difference, alternative=side).pvalue) for side in ("greater", "less"))
    return greater, less


@cache
def random_signs(count: int) -> Array:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(FLIPS, count))


def sign_flip(difference: Array) -> tuple[float, float]:
    flipped, observed = random_signs(len(difference)) @ difference, difference.sum()
    return (
        (1 + (flipped >= observed).sum()) / (1 + FLIPS),
        (1 + (flipped <= observed).sum()) / (1 + FLIPS),
    )


PEERS = {"paired t": student, "Wilcoxon": signed_rank, "sign flips": sign_flip}


# ---- rates


def generator(*parts: object) -> np.random.Generator:
    return np.random.default_rng([sum(map(ord, str(part))) for part in parts])


def share(
    scores: Scores, test: Callable[[Array, Factors], Better], studies: int, *, first: bool = False
) -> str:
    """Return the share of studies with any "better", or with the first method better than all others."""
    source = generator(studies)
    found = []
    for _ in range(studies):
        better = test(*scores(source))
        found.append(better[0, 1:].all() if first else better.any())
    return with_error(float(np.mean(found)), studies)


def with_error(rate: float, count: int) -> str:
    return f"{rate:.3f} ± {(rate * (1 - rate) / count) ** 0.5:.3f}"


def print_table(head: list[str], rows: Iterator[list[object]]) -> None:
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def false_better(studies: int) -> Iterator[list[object]]:
    for name, shapes in SHAPES.items():
        none, shifts = np.zeros(len(shapes)), equal_wins(shapes)
        for images in SIZES:
            means, wins = (partial(independent, shapes, images, each) for each in (none, shifts))
            tested = np.mean(
                [
                    not np.isnan(Comparison(*means(source), MEANS).pairs[0, 1].p[0])
                    for source in [generator(name)]
                    for _ in range(200)
                ]
            )
            yield [
                name,
                f"{images:,}",
                share(wins, ours(WINS), studies),
                share(means, ours(MEANS), studies),
                f"{tested:.2f}",
                share(means, pairwise(student), studies),
            ]
    for images in SIZES:

        def of_both(scores: Array, factors: Factors) -> Better:
            return ours(WINS)(scores, factors)[:2, :2]

        false = share(partial(rare_failures, images), of_both, studies)
        yield ["2 of 10 methods, one best on 9 of 10 images, else last", images, false, "–", "–", "–"]


def rare_failures(images: int, source: np.random.Generator) -> tuple[Array, Factors]:
    """Two of ten methods with equal win rates: one is best on nine of ten images and last on the others."""
    scores = source.normal(size=(images, 10))
    scores[:, 0] = np.where(source.random(images) < 0.1, -20, 20)
    scores[:, 1] = 10
    return scores, NO_FACTORS


def power(studies: int) -> Iterator[list[object]]:
    designs: dict[str, Scores] = {
        "5 methods, errors 3 × smaller (absolute normal), 20 images": partial(absolute_errors, 20),
        "the same, 50 images": partial(absolute_errors, 50),
        "errors 3 × smaller (log-normal), difficult and easy images, 20 images": partial(
            smaller_errors, 20, 1.3, 0.8
        ),
        "the latter, 50 images": partial(smaller_errors, 50, 1.3, 0.8),
        "5 methods, log-normal, better by 0.8, 50 images": partial(skewed_shift, 50),
        "2 methods, normal, better by 0.5 sd, 30 images": partial(shifted, 30, 2, 0.5),
        "5 methods, the same, 100 images": partial(shifted, 100, 5, 0.5),
        "8 methods, the same, 100 images": partial(shifted, 100, 8, 0.5),
    }
    for name, scores in designs.items():
        rates = [share(scores, ours(by), studies, first=True) for by in (WINS, MEANS)]
        yield [name, *rates, *(share(scores, pairwise(test), studies, first=True) for test in PEERS.values())]
    for of_clusters in (0.0, 0.1, 0.3):
        scores = partial(large_cluster, 0.5, of_clusters)
        rates = [share(scores, ours(by), studies, first=True) for by in (WINS, MEANS)]
        yield [
            f"2 methods, 40 clusters, one with half of the images, {of_clusters:.0%} of the variance between clusters,"
            " better by 0.5 sd".replace("%", " %"),
            *rates,
            *["–"] * len(PEERS),
        ]


def correlated(studies: int) -> Iterator[list[object]]:
    for images in (20, 100, 300):
        for correlation in (0.1, 0.3):
            cells = [partial(clustered, images, correlation, effect) for effect in (0.0, 0.5)]
            yield [f"cut-outs and scenes, correlation {correlation}", f"{images:,}", *_both(cells, studies)]
    for of_clusters in (0.0, 0.3):
        cells = [partial(large_cluster, effect, of_clusters) for effect in (0.0, 0.5)]
        yield [
            f"one cluster with half of the images, {of_clusters} of the variance",
            "390",
            *_both(cells, studies),
        ]
    for images in (100, 500):
        for seeds in (3, 5):
            for noise in (0.01, 0.03):
                cells = [partial(trained, images, seeds, noise, effect) for effect in (0.0, 0.05)]
                yield [f"{seeds} seeds, training noise {noise}", f"{images:,}", *_both(cells, studies)]
    one_seed = float(np.mean([_one_seed(generator(number)) for number in range(min(studies, 100))]))
    none_tested = with_error(one_seed, min(studies, 100))
    yield ["1 seed, training noise 0.03: nothing is tested", "1,500", none_tested, "–", none_tested, "–"]

    def ignoring(source: np.random.Generator) -> tuple[Array, Factors]:
        return trained(1500, 1, 0.03, 0.0, source)[0], NO_FACTORS

    rates = [share(ignoring, ours(by), studies) for by in (WINS, MEANS)]
    yield ["the same, if training noise were ignored", "1,500", rates[0], "–", rates[1], "–"]


def _both(cells: list[Scores], studies: int) -> list[object]:
    return [
        share(scores, ours(by), studies, first=bool(place))
        for by in (WINS, MEANS)
        for place, scores in enumerate(cells)
    ]


def _one_seed(source: np.random.Generator) -> bool:
    """Return True if a retrain study with one seed calls any of eight equal methods better."""
    right, _ = trained(1500, 1, 0.03, 0.0, source)
    names = {"study": "s", "data": "d", "model": "m", "seed": 0, "metric": "accuracy", "variant": "v"}
    table = pd.concat(
        [
            pd.DataFrame({"score": column, "image": np.arange(1500), "method": str(place), **names})
            for place, column in enumerate(right.T)
        ]
    )
    _, pairs = order_tables(table, {"accuracy": "lower"}, retrained=True)
    return bool(pairs["finding"].isin(["better", "worse"]).any())


def coverages(studies: int) -> Iterator[list[object]]:
    source = np.random.default_rng(0)
    for rate, images in ((0.5, 20), (0.9, 50), (0.97, 30), (0.99, 200), (0.8, 30)):
        values = (source.random((studies, images)) < rate).astype(np.float64)
        yield [f"rate {rate}", images, *_covered([mean_of(each).rate_interval() for each in values], rate)]
        ends = [mean_of(each).exact_interval() for each in values]
        yield [f"probability of winning {rate}", images, *_covered(ends, rate)]
    cluster = np.repeat(np.arange(40), 5)
    right = source.random((studies, 40, 1)) < 0.9
    right = np.where(source.random((studies, 40, 5)) < 0.5, right, source.random((studies, 40, 5)) < 0.9)
    values = right.reshape(studies, -1).astype(np.float64)
    ends = [mean_of(each, {"cut-outs": cluster}).rate_interval() for each in values]
    yield ["rate 0.9, 40 cut-outs with 5 images each", 200, *_covered(ends, 0.9)]
    for name, shape in (
        ("normal", lambda n: source.normal(1, 1, n)),
        ("exponential", lambda n: source.exponential(size=n)),
        ("log-normal (σ = 0.5)", lambda n: log_normal(n, source, 0.5)),
        ("log-normal (σ = 1.5)", lambda n: log_normal(n, source)),
    ):
        for images in (20, 100, 1000):
            samples = [shape(images) for _ in range(studies)]
            shown = [each for each in samples if images >= 10 * _skewness(each) ** 2]
            covered = (
                _covered([mean_of(each).interval() for each in shown], 1.0) if len(shown) > 100 else ["–"]
            )
            yield [
                f"mean of {name} scores, shown in {len(shown) / studies:.0%}".replace("%", " %"),
                images,
                *covered,
            ]


def _skewness(values: Array) -> float:
    centered = values - values.mean()
    return float((centered**3).mean() / (centered**2).mean() ** 1.5)


def _covered(ends: list[tuple[float, float]], true: float) -> list[object]:
    low, high = np.array(ends).T
    return [with_error(float(((low <= true) & (true <= high)).mean()), len(ends))]


def mixture(images: int, share: float, source: np.random.Generator, methods: int = 5) -> Array:
    """Return scores of images that rank the methods identically with probability ``share``: their α is ``share²``."""
    ordered = source.random((images, 1)) < share
    return np.where(ordered, np.arange(float(methods)), source.random((images, methods)))


def coverage_of_alpha(studies: int) -> Iterator[list[object]]:
    for share in (0.0, 0.3, 0.6, 0.9):
        for images in (10, 20, 50, 200):
            for level, resamples in ((0.95, 1000), (0.999, 10_000)):
                source = np.random.default_rng([images, int(100 * share)])
                above = below = 0
                for number in range(studies):
                    scores = mixture(images, share, source)
                    estimate = statistics.alpha(scores, level=level, resamples=resamples, seed=number)
                    above += estimate.low > share**2
                    below += estimate.high < share**2
                yield [f"{share**2:.2f}", images, level, f"{above / studies:.4f}", f"{below / studies:.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--correlated-studies", type=int, default=200, help="of clusters and training seeds")
    parser.add_argument(
        "--alpha-studies", type=int, default=0, help="sets for the coverage of α; 4000 in the docs"
    )
    arguments = parser.parse_args()
    studies = arguments.studies
    print(f"{studies} studies a cell; rate ± standard error")
    head = ["scores of equally good methods", "images", "false better, wins", "false better, means"]
    print_table([*head, "means tested", "false better, paired t"], false_better(studies))
    print_table(["design with one better method", WINS, MEANS, *PEERS], power(studies))
    head = ["design", "images", "false better, wins", "ranked first, wins"]
    print_table(
        [*head, "false better, means", "ranked first, means"], correlated(arguments.correlated_studies)
    )
    print_table(["95 % interval of", "images", "coverage"], coverages(studies))
    if arguments.alpha_studies:
        head = ["α", "images", "level", "interval above α", "interval below α"]
        print_table(head, coverage_of_alpha(arguments.alpha_studies))


if __name__ == "__main__":
    main()

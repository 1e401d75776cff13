"""Path patterns of the files in the folder of results, with Snakemake wildcards in braces."""

import re
from collections.abc import Iterable
from itertools import product
from typing import Any


class Paths:
    """Patterns of the files that ``Inputs`` and ``Params`` refer to; rules repeat the patterns of their outputs."""

    def __init__(self, results: str) -> None:
        self.results = results
        self.state = f"{results}/.state"
        self.benchmarks = f"{results}/benchmarks"
        self.figures = f"{results}/figures"
        self.tables = f"{results}/tables/{{study}}"
        self.task_agreement = f"{results}/tables/task_agreement.csv"
        self.trust = f"{results}/tables/trust.csv"
        self.not_computed = f"{self.tables}/not_computed.csv"
        self.export = f"{results}/export"

        self.sources = f"{results}/sources/{{collection}}/SHA256SUMS"
        self.cutouts = f"{results}/collections/{{collection}}/cutouts.zarr.zip"
        self.scenes = f"{results}/collections/{{collection}}/scenes.zarr.zip"
        self.data = f"{results}/data/{{data}}.zarr.zip"

        self.trial = f"{results}/search/{{model}}/trial{{trial}}.csv"
        self.hyperparameters = f"{results}/search/{{model}}/hyperparameters.json"
        self.model = f"{results}/models/{{model}}/seed{{seed}}"
        self.weights = f"{self.model}/weights.pt"
        self.predictions = f"{self.model}/predictions.parquet"
        self.evaluation = f"{self.model}/evaluation.json"
        self.finetuned = f"{results}/finetuned/{{metric}}/{{model}}/seed{{seed}}/weights.pt"

        explained = "{model}/seed{seed}/{data}/{method}{shard}"
        self.maps = f"{results}/maps/{explained}.zarr.zip"
        self.costs = f"{results}/costs/{explained}.json"
        self.responses = f"{results}/responses/{{metric}}/{{model}}/seed{{seed}}/{{data}}{{shard}}.zarr.zip"
        self.scores = f"{results}/scores/{{metric}}/{explained}.parquet"
        self.curves = f"{results}/curves/{{metric}}/{explained}.zarr.zip"

        self.bam_scores = f"{results}/scores/bam/{{study}}/seed{{seed}}/{{method}}.parquet"
        self.series_scores = f"{results}/scores/series/{{study}}/seed{{seed}}/{{method}}.parquet"
        self.delta_scores = f"{results}/scores/independence/{{study}}/seed{{seed}}/{{method}}.parquet"
        self.validity_scores = (
            f"{results}/scores/validity/{{study}}/{{metric}}/seed{{seed}}/{{method}}.parquet"
        )
        self.grids = f"{results}/grids/{{study}}.zarr.zip"
        self.grid_scores = f"{results}/scores/grid/{{study}}/{{setting}}/seed{{seed}}/{{method}}.parquet"
        self.grid_maps = f"{results}/aggatt/{{study}}/{{setting}}/seed{{seed}}/{{method}}.zarr.zip"
        self.parts_scores = f"{results}/scores/parts/{{study}}/seed{{seed}}/{{method}}.parquet"
        self.concept_scores = f"{results}/scores/concepts/{{study}}/seed{{seed}}/{{model}}.parquet"

        # One arm of a retrain study: f_i and D_i for i = 0, 1, …
        self.arm = "{study}/{protocol}/{method}/{fill}/seed{seed}"
        self.retrained = f"{results}/remask/{self.arm}/iteration{{iteration}}"
        self.masks = f"{self.retrained}/masks{{shard}}.zarr.zip"
        self.leakage = f"{self.retrained}/leakage.csv"
        self.retrain_scores = f"{results}/scores/retrain/{self.arm}.parquet"


def expand(pattern: str, **values: Any) -> list[str]:
    """Return a pattern filled with all combinations of wildcard values; those of the last wildcard vary fastest.

    A value is a string, a number, or a collection of these; wildcards that the pattern does not have are ignored.
    """
    wildcards = re.findall(r"{(\w+)}", pattern)
    lists = {
        name: [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
        for name, value in values.items()
        if name in wildcards
    }
    return [pattern.format(**dict(zip(lists, choice, strict=True))) for choice in product(*lists.values())]


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression for a wildcard that is one of ``names``; without names it matches nothing."""
    return "|".join(map(re.escape, dict.fromkeys(names))) or "(?!)"


def flatten(paths: Iterable[str | list[str]]) -> list[str]:
    """Return paths and lists of paths as one flat list."""
    return [path for entry in paths for path in ([entry] if isinstance(entry, str) else entry)]

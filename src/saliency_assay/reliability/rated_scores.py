"""What of a study's scores rates its methods, by kind of study: one score table that reliability reads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from saliency_assay.storage import score_tables

OF_BAM = ("mcs", "idr", "iir", "iir_difference")
ACCURACY = [("metric", "==", "accuracy")]
BETWEEN = {"caption": "models"}
"""What the variants of a score are, where they are not variants, by kind of study."""


CLUSTERS = {"cut-outs": "cutout", "scenes": "scene"}
"""Clusters of images that are not independent, and the arrays of composed data sets that hold them."""


@dataclass(frozen=True)
class Rated:
    """What rates a study's methods, as ``rated_scores`` gives it, in parts that fit into memory."""

    paths: Sequence[Path]
    kind: str
    data: str
    models: Sequence[str]

    def parts(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Tables that together are the whole one; what shares ``keys`` is in one, in the order in which they come.

        Retraining is scored on all test images, tens of millions of rows on ImageNet, so its tables hold one
        combination of ``keys`` each. Other studies score the images that they explain, and theirs is one table.
        """
        if self.kind != "retrain":
            yield self.whole
            return
        for path in self.paths:
            for shared in score_tables.combinations(path, keys, only=ACCURACY):
                only = [*ACCURACY, *((name, "==", value) for name, value in shared.items())]
                part = _retrained(score_tables.read([path], compact=True, only=only))
                if len(part):
                    yield part

    @cached_property
    def whole(self) -> pd.DataFrame:
        """All of it."""
        return rated_scores(self.paths, self.kind, data=self.data, models=self.models)


def rated_scores(paths: Sequence[Path], kind: str, *, data: str, models: Sequence[str]) -> pd.DataFrame:
    """The scores of single images that rate methods, as a score table of one set and one model, text as categories.

    ``fidelity``: all, as they are. ``bam``: MCS, IDR, IIR and its relative change in the object's mask; variants are
    the metric and, of sets for robustness, what they vary (``mcs scale``). ``caption``: infidelity with the halves, a
    variant for each model. ``retrain``: accuracy on what is left of test images, lower is better, a variant for each
    protocol, fill and iteration; without f_0, which no method has touched.

    Args:
        paths: of score tables, in the order of the study's methods; only rows that are needed are read.
        kind: of the study.
        data: what the set is called; of BAM the collection, whose sets are ``{data}_os`` and so on.
        models: of the study.

    Raises:
        scores.ScoreError: see ``storage.score_tables.read``.
    """
    return score_tables.check(READERS[kind](paths, data, models), "rated scores", compact=True)


def _fidelity(paths: Sequence[Path], data: str, models: Sequence[str]) -> pd.DataFrame:
    return score_tables.read(paths, compact=True)


def _bam(paths: Sequence[Path], data: str, models: Sequence[str]) -> pd.DataFrame:
    only = [("metric", "in", list(OF_BAM)), ("variant", "==", "object")]
    table = score_tables.read(paths, compact=True, only=only)
    metric, of_set, robust = table["metric"].astype(str), table["data"].astype(str), f"{data}_os_"
    varied = of_set.where(of_set.str.startswith(robust), "").str.removeprefix(robust)
    variant = (metric + " " + varied).str.strip()
    return table.assign(variant=variant, data=data, model=", ".join(models))


def _caption(paths: Sequence[Path], data: str, models: Sequence[str]) -> pd.DataFrame:
    table = score_tables.read(paths, compact=True, only=[("metric", "==", "infidelity")])
    variant = table["variant"].astype(str) + " " + table["model"].astype(str)
    return table.assign(variant=variant, model=", ".join(models))


def _retrain(paths: Sequence[Path], data: str, models: Sequence[str]) -> pd.DataFrame:
    return _retrained(score_tables.read(paths, compact=True, only=ACCURACY))


def _retrained(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of accuracies with variants as they are read, without those of f_0."""
    variants = table["variant"].cat.remove_unused_categories()
    named = {variant: " iteration ".join(variant.rsplit("/", 1)) for variant in variants.cat.categories}
    table = table.assign(variant=variants.cat.rename_categories(named))
    return table[~table["variant"].isin([name for name in named.values() if name.endswith(" iteration 0")])]


READERS: dict[str, Callable[[Sequence[Path], str, Sequence[str]], pd.DataFrame]] = {
    "fidelity": _fidelity,
    "bam": _bam,
    "caption": _caption,
    "retrain": _retrain,
}

"""Differences of the scores of the same images and seeds between two runs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.reliability.comparison import MEANS, holm
from saliency_assay.reliability.order_tables import UNTESTED, ComparedScores, Rule
from saliency_assay.reliability.rated_scores import clusters_of
from saliency_assay.reliability.reliability_tables import clusters_of_images
from saliency_assay.reliability.variance import GROUPS, Factors
from saliency_assay.runs.images import Pairs
from saliency_assay.runs.results_folder import Results
from saliency_assay.storage import GROUP, WHOLE_SET, score_tables
from saliency_assay.storage.zarr_store import open_store

KEYS = ["study", "data", "model", "method", "metric", "variant"]
"""Columns that identify a score of a method."""
COLUMNS = [
    *KEYS,
    "images",
    "seeds",
    "old",
    "new",
    "difference",
    "low",
    "high",
    "p",
    "test",
    "effect",
    "verdict",
]
LEVEL = 0.95
DATA = KEYS.index("data")
MEAN, SIGN = "means", "signs"
"""Values of ``test``."""
Key = tuple[str, ...]


@dataclass
class ScoreChanges:
    """Scores that differ between two runs, and those that only one of them has."""

    rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    """A row for each score of a method that differs, the largest significant differences first; see
    ``score_changes``."""
    equal: int = 0
    """Number of scores of methods that are equal on all images."""
    unpaired: list[Key] = field(default_factory=list)
    """Scores in both runs without a common image and seed."""
    only_old: list[Key] = field(default_factory=list)
    only_new: list[Key] = field(default_factory=list)
    images: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each data set the numbers of scored images only in the old and only in the new run, if there are some."""


def score_changes(old: Results, new: Results, changed_sets: Mapping[str, Pairs]) -> ScoreChanges:
    """Return the differences of all scores that both runs have.

    A row of the table has the columns ``KEYS``; ``images`` and ``seeds`` with both scores; ``old`` and ``new``: their
    means; ``difference``: new − old, with its 95 % interval ``low, high``; ``p``: two-sided, adjusted by Holm's
    procedure for the number of scores that differ. ``test`` is ``means``, or ``signs`` if the scores are too skewed for
    a comparison of means: then p compares the number of images with a higher and a lower score, and there is no
    interval. ``p`` is NaN and ``test`` empty for one value, and for models trained for each method with one seed, whose
    differences may be training noise. ``effect`` is the difference in standard deviations of the scores, NaN for one
    value. ``verdict`` is ``better`` or ``worse`` if p is at most 0.05 and higher or lower scores are better, otherwise
    empty.

    Args:
        old, new: the runs.
        changed_sets: see ``images.changed_sets``.

    Raises:
        ScoreError: a file is not a score table of this version.
    """
    result, rows = ScoreChanges(), list[dict[str, Any]]()
    images: dict[str, tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    context = _Context.of(old, new)
    before, now = _folders(old), _folders(new)
    for folder in dict.fromkeys([*before, *now]):
        tables = _read(old, before.get(folder, [])), _read(new, now.get(folder, []))
        for key, group in _paired(tables[0], tables[1], changed_sets):
            in_old, in_new = group["_merge"] != "right_only", group["_merge"] != "left_only"
            is_image = group["image"] != WHOLE_SET
            for side, of_data in zip((in_old, in_new), images[key[DATA]], strict=True):
                of_data.update(group.loc[side & is_image, "image"])
            both = group[in_old & in_new]
            if len(both) == 0:
                only_one = result.only_old if in_old.any() else result.only_new
                (result.unpaired if in_old.any() and in_new.any() else only_one).append(key)
            elif both["score_old"].equals(both["score_new"]):
                result.equal += 1
            else:
                rows.append({**dict(zip(KEYS, key, strict=True)), **context.difference(key, both)})
    result.rows = _with_adjusted_p(rows)
    counts = {name: (len(a - b), len(b - a)) for name, (a, b) in images.items()}
    result.images = {name: count for name, count in counts.items() if any(count)}
    return result


def _folders(run: Results) -> dict[str, list[str]]:
    """Return the score files by the first two folders of their path, which contain all seeds of a score."""
    folders = defaultdict[str, list[str]](list)
    for file in run.score_files:
        folders["/".join(file.split("/")[:-1][:2])].append(file)
    return folders


def _read(run: Results, files: Sequence[str]) -> pd.DataFrame:
    if not files:
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in score_tables.COLUMNS.items()})
    return score_tables.read([run.folder / file for file in files])


def _paired(
    old: pd.DataFrame, new: pd.DataFrame, changed_sets: Mapping[str, Pairs]
) -> Iterator[tuple[Key, pd.DataFrame]]:
    """Yield the rows of each score of a method, with the scores of both runs and ``_merge`` as pandas names it.

    Images of a changed data set have the numbers of the old one. New images are numbered below −1. Groups are those of
    the new run or, where it has none, of the old one.
    """
    new = new.copy()
    for name in set(new["data"]) & changed_sets.keys():
        rows = (new["data"] == name) & (new["image"] != WHOLE_SET)
        pairs = changed_sets[name]
        new.loc[rows, "image"] = [pairs.get(number, -2 - number) for number in new.loc[rows, "image"]]
    keys = [*KEYS, "seed", "image"]
    sides = [side[[*keys, "score", *side.columns.intersection([GROUP])]] for side in (old, new)]
    merged = sides[0].merge(sides[1], on=keys, how="outer", suffixes=("_old", "_new"), indicator=True)
    if GROUP in old and GROUP in new:
        merged[GROUP] = merged[f"{GROUP}_new"].combine_first(merged[f"{GROUP}_old"])
    for key, group in merged.groupby(KEYS, sort=False):
        yield tuple(map(str, key)), group


def _clusters(run: Results, name: str) -> Factors:
    with open_store(run.data_files[name], kind="data") as data:
        return clusters_of(data)


@dataclass(frozen=True)
class _Context:
    """Facts that a comparison of two scores needs besides the scores."""

    clusters: Mapping[str, Factors]
    """Clusters of the images of each data set."""
    directions: Mapping[str, str]
    untested: frozenset[str]
    """Studies in which each method has its own models, of one training seed."""

    @classmethod
    def of(cls, old: Results, new: Results) -> "_Context":
        clusters = {name: _clusters(run, name) for run in (new, old) for name in run.data_files}
        orders = [(study, table) for run in (old, new) for study, table in run.orders.items()]
        untested = frozenset(study for study, table in orders if (table["over"] == UNTESTED).any())
        return cls(clusters, {**old.directions, **new.directions}, untested)

    def difference(self, key: Key, both: pd.DataFrame) -> dict[str, Any]:
        """Return the columns of a row but ``KEYS``, with the p-value before the adjustment."""
        names = dict(zip(KEYS, key, strict=True))
        wide = both.set_index(["seed", "image"]).sort_index()
        image = wide.index.get_level_values("image").to_numpy()
        factors: Factors = {}
        if (image == WHOLE_SET).all():  # one value per training seed
            wide = wide.droplevel("image")
        elif GROUP in wide:
            factors = {GROUPS: pd.factorize(wide[GROUP])[0]}
        else:
            factors = clusters_of_images(self.clusters.get(names["data"], {}), image)
        wide = wide[["score_new", "score_old"]]
        defined = wide.notna().all(axis=1).to_numpy()
        row: dict[str, Any] = {"images": len(np.unique(image[defined])), "seeds": both["seed"].nunique()}
        row |= {"old": wide["score_old"][defined].mean(), "new": wide["score_new"][defined].mean()}
        row |= dict.fromkeys(("difference", "low", "high", "p", "effect"), np.nan) | {
            "test": "",
            "verdict": "",
        }
        if not defined.any():
            return row
        rule, retrained = Rule(by=MEANS, level=LEVEL), names["study"] in self.untested
        [pair] = ComparedScores(wide, "higher", factors, rule=rule, retrained=retrained).pair_rows()
        row |= {
            "difference": pair["difference"],
            "low": pair["difference_low"],
            "high": pair["difference_high"],
        }
        deviation = float(np.std(wide.to_numpy()[defined]))
        row["effect"] = (
            pair["difference"] / deviation if np.count_nonzero(defined) > 1 and deviation > 0 else np.nan
        )
        tests = {MEAN: pair["difference_p"], SIGN: pair["wins_p"]}
        row["test"] = next((test for test, p in tests.items() if not np.isnan(p)), "")
        row["p"] = tests.get(row["test"], np.nan)
        direction = self.directions.get(names["metric"])
        if direction in ("higher", "lower"):
            change = pair["wins"] - 0.5 if row["test"] == SIGN else pair["difference"]
            row["verdict"] = "better" if (change > 0) == (direction == "higher") else "worse"
        return row


def _with_adjusted_p(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["p"] = holm(table["p"].to_numpy(dtype=np.float64))
    significant = table["p"] <= 1 - LEVEL
    table.loc[~significant, "verdict"] = ""
    order = table.assign(_first=~significant, _size=-table["effect"].abs().fillna(0)).sort_values(
        ["_first", "_size"], kind="stable"
    )
    return table.loc[order.index].reset_index(drop=True)

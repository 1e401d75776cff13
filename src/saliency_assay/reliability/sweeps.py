"""Selection of the best member of each family of methods, on images that are separate from those of the ranks.

The best of several values, chosen and reported on the same images, has an optimistic score, and members of one family,
which are often nearly equal, would share the ranks of a study among them. Half of the images therefore select one
member of each family under each metric; ranks and all other comparisons of methods refer to the other half.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import Direction
from saliency_assay.registry.sweeps import LEAST_IMAGES, Family
from saliency_assay.reliability.comparison import WINS, RankedBy, win_rates
from saliency_assay.reliability.order_tables import ComparedScores, Rule
from saliency_assay.reliability.reliability_tables import (
    NO_CLUSTERS,
    SCORED,
    Scores,
    clusters_of_images,
    groups,
    with_groups,
)
from saliency_assay.reliability.statistics import paired_means
from saliency_assay.reliability.variance import GROUPS, Factors
from saliency_assay.storage import WHOLE_SET

if TYPE_CHECKING:
    from saliency_assay.reliability.rated_scores import RatedScores  # requires pyarrow

SPLIT_SEED = 0
SELECTED, OTHER_SELECTED, SELECTION_IMAGES = "selected", "other_selected", "selection_images"
"""Columns of ``order.csv`` and ``pairs.csv`` of studies with families."""
SWEPT = [*SCORED, "direction", "family", "method", "values", "images", "undefined", "mean", "low", "high"]
SWEPT += ["win_rate", SELECTION_IMAGES, "criterion", "criterion_value", SELECTED]
SWEPT += ["held_out_images", "held_out_mean", "held_out_low", "held_out_high"]

Key = tuple[object, ...]
"""Values of ``SCORED``."""


@dataclass(frozen=True)
class Selection:
    """Selected member of each family under each metric, and the images that are held out from the selection."""

    families: Sequence[Family]
    members: dict[tuple[Key, str], str] = field(default_factory=dict)
    """Selected member by metric and family; the first one if no member has a score to be selected by."""
    values: dict[tuple[Key, str], float] = field(default_factory=dict)
    """Value of the criterion of each member, by metric and method."""
    selecting: dict[Key, Array] = field(default_factory=dict)
    """Images of the selection by metric."""
    held_out: dict[Key, Array] = field(default_factory=dict)
    """The other images by metric."""

    def baselines(self, baselines: Collection[str]) -> list[str]:
        """Return the baselines with the families of which all members are baselines."""
        families = [family.name for family in self.families if set(baselines).issuperset(family.members)]
        return [*baselines, *families]

    def apply(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the scores of held-out images, with the selected member of each family under the family's name.

        Scores of whole sets, which cannot be divided, stay.
        """
        if not self.families:
            return table
        family_of = {member: family.name for family in self.families for member in family.members}
        parts = []
        for key, rows in table.astype({"method": object}).groupby(SCORED, sort=False, observed=True):
            whole = (rows["image"] == WHOLE_SET).to_numpy()
            chosen = {name: self.members.get((key, family)) for name, family in family_of.items()}
            kept = [chosen.get(method, method) == method for method in rows["method"]]
            rows = rows[whole | (rows["image"].isin(self.held_out.get(key, ())).to_numpy() & kept)]
            is_image = rows["image"] != WHOLE_SET
            names = rows["method"].map(lambda method: family_of.get(method, method))
            parts.append(rows.assign(method=rows["method"].where(~is_image, names)))
        return pd.concat(parts) if parts else table

    def annotated(self, order: pd.DataFrame, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return both tables of ``order_tables`` with the selected members in additional columns.

        ``selected`` and, for pairs, ``other_selected`` are the members; empty for methods that are not families, and
        for families without a score to select by. In the first table, ``selection_images`` is the number of images on
        which they were selected.
        """
        if not self.families:
            return order, pairs
        keys = [tuple(row) for row in order[SCORED].itertuples(index=False, name=None)]
        order, pairs = order.copy(), pairs.copy()
        order[SELECTED] = self._selected(order, "method")
        order[SELECTION_IMAGES] = [len(self.selecting[key]) for key in keys]
        pairs[SELECTED] = self._selected(pairs, "method")
        pairs[OTHER_SELECTED] = self._selected(pairs, "other")
        return order, pairs

    def selected(self, key: Key, family: str) -> str:
        """Return the selected member of a family; empty if no member has a score to be selected by."""
        member = self.members.get((key, family), "")
        return "" if np.isnan(self.values.get((key, member), np.nan)) else member

    def _selected(self, table: pd.DataFrame, column: str) -> list[str]:
        rows = table[[*SCORED, column]].itertuples(index=False, name=None)
        return [self.selected(tuple(key), str(method)) for *key, method in rows]


@dataclass(frozen=True)
class SelectedScores:
    """Rated scores of held-out images, with the selected member of each family; see ``Selection.apply``."""

    scores: "RatedScores"
    selection: Selection

    def chunks(self, *keys: str) -> Iterator[pd.DataFrame]:
        """Yield the chunks of the table for ``keys``, which must not contain ``method``."""
        return map(self.selection.apply, self.scores.chunks(*keys))


def split(images: Array, clusters: Factors = NO_CLUSTERS, *, seed: int = SPLIT_SEED) -> Array:
    """Return for each image if it is in the half that selects, bool ``[n]``; the other half is held out.

    Args:
        images: distinct numbers of images, ascending.
        clusters: see ``NO_CLUSTERS``. All images of a group are in the same half and, without groups, those of a
            cluster of the first kind; crossed clusters of another kind cannot be separated.
        seed: seed of the split. Of an odd number of images, one more is held out.

    Raises:
        ValueError: there are fewer than four images, or clusters of them.
    """
    factors = clusters_of_images(clusters, images)
    name = GROUPS if GROUPS in factors else next(iter(factors), "")
    units, unit_of = np.unique(factors.get(name, images), return_inverse=True)
    if len(units) < LEAST_IMAGES:
        raise ValueError(
            f"sweep: found {len(units)} {name or 'images'}, expected at least {LEAST_IMAGES}, because one half selects "
            "values and the other is reported"
        )
    chosen = np.random.default_rng(seed).permutation(len(units))[: len(units) // 2]
    return np.isin(unit_of, chosen)


def select(
    scores: Scores,
    directions: Mapping[str, str],
    families: Sequence[Family],
    *,
    clusters: Factors = NO_CLUSTERS,
    by: RankedBy = WINS,
    seed: int = SPLIT_SEED,
) -> Selection:
    """Return the best member of each family under each metric on half of the images; see ``split``.

    Members are compared with each other, not with other methods, by what decides the ranks: the mean win rate, or the
    mean score in the metric's direction. The first of equal members is selected.

    Args:
        scores: a score table, or its chunks by variant; scores of whole sets are left out.
        directions: for each metric the direction of its scores, see ``directions``.
        families: the families of methods; without any, nothing is divided.
        clusters: see ``NO_CLUSTERS``.
        by: ``wins`` or ``means``.
        seed: seed of the split.

    Raises:
        ValueError: see ``split``.
    """
    selection = Selection(families)
    for names, of_metric in groups(scores, SCORED) if families else ():
        key, images = tuple(names.values()), np.unique(of_metric["image"].to_numpy())
        selecting = split(images, clusters, seed=seed)
        selection.selecting[key], selection.held_out[key] = images[selecting], images[~selecting]
        chosen = of_metric[of_metric["image"].isin(images[selecting])]
        for family in families:
            wide = _wide(chosen, family)
            if wide.empty:
                continue
            values = criterion(Direction(directions[str(names["metric"])]).oriented(wide.to_numpy()), by)
            selection.values.update(
                {(key, str(name)): value for name, value in zip(wide, values, strict=True)}
            )
            best = int(np.argmax(np.nan_to_num(values, nan=-np.inf)))
            selection.members[key, family.name] = str(wide.columns[best])
    return selection


def criterion(scores: Array, by: RankedBy) -> Array:
    """Return the values ``[M]`` by which members are selected, from scores ``[n, M]``, higher is better.

    They are mean win rates among the members, or means minus the mean of all members, both corrected for missing scores
    (``statistics.paired_means``). NaN without a score that can be compared.
    """
    if by == WINS:
        rates = win_rates(scores)
        counts = (~np.isnan(rates)).sum(0)
        return np.where(counts > 0, np.nansum(rates, 0) / np.maximum(counts, 1), np.nan)
    return paired_means(scores)


def sweep_table(
    scores: Scores,
    directions: Mapping[str, str],
    selection: Selection,
    *,
    clusters: Factors = NO_CLUSTERS,
    ranges: Mapping[str, tuple[float, float]],
    rule: Rule,
    retrained: bool = False,
) -> pd.DataFrame:
    """Return the scores of all members of the families of methods, without ranks.

    Args:
        scores: a score table, or its chunks by variant, with all members and images.
        directions: see ``order_tables``, as the following arguments.
        selection: result of ``select``.
        clusters: see ``NO_CLUSTERS``.
        ranges: smallest and largest possible score by metric.
        rule: how methods are ranked.
        retrained: True if each method has its own trained models.

    Returns:
        A row for each metric and member: ``metric, variant, data, model, direction, family, method`` (the member),
        ``values`` (JSON) of the swept parameters; ``images`` with a score and ``groups`` of these, ``undefined``,
        ``mean, low, high`` as in ``order_tables``, and ``win_rate`` among the members, all on all images;
        ``selection_images``, their number, ``criterion`` (``wins`` or ``means``) and ``criterion_value``, see
        ``criterion``, on the images of the selection; ``selected`` (bool); and on the other images
        ``held_out_images`` with a score, and ``held_out_mean, held_out_low, held_out_high``.
    """
    rows: list[dict[str, Any]] = []
    for names, of_metric in groups(scores, SCORED) if selection.families else ():
        key, metric = tuple(names.values()), str(names["metric"])
        for family in selection.families:
            wide = _wide(of_metric, family)
            if wide.empty:
                continue
            described = [
                ComparedScores(
                    part,
                    directions[metric],
                    clusters_of_images(clusters, part.index.get_level_values("image").to_numpy()),
                    ranges.get(metric),
                    rule=rule,
                    retrained=retrained,
                ).order_rows()
                for part in (wide, wide[wide.index.get_level_values("image").isin(selection.held_out[key])])
            ]
            for of_all, of_others in zip(*described, strict=True):
                method = str(of_all["method"])
                row = {**names, "direction": directions[metric], "family": family.name, **of_all}
                row |= {"values": json.dumps(family.members[method])}
                row |= {"undefined": float(wide[method].isna().mean())}
                row |= {SELECTION_IMAGES: len(selection.selecting[key]), "criterion": rule.by}
                row |= {"criterion_value": selection.values.get((key, method), np.nan)}
                row |= {SELECTED: selection.selected(key, family.name) == method}
                row |= {f"held_out_{name}": of_others[name] for name in ("images", "mean", "low", "high")}
                rows.append(row)
    return pd.DataFrame(rows, columns=with_groups(SWEPT, clusters))


def _wide(of_metric: pd.DataFrame, family: Family) -> pd.DataFrame:
    """Return the scores of a family's members, in the order of the sweep; a row is an image under one seed."""
    of_family = of_metric[of_metric["method"].isin(list(family.members))].astype({"method": object})
    wide = of_family.pivot(index=["seed", "image"], columns="method", values="score")
    return wide[[member for member in family.members if member in wide]]

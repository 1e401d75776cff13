"""The result of a benchmark: scores, ranks, pairs of methods, agreement, figures, and files."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import astuple, dataclass, field
from functools import cached_property, reduce
from importlib import import_module
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from saliency_assay.methods import METHODS
from saliency_assay.plotting.statistics import NORMAL_95
from saliency_assay.registry.labels import Labels, counted, method_places
from saliency_assay.registry.records import unknown
from saliency_assay.registry.sweeps import Family, Member, families_of
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage import GROUP

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from saliency_assay.api.image_blocks import ImageBlock
    from saliency_assay.report.pages.heat_map import HeatMap
    from saliency_assay.report.pages.study import StudyResult

STUDY = "benchmark"
"""Name of the study in score tables."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class MethodEntry:
    """A method of a benchmark."""

    name: str
    label: str
    registered: str
    """Name of the registered method; empty for a custom one."""
    is_baseline: bool
    """True if it does not use the model."""
    member: Member | None = None
    """Its membership in a family; None if its parameters are not swept."""
    family_digest: str = ""
    """Digest of the function and the parameters that are not swept; empty without a sweep or a path."""


@dataclass(frozen=True)
class MetricEntry:
    """A metric of a benchmark."""

    name: str
    label: str
    registered: str
    """Name of the registered metric; empty for a custom one."""
    directions: dict[str, str]
    """Direction of each of its scores."""
    ranges: dict[str, tuple[float, float]]
    """Smallest and largest possible value of each of its scores."""
    measures: str
    """Property of a map that it measures."""
    score_labels: dict[str, str]
    sub_variants: dict[str, str]
    """Labels of sub-variants, see ``registry.labels``."""
    summary: str
    output: str
    """Output of the model that it scores, such as ``probability``; empty if it has no such parameter."""
    member: Member | None = None
    """Its membership in a family; None if its parameters are not swept."""
    family_digest: str = ""
    """Digest of the function and the parameters that are not swept; empty without a sweep or a path."""


class CellKey(NamedTuple):
    """Seed, method, metric and number of the block of images of a cell."""

    seed: int
    method: str
    metric: str
    block: int


@dataclass(frozen=True)
class Moments:
    """Number, mean and sum of squared deviations of the values at each point of a curve; NaN is not counted."""

    count: Array
    mean: Array
    squares: Array

    @classmethod
    def of(cls, values: Array, groups: Array | None = None) -> "Moments":
        """Return the moments of ``[n, points]``, or those of each of the sorted ``groups`` ``[n]``, ``[G, points]``."""
        if groups is not None:
            by_group = [cls.of(values[groups == group]) for group in np.unique(groups)]
            return cls(*(np.stack(arrays) for arrays in zip(*map(astuple, by_group), strict=True)))
        count = (~np.isnan(values)).sum(0).astype(np.float64)
        mean = np.nansum(values, 0, dtype=np.float64) / np.maximum(count, 1)
        return cls(count, mean, np.nansum((values - mean) ** 2, 0))

    def __add__(self, other: "Moments") -> "Moments":
        count = self.count + other.count
        step = (other.mean - self.mean) * other.count / np.maximum(count, 1)
        squares = self.squares + other.squares + step * (other.mean - self.mean) * self.count
        return Moments(count, self.mean + step, squares)


@dataclass(frozen=True)
class Cell:
    """Scores of a block of images by one method under one metric."""

    table: "pd.DataFrame"
    """Rows of ``image, metric, variant, score``."""
    curves: dict[str, Moments]
    """Moments of each curve, ``[points]``; if images have groups, ``[G, points]`` of the sorted groups of the block."""
    inputs: str
    """Digest of images, targets, masks and model."""
    method: str
    """Digest of the code and settings of the method; empty without a path, as that of the metric."""
    metric: str
    """Digest of the code and settings of the metric."""
    causes: dict[str, dict[str, int]] = field(default_factory=dict)
    """For ``metric variant`` of missing scores their known causes, such as ``with an empty mask``, with their numbers
    of images."""

    @classmethod
    def of(
        cls,
        table: "pd.DataFrame",
        curves: Mapping[str, Array],
        causes: dict[str, dict[str, int]],
        inputs: str,
        method: str,
        metric: str,
        groups: Array | None = None,
    ) -> "Cell":
        """Return a cell with the moments of ``curves``, ``[n, points]`` by name, for images of ``groups`` ``[n]``."""
        moments = {name: Moments.of(values, groups) for name, values in curves.items()}
        return cls(table, moments, inputs, method, metric, causes)


@dataclass(frozen=True)
class Failure:
    """A method, or a metric of the maps of a method, that raised an exception."""

    method: str
    metric: str
    """Empty if the method itself failed."""
    error: str
    """Type of the exception and first line of its message."""

    @classmethod
    def of(cls, method: str, metric: str, error: Exception) -> "Failure":
        """Return the failure with the type of the exception and the first line of its message."""
        lines = str(error).strip().splitlines()
        message = [line.removeprefix(f"{metric or method}: ") for line in lines[:1]]
        return cls(method, metric, ": ".join([type(error).__name__, *message]))

    def __str__(self) -> str:
        of_metric = f", {self.metric}" if self.metric else ""
        return f"{self.method}{of_metric}: failed: {self.error}"


class Agreement(NamedTuple):
    """Agreement on the order of the methods."""

    images: "pd.DataFrame"
    """For each metric Krippendorff's α with the images as raters and its 99.9 % interval, which few images leave wide
    even if all agree (``statistics.alpha``); see ``reliability_tables.reliability_table``."""
    metrics: "pd.DataFrame"
    """For each pair of metrics Spearman's ρ over methods within images, see ``reliability_tables.rankings_table``."""


@dataclass(repr=False)
class Benchmark:
    """Scores of methods under metrics, with everything that follows from them.

    ``saliency_assay.benchmark`` and ``Benchmark.load`` return it. In a notebook, it is displayed as a heat map of rank
    sets and the first sentences of ``summary``.
    """

    model: str
    data: str
    methods: list[MethodEntry]
    metrics: list[MetricEntry]
    seeds: list[int]
    keep: int = 8
    complete: bool = False
    """False if the computation was interrupted."""
    cells: dict[CellKey, Cell] = field(default_factory=dict)
    failures_found: list[Failure] = field(default_factory=list)
    pending: tuple[str, Array] | None = None
    """Maps whose scores are not complete, with what identifies them."""
    responses: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Model responses to images whose scores are not complete, by what identifies them."""

    def __post_init__(self) -> None:
        self.image_rows: dict[str, list[Any]] = {"image": [], "source": [], "target": []}
        self.inputs: list[str] = []
        self.requested_seeds = tuple(self.seeds)
        self.pixels: Array | None = None
        self.mask: Array | None = None
        self.maps: dict[tuple[int, str], Array] = {}
        self.map_digests: dict[tuple[int, str], list[str]] = {}

    @property
    def images(self) -> "pd.DataFrame":
        """A row for each explained image: ``image``, its number in ``scores``; ``source``, its position in the data;
        ``target``; and ``group`` if images have groups."""
        return self._tables.image_table(self)  # type: ignore[no-any-return]

    @property
    def failures(self) -> "pd.DataFrame":
        """Methods and metrics that raised an exception: ``method, metric, error``; their scores are left out."""
        return self._tables.failure_table(self)  # type: ignore[no-any-return]

    @cached_property
    def scores(self) -> "pd.DataFrame":
        """The score table, with a row for each image, score, method and seed.

        Its columns are those of the workflow: ``study, data, model, seed, method, metric`` (the name of the score),
        ``variant`` (the name of the metric, followed by that of the variant), ``image, score``, and ``group``.
        """
        return self._tables.score_table(self)  # type: ignore[no-any-return]

    @cached_property
    def compared_scores(self) -> "pd.DataFrame":
        """The scores of ranks, pairs, sweeps and agreement.

        These are ``scores`` without those of upper controls, such as ``object_mask``. Only if methods have different
        seeds, as after a call that adds a seed of one method to earlier results, they are the means over the seeds of
        each image: tests then refer to images and to these seeds.
        """
        return self._tables.compared_scores(self)  # type: ignore[no-any-return]

    @cached_property
    def ranks(self) -> "pd.DataFrame":
        """A row for each score and method: its mean with a 95 % interval, its rank, and its rank set.

        ``rank`` is 1 + the number of methods with a higher win rate, and ``rank_low`` to ``rank_high`` the rank set. If
        parameters of methods are swept, half of the images select one member of each family, ``selected``, and all
        values are those of the other half.
        For the other columns see ``reliability.order_tables.order_tables``.
        """
        return self._order_and_pairs[0]

    @cached_property
    def pairs(self) -> "pd.DataFrame":
        """A row for each score and pair of methods: ``difference`` of means, ``wins``, the probability that the first
        method has the better score on an image, and the adjusted p-values ``difference_p`` and ``wins_p``.

        Two methods are compared on all images that have a score of both. ``wins_p`` and ``finding`` compare their win
        rates against all methods, adjusted for the number of pairs: two methods that are next to each other on every
        image can have ``wins`` 1 and be not distinguishable.

        For all columns see ``reliability.order_tables.order_tables``.
        """
        return self._order_and_pairs[1]

    @cached_property
    def controls(self) -> "pd.DataFrame":
        """A row for each score and method: the scores of the random baseline and of the best possible map, and the
        share of their range that the method reaches, see ``reliability.controls.controls_table``."""
        return self._tables.controls(self)  # type: ignore[no-any-return]

    @cached_property
    def sweeps(self) -> "pd.DataFrame":
        """A row for each score and member of a family of methods, see ``reliability.sweeps.sweep_table``."""
        return self._tables.sweeps(self)  # type: ignore[no-any-return]

    @cached_property
    def metric_sweeps(self) -> "pd.DataFrame":
        """A row for each pair of members of a family of metrics: do they agree on the order of the methods?

        See ``reliability.metric_sweeps.metric_sweep_table``.
        """
        return self._tables.metric_sweeps(self)  # type: ignore[no-any-return]

    @cached_property
    def agreement(self) -> Agreement:
        """Agreement of images on the order of the methods, for each score, and of each pair of scores."""
        return self._tables.agreement(self)  # type: ignore[no-any-return]

    @property
    def directions(self) -> dict[str, str]:
        """Direction of each score."""
        return {score: direction for each in self.metrics for score, direction in each.directions.items()}

    @property
    def baselines(self) -> list[str]:
        """Methods that do not use the model."""
        return [each.name for each in self.methods if each.is_baseline]

    @property
    def families(self) -> list[Family]:
        """Families of methods."""
        return families_of((each.name, each.member) for each in self.methods)

    @property
    def metric_families(self) -> list[Family]:
        """Families of metrics."""
        return families_of((each.name, each.member) for each in self.metrics)

    @cached_property
    def selection(self) -> Any:
        """The selected member of each family of methods, a ``reliability.sweeps.Selection``."""
        return self._tables.selection(self)

    @cached_property
    def labels(self) -> Labels:
        """Labels of methods, metrics and scores."""
        registered = {record.name: record.uses_model for record in METHODS}
        families = {each.member.family: each for each in self.methods if each.member}
        methods = [*((each.name, each) for each in self.methods), *families.items()]
        entries = {name: (each.registered, not each.is_baseline) for name, each in methods}
        return Labels(
            methods={each.name: each.label for each in self.methods}
            | {family.name: family.label for family in self.families},
            metrics={each.name: each.label for each in self.metrics},
            scores={score: label for each in self.metrics for score, label in each.score_labels.items()},
            entry_scores={each.name: each.score_labels for each in self.metrics},
            sub_variants={each.name: each.sub_variants for each in self.metrics},
            places=method_places(entries, registered),
        )

    @property
    def plot(self) -> "Plots":
        """Figures: ``plot.ranks()``, ``plot.heat_map()``, ``plot.curves()`` and ``plot.maps()``."""
        return Plots(self)

    def to_csv(self, path: str | Path) -> None:
        """Write a row for each score and method, with means, rank sets, tests and reliability, as a CSV file."""
        self._tables.tidy(self).to_csv(path, index=False)

    def to_latex(self, *, label: str | None = None, caption: str | None = None) -> str:
        """Return tables of methods × scores with means, intervals, rank sets and α; they require booktabs.

        Each table has up to five scores.

        Args:
            label: label for ``\\ref``; of several tables, it is followed by ``-1``, ``-2`` and so on.
            caption: LaTeX of the caption, in place of the description of the columns; nothing in it is escaped.
        """
        return self._tables.latex(self, label, caption)  # type: ignore[no-any-return]

    @cached_property
    def summary(self) -> list[str]:
        """Sentences on the result, the answer first."""
        words: list[str] = self._tables.sentences(self)
        return words if self.complete else [f"Interrupted: {self.state_text()}.", *words]

    @cached_property
    def heat_map(self) -> "HeatMap":
        """Cells of the heat map of rank sets."""
        return self._tables.heat_map_of(self)  # type: ignore[no-any-return]

    @cached_property
    def table(self) -> "pd.DataFrame":
        """Rank sets as text, such as ``1–2``: a row for each method, a column for each score, by their labels."""
        return self._tables.rank_set_table(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        methods, metrics = counted(len(self.methods), "method"), counted(len(self.metrics), "metric")
        scores, images = sum(len(each.directions) for each in self.metrics), len(self.image_rows["image"])
        of_scores = f" with {scores} scores" if scores > len(self.metrics) else ""
        counts = f"{methods}, {metrics}{of_scores}, {counted(images, 'image')}"
        return f"<Benchmark: {self.model} on {self.data}, {counts}>"

    def __str__(self) -> str:
        if self.scores.empty:
            return " ".join([repr(self), *self.summary])
        return "\n".join([f"Rank sets (1 is best)\n{self.table.to_string()}", *self.summary])

    def _repr_html_(self) -> str:
        return self._tables.notebook_html(self)  # type: ignore[no-any-return]

    def state_text(self) -> str:
        """Return the number of complete scores in words."""
        complete = [key for key in self.cells if not self.has_failed(key)]
        methods = len({(key.method, key.seed) for key in complete})
        verb = "is" if len(complete) == 1 else "are"
        pairs = f"{counted(len(complete), 'pair')} of a method and a metric {verb} complete"
        images = counted(len(self.image_rows["image"]), "image")
        return f"{pairs}, of {counted(methods, 'method')} and up to {images}"

    def undefined_texts(self) -> list[str]:
        """Return a sentence for each method that lacks scores, with the scores, the number of images and the cause."""
        return self._tables.undefined_texts(self)  # type: ignore[no-any-return]

    def save(self, path: str | Path) -> None:
        """Save everything in the folder ``path``, in the formats of the workflow.

        ``scores.parquet`` is a score table, ``images.zarr.zip`` a data set and ``maps/seed{seed}/{method}.zarr.zip``
        are the maps of the images that were kept.

        Raises:
            ValueError: ``path`` is a file, or a folder with other content, such as a benchmark of other images or of
                another model.
            ModuleNotFoundError: pyarrow or zarr is not installed.
        """
        from saliency_assay.api import benchmark_files  # requires pyarrow and zarr

        benchmark_files.save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> "Benchmark":
        """Load a benchmark that was saved in the folder ``path``.

        Raises:
            ValueError: there is none, or a file is damaged or of another version.
            ModuleNotFoundError: pyarrow or zarr is not installed.
        """
        from saliency_assay.api import benchmark_files

        return benchmark_files.load(Path(path))

    def add_images(self, block: "ImageBlock", inputs: str) -> None:
        """Record the images of the next block; the first ``keep`` are kept."""
        count = len(block.targets)
        self.image_rows["image"] += range(block.start, block.start + count)
        self.image_rows["source"] += block.source.tolist()
        self.image_rows["target"] += block.targets.tolist()
        if block.groups is not None:
            self.image_rows.setdefault(GROUP, []).extend(block.groups.tolist())
        self.inputs.append(inputs)
        if block.start == 0 and self.keep:
            self.pixels = block.pixels[: self.keep].cpu().numpy()
            self.mask = None if block.mask is None else block.mask[: self.keep]

    def take_over(
        self, earlier: "Benchmark", block: "ImageBlock", inputs: str, digests: Mapping[str, str]
    ) -> int:
        """Add the cells and maps of an earlier result for a block that are still valid; return the number of others.

        Entries and seeds of the earlier result that were not requested are added to this one, with their failures.
        """
        stale = 0
        if block.start == 0:
            self._add_failures(earlier, digests)
        for key, cell in earlier.cells.items():
            if key.block != block.number or not self._keeps(earlier, key, digests):
                continue
            method = digests.get(f"methods {key.method}", cell.method)
            metric = digests.get(f"metrics {key.metric}", cell.metric)
            if (cell.inputs, cell.method, cell.metric) != (inputs, method, metric):
                stale += 1
                continue
            self._add_entries(earlier, key.method, key.metric, key.seed)
            self.cells[key] = cell
        if block.start == 0:
            for (seed, name), maps in earlier.maps.items():
                stored = earlier.map_digests.get((seed, name), ["", ""])
                known = seed in self.seeds and any(each.name == name for each in self.methods)
                is_current = stored == [inputs, digests.get(f"methods {name}", stored[1])]
                if known and is_current and len(maps) >= min(self.keep, len(block.targets)):
                    self.maps[seed, name], self.map_digests[seed, name] = maps[: self.keep], stored
        return stale

    def with_later_blocks(self, earlier: "Benchmark", digests: Mapping[str, str]) -> "Benchmark":
        """Return a copy with the cells of an earlier result for the blocks after those of this one."""
        known = len(self.inputs)
        stored = copy(self)
        stored.methods, stored.metrics, stored.seeds = [*self.methods], [*self.metrics], [*self.seeds]
        stored.cells = dict(self.cells)
        for key, cell in earlier.cells.items():
            method = digests.get(f"methods {key.method}", cell.method)
            metric = digests.get(f"metrics {key.metric}", cell.metric)
            is_current = (cell.method, cell.metric) == (method, metric)
            if key.block >= known and is_current and self._keeps(earlier, key, digests):
                stored._add_entries(earlier, key.method, key.metric, key.seed)
                stored.cells[key] = cell
        if len(stored.cells) > len(self.cells):
            first = len(self.image_rows["image"])
            stored.image_rows = {
                name: [*rows, *earlier.image_rows[name][first:]] for name, rows in self.image_rows.items()
            }
            stored.inputs = [*self.inputs, *earlier.inputs[known:]]
        return stored

    def _add_failures(self, earlier: "Benchmark", digests: Mapping[str, str]) -> None:
        """Add the failures of what was not requested and is not computed again."""
        for each in earlier.failures_found:
            retries_metric = not each.metric or f"metrics {each.metric}" in digests
            if not (retries_metric and f"methods {each.method}" in digests):
                self._add_entries(earlier, each.method, each.metric)
                self.fail(each)

    def _keeps(self, earlier: "Benchmark", key: CellKey, digests: Mapping[str, str]) -> bool:
        """Return False for a cell of what had failed, if its failure is not kept and its images not completed."""
        is_requested = (
            key.seed in self.requested_seeds
            and f"methods {key.method}" in digests
            and f"metrics {key.metric}" in digests
        )
        return is_requested or self.has_failed(key) or not earlier.has_failed(key)

    def _add_entries(self, earlier: "Benchmark", method: str, metric: str, *seeds: int) -> None:
        if all(each.name != method for each in self.methods):
            self.methods += [each for each in earlier.methods if each.name == method]
        if all(each.name != metric for each in self.metrics):
            self.metrics += [each for each in earlier.metrics if each.name == metric]
        self.seeds += [seed for seed in seeds if seed not in self.seeds]

    def keep_maps(self, seed: int, method: str, start: int, maps: Array, digest: str = "") -> None:
        """Keep the maps of the first ``keep`` images."""
        if start == 0 and self.keep:
            self.maps[seed, method] = maps[: self.keep].copy()
            self.map_digests[seed, method] = [self.inputs[0], digest]

    def needs_maps(self, seed: int, method: str, start: int) -> bool:
        """Return True if maps to keep are missing."""
        has_failed = any(each.method == method and not each.metric for each in self.failures_found)
        return start == 0 and self.keep > 0 and (seed, method) not in self.maps and not has_failed

    def fail(self, failure: Failure) -> None:
        """Record a failure."""
        if failure not in self.failures_found:
            self.failures_found.append(failure)

    def has_failed(self, key: CellKey) -> bool:
        """Return True if the method of a cell has failed, or its metric for this method."""
        return any(
            each.method == key.method and each.metric in ("", key.metric) for each in self.failures_found
        )

    def score_name(self, metric: str) -> tuple[str, str]:
        """Return metric and variant, as in tables, of a score, a metric with one score, or its label.

        Raises:
            ValueError: there is no such score, or the metric has several.
        """
        pairs = list(dict.fromkeys(zip(self.scores["metric"], self.scores["variant"], strict=True)))
        named = {pair: {pair[0], pair[1], self.labels.score(*pair)} for pair in pairs}
        of_entry = [pair for pair in pairs if pair[1].partition(" ")[0] == metric]
        matches = [pair for pair in pairs if metric in named[pair]] or of_entry
        if not metric and len(pairs) == 1:
            matches = pairs
        if len(matches) != 1:
            valid = [
                pair[0] if pair[0] == pair[1] else self.labels.score(*pair) for pair in (matches or pairs)
            ]
            if not metric or matches:
                raise ValueError(f"metric: found {metric!r}, valid: {', '.join(valid)}")
            raise ValueError(unknown("metric", metric, valid))
        return matches[0]

    def kept(self, seed: int | None = None) -> tuple[Array, dict[str, Array], Array | None, list[int]]:
        """Return images, maps by label, masks and targets of the images that were kept.

        Args:
            seed: seed of the maps; by default the first one of each method that has maps.

        Raises:
            ValueError: none were kept.
        """
        seeds = self.seeds if seed is None else [seed]
        first_maps = {
            each.label: next(
                (self.maps[key] for one in seeds if (key := (one, each.name)) in self.maps), None
            )
            for each in self.methods
        }
        maps = {label: each for label, each in first_maps.items() if each is not None}
        if self.pixels is None or not maps:
            raise ValueError("no maps were kept; pass keep= to benchmark")
        count = min(map(len, maps.values()))
        mask = None if self.mask is None else self.mask[:count]
        targets = self.image_rows["target"][:count]
        return self.pixels[:count], {name: each[:count] for name, each in maps.items()}, mask, targets

    def curve(self, metric: str, name: str = "") -> tuple[str, dict[str, tuple[Array, Array]]]:
        """Return the name of a curve and, for each method, its mean and the half width of its 95 % band.

        Raises:
            ValueError: the metric has no curves, or not this one.
        """
        with_curves = {
            key: cell.curves for key, cell in self.cells.items() if cell.curves and not self.has_failed(key)
        }
        valid = list(dict.fromkeys(key.metric for key in with_curves))
        of_metric = {key: curves for key, curves in with_curves.items() if key.metric == metric}
        if not of_metric:
            raise ValueError(
                f"metric: found {metric!r}, valid are those with curves: {', '.join(valid) or 'none'}"
            )
        names = list(next(iter(of_metric.values())))
        if name and name not in names:
            raise ValueError(unknown("curve", name, names))
        chosen, total = name or names[0], dict[str, dict[str, Moments]]()
        seeds: dict[str, set[int]] = {}
        for key, curves in of_metric.items():
            seeds.setdefault(key.method, set()).add(key.seed)
            of_method = total.setdefault(key.method, {})
            for group, moments in self._by_group(key.block, curves[chosen]):
                of_method[group] = of_method[group] + moments if group in of_method else moments
        return chosen, {
            method: _band(list(of_method.values()), len(seeds[method]), grouped=GROUP in self.image_rows)
            for method, of_method in total.items()
        }

    def _by_group(self, block: int, moments: Moments) -> Iterator[tuple[str, Moments]]:
        """Yield the moments of each group of images in a block, or those of the block without groups."""
        if GROUP not in self.image_rows:
            yield "", moments
            return
        groups = self.image_rows[GROUP][block * BLOCK : (block + 1) * BLOCK]
        for row, group in enumerate(np.unique(groups)):
            yield str(group), Moments(moments.count[row], moments.mean[row], moments.squares[row])

    @property
    def _tables(self) -> Any:
        # Imported on first use, because pandas and scipy take longer to import than a small benchmark to run.
        return import_module("saliency_assay.api.benchmark_tables")

    @cached_property
    def _order_and_pairs(self) -> "tuple[pd.DataFrame, pd.DataFrame]":
        return self._tables.order_and_pairs(self)  # type: ignore[no-any-return]

    @cached_property
    def study(self) -> "StudyResult":
        """The result in the form that the pages of the report take."""
        return self._tables.study_of(self)  # type: ignore[no-any-return]


class Plots:
    """Figures of a benchmark; each function plots on axes, by default those of a new figure, and returns them."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark

    def ranks(self, metric: str = "", ax: "Axes | None" = None, *, highlight: str = "") -> Any:
        """Plot the rank set of each method under one metric, which may be left out if there is only one.

        The method ``highlight`` has an accent color and a bold label, and all others are gray.
        """
        return self._module.ranks_of_benchmark(self._benchmark, metric, ax, highlight)

    def heat_map(self, ax: "Axes | None" = None, *, highlight: str = "") -> Any:
        """Plot the rank sets of all methods under all metrics, and up to six scores with means and intervals.

        The label of the method or family ``highlight`` is bold, in an accent color.
        """
        return self._module.heat_map(self._benchmark, ax, highlight)

    def sweep(self, family: str, metric: str = "", ax: "Axes | None" = None) -> Any:
        """Plot the scores of a swept method over the values of its parameter, with 95 % intervals over all images.

        For a swept metric, plot the ranks of the methods over the values, with rank sets as bands. ``metric`` is the
        score; it may be left out if there is only one.
        """
        return self._module.sweep_of_benchmark(self._benchmark, family, metric, ax)

    def curves(self, metric: str, ax: "Axes | None" = None, *, curve: str = "", highlight: str = "") -> Any:
        """Plot the model's output as pixels are removed or inserted: means over images with their 95 % bands.

        Images of one group are not independent: the variance is then that of sums over groups. ``highlight`` is that of
        ``ranks``; of a family, all members are highlighted.
        """
        return self._module.curves_of_benchmark(self._benchmark, metric, ax, curve, highlight)

    def maps(
        self,
        ax: "Axes | None" = None,
        *,
        images: int = 4,
        methods: Sequence[str] = (),
        titles: Sequence[object] = (),
    ) -> Any:
        """Plot the maps of the first ``images`` by ``methods``, by default all; titles are by default the targets."""
        return self._module.maps_of_benchmark(self._benchmark, ax, images, methods, titles)

    @property
    def _module(self) -> Any:
        # Matplotlib is imported on first use, as by the package itself.
        return import_module("saliency_assay.plot")


def _band(of_groups: Sequence[Moments], seeds: int, *, grouped: bool) -> tuple[Array, Array]:
    """Return the mean and the half width of its 95 % interval.

    The values of an image under several seeds count as one. With groups, the variance is that of the sums of the groups
    (cluster-robust), and at least that of independent images; the quantile is Student's t.
    """
    total = reduce(add, of_groups)
    count, images = np.maximum(total.count, 1), np.maximum(total.count / seeds, 1)
    mean = np.where(total.count > 0, total.mean, np.nan)
    variance = total.squares / np.maximum(total.count - 1, 1) / images
    quantile, number = NORMAL_95, images
    if grouped:
        from scipy.special import stdtrit

        number = np.sum([each.count > 0 for each in of_groups], axis=0)
        sums = np.sum([(each.count * (each.mean - total.mean)) ** 2 for each in of_groups], axis=0)
        degrees = np.maximum(number - 1, 1)
        variance = np.maximum(variance, number / degrees * sums / count**2)
        quantile = stdtrit(degrees, 0.975)
    return mean, np.where(number > 1, quantile * np.sqrt(variance), np.nan)

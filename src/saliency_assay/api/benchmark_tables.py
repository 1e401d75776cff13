"""Tables, sentences and pages of a benchmark, by the functions that make those of the workflow's report."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.api.results import STUDY, Agreement, Benchmark
from saliency_assay.methods import METHODS
from saliency_assay.metrics.engine import UNDEFINED
from saliency_assay.plotting.page import page_templates
from saliency_assay.registry.controls import LOWER_CONTROL, UPPER_CONTROL
from saliency_assay.registry.labels import counted
from saliency_assay.reliability.controls import Controls, controls_table
from saliency_assay.reliability.metric_sweeps import metric_sweep_table
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.reliability_tables import (
    SCORED,
    rankings_table,
    reliability_table,
)
from saliency_assay.reliability.sweeps import Selection, select, sweep_table
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.report.export.export import study_tex, tidy_table
from saliency_assay.report.pages.heat_map import HeatMap, MethodRow, ScoreCell, heat_map
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.words import sweep_words
from saliency_assay.storage import GROUP

TEMPLATES = Path(__file__).with_name("templates")
RESAMPLES, LEVEL = 10_000, 0.999
"""Resamples and confidence level of the intervals of α, as in the workflow."""
COLUMNS = ["study", "data", "model", "seed", "method", "metric", "variant", "image", "score"]
"""Columns of ``storage.score_tables``, which requires pyarrow."""
NOT_COMPUTED = ScoreCell(absent="not computed")
SENTENCES = 5
"""Most sentences below the heat map in a notebook."""


def image_table(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.images``."""
    return pd.DataFrame(result.image_rows)


def failure_table(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.failures``."""
    return pd.DataFrame(list(map(asdict, result.failures_found)), columns=["method", "metric", "error"])


def score_table(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.scores``: metrics, methods, seeds and images in their order."""
    places = {each.name: place for place, each in enumerate(result.methods)}
    metrics = {each.name: place for place, each in enumerate(result.metrics)}
    keys = sorted(
        (key for key in result.cells if not result.has_failed(key)),
        key=lambda key: (metrics[key.metric], places[key.method], key.seed, key.block),
    )
    if not keys:
        return pd.DataFrame(columns=COLUMNS)
    tables = [result.cells[key].table.assign(method=key.method, seed=key.seed) for key in keys]
    table = pd.concat(tables, ignore_index=True).assign(study=STUDY, data=result.data, model=result.model)
    # A score has its rows in one piece, as in the workflow, whatever the number of its variants.
    score = table.groupby(["metric", "variant"], sort=False).ngroup()
    table = table.assign(_score=score, _method=table["method"].map(places))
    table = table.sort_values(["_score", "_method", "seed", "image"], kind="stable", ignore_index=True)
    groups = result.image_rows.get(GROUP)
    return (
        table[COLUMNS] if groups is None else table[COLUMNS].assign(group=np.asarray(groups)[table["image"]])
    )


def compared_scores(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.compared_scores``."""
    return _controls(result).ranked(_with_equal_seeds(result.scores))


def _with_equal_seeds(table: pd.DataFrame) -> pd.DataFrame:
    """Return scores; means over seeds if methods have different seeds."""
    seeds = table.groupby([*SCORED, "method"], sort=False)["seed"].agg(frozenset)
    if table.empty or (seeds.groupby(SCORED).nunique() == 1).all():
        return table
    # A seed of some methods only would be a factor with one level for pairs of the others, which could not be tested.
    keys = [name for name in table if name not in ("seed", "score")]
    means = table.groupby(keys, sort=False, dropna=False)["score"].mean().reset_index()
    return means.assign(seed=table["seed"].min())[list(table)]


def controls(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.controls``."""
    table = _with_equal_seeds(result.scores)
    return controls_table(table, result.directions, _controls(result), clusters=_clusters(result))


def _controls(result: Benchmark) -> Controls:
    """Return the controls of a benchmark; upper ones only if parameters do not matter, because they are unknown."""
    records = {
        each.name: record for each in result.methods for record in METHODS if record.name == each.registered
    }
    uppers = {name: record for name, record in records.items() if record.control == UPPER_CONTROL}
    upper: dict[str, dict[str, list[str]]] = {}
    for metric in result.metrics:
        best = [
            name
            for name, record in uppers.items()
            if record.best_for.get(metric.registered, record.best_for.get(metric.measures)) == {}
        ]
        for score in metric.directions if best else ():
            upper.setdefault(score, {})[metric.name] = best
    lower = next((name for name, record in records.items() if record.control == LOWER_CONTROL), "")
    return Controls(lower, upper, [name for name, record in uppers.items() if not record.uses_model])


def undefined_texts(result: Benchmark) -> list[str]:
    """Return ``Benchmark.undefined_texts``."""
    images = counted(len(result.image_rows["image"]), "image")
    texts = []
    for (method, cause), rows in _missing(result).groupby(["method", "cause"], sort=False):
        scores, most = ", ".join(dict.fromkeys(rows["label"])), rows["missing"].max()
        known = f" ({cause})" if cause else f", {UNDEFINED}"
        texts.append(
            f"{result.labels.method(str(method))}: no score for up to {most} of {images}{known}: {scores}"
        )
    return texts


def missing_texts(result: Benchmark) -> list[str]:
    """Return sentences on methods that have failed, and on those without any score under a metric."""
    texts = []
    for metric in sorted({each.metric for each in result.failures_found}):
        named: dict[str, list[str]] = {}
        for each in result.failures_found:
            if each.metric == metric:
                named.setdefault(each.error, []).append(result.labels.method(each.method))
        causes = "; ".join(f"{', '.join(methods)} ({error})" for error, methods in named.items())
        count = len(set().union(*named.values()))
        of_metric = f" under {result.labels.metrics[metric]}" if metric else ""
        texts.append(f"{count} of {len(result.methods)} methods failed{of_metric}: {causes}.")
    missing = _missing(result)
    missing = missing[missing["is_all"].astype(bool)].drop_duplicates(["method", "label"])
    scores: dict[tuple[str, str], list[str]] = {}
    for (label, cause), rows in missing.groupby(["label", "cause"], sort=False):
        scored = result.scores.loc[result.scores["variant"].isin(rows["variant"]), "method"].nunique()
        names = ", ".join(map(result.labels.method, rows["method"]))
        key = "any method" if len(rows) == scored else names, str(cause)
        scores.setdefault(key, []).append(str(label))
    return texts + [
        f"No score of {names} under {', '.join(labels)}: {cause or f'images {UNDEFINED}'}."
        for (names, cause), labels in scores.items()
    ]


def _missing(result: Benchmark) -> pd.DataFrame:
    """Return ``method, variant, label, missing, is_all, cause`` of each score of a method that lacks images."""
    keys = ["method", "seed", "metric", "variant"]
    table = result.scores.assign(undefined=result.scores["score"].isna())
    counts = table.groupby(keys, sort=False)["undefined"].agg(["sum", "size"]).reset_index()
    rows = [
        {
            "method": method,
            "variant": variant,
            "label": result.labels.score(metric, variant),
            "missing": count,
            "is_all": count == size,
            "cause": _cause(result, method, seed, metric, variant),
        }
        for method, seed, metric, variant, count, size in counts.itertuples(index=False, name=None)
        if count
    ]
    return pd.DataFrame(rows, columns=["method", "variant", "label", "missing", "is_all", "cause"])


def _cause(result: Benchmark, method: str, seed: int, metric: str, variant: str) -> str:
    """Return the known causes of a method's missing scores, such as ``3 images with an empty mask``."""
    counts: Counter[str] = Counter()
    for key, cell in result.cells.items():
        if key[:3] == (seed, method, variant.partition(" ")[0]):
            counts.update(cell.causes.get(f"{metric} {variant}", {}))
    return ", ".join(f"{count} image{'s' * (count > 1)} {cause}" for cause, count in counts.items())


def order_and_pairs(result: Benchmark) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``Benchmark.ranks`` and ``Benchmark.pairs``."""
    tables = order_tables(
        result.selection.apply(result.compared_scores),
        result.directions,
        result.selection.baselines(result.baselines),
        clusters=_clusters(result),
        ranges=_ranges(result),
        rule=Rule(),
    )
    ranks, pairs = result.selection.annotated(*tables)
    win_rates = ranks.groupby(["metric", "variant"], sort=False)["win_rate"]
    rank = win_rates.rank(ascending=False, method="min")
    ranks.insert(list(ranks).index("rank_low"), "rank", rank)
    return ranks, pairs


def selection(result: Benchmark) -> Selection:
    """Return ``Benchmark.selection``."""
    return select(
        result.compared_scores, result.directions, result.families, clusters=_clusters(result), by=Rule().by
    )


def sweeps(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.sweeps``."""
    return sweep_table(
        result.compared_scores,
        result.directions,
        result.selection,
        clusters=_clusters(result),
        ranges=_ranges(result),
        rule=Rule(),
    )


def metric_sweeps(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.metric_sweeps``."""
    compared, clusters = result.selection.apply(result.compared_scores), _clusters(result)
    families = result.metric_families
    return metric_sweep_table(compared, result.directions, families, clusters=clusters, rule=Rule())


def agreement(result: Benchmark) -> Agreement:
    """Return ``Benchmark.agreement``."""
    selected, clusters = result.selection, _clusters(result)
    scored = selected.apply(result.compared_scores), result.directions, selected.baselines(result.baselines)
    by_images = reliability_table(*scored, resamples=RESAMPLES, level=LEVEL, clusters=clusters)
    return Agreement(by_images, rankings_table(*scored, clusters))


def tidy(result: Benchmark) -> pd.DataFrame:
    """Return ranks and reliability in one table, as ``saliency-assay table`` writes it."""
    return tidy_table(STUDY, STUDY, result.ranks, result.agreement.images)


def latex(result: Benchmark, label: str | None, caption: str | None) -> str:
    """Return the same as LaTeX tables, see ``Benchmark.to_latex``."""
    table = tidy(result).assign(seeds=0)  # none of trainings
    note = "" if result.complete else f"Interrupted: {result.state_text()}."
    return study_tex(
        STUDY, table, [], level=LEVEL, labels=result.labels, reference=label, caption=caption, note=note
    )


def sentences(result: Benchmark) -> list[str]:
    """Return the answer of a benchmark, a sentence for each line, and sentences on failures and on its limits."""
    if result.scores.empty:
        return missing_texts(result)
    answers = map(str, result.study.answers)
    return [*answers, *missing_texts(result), *result.study.warnings, *result.study.notes]


def heat_map_of(result: Benchmark) -> HeatMap:
    """Return the cells of the heat map of rank sets."""
    tables = result.study.tables
    content = heat_map(
        tables["order"],
        tables["reliability"],
        result.study.names,
        result.study.measured,
        title=f"{result.model} on {result.data}: rank sets of the methods",
        level=LEVEL,
        controls=result.controls.assign(method=result.controls["method"].map(result.labels.method)),
    )
    metrics = {label: variant.partition(" ")[0] for (_, variant), label in result.study.names.items()}
    columns = [metrics[column.name] for column in content.columns]
    methods, baselines = (
        [_with_not_computed(result, row, columns) for row in rows]
        for rows in (content.methods, content.baselines)
    )
    return replace(content, methods=methods, baselines=baselines)


def _with_not_computed(result: Benchmark, row: MethodRow, metrics: Sequence[str]) -> MethodRow:
    """Return a row in which missing scores have failed, or else are marked as not computed.

    They are missing after an interruption, or with a ``path`` if a call has scored other methods by other metrics.
    """
    labels = result.labels
    families = {each.name: each.member.family for each in result.methods if each.member}
    failed = {
        each.metric
        for each in result.failures_found
        if row.method in (labels.method(each.method), labels.method(families.get(each.method, each.method)))
    }
    cells = [
        NOT_COMPUTED if cell is None and failed.isdisjoint(("", metric)) else cell
        for cell, metric in zip(row.cells, metrics, strict=True)
    ]
    return replace(row, cells=cells)


def rank_set_table(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.table``."""
    content = result.heat_map
    rows = {row.method: row.cells for row in content.methods}
    rows |= {f"{row.method} (baseline)": row.cells for row in content.baselines}
    texts = {
        name: ["failed" if each is None else each.ranks if each.mean else each.absent for each in cells]
        for name, cells in rows.items()
    }
    columns = [f"{column.name} {column.arrow}" for column in content.columns]
    return pd.DataFrame.from_dict(texts, orient="index", columns=columns)


def notebook_html(result: Benchmark) -> str:
    """Return the heat map and the first sentences as HTML."""
    content = None if result.scores.empty else result.heat_map
    template = page_templates(TEMPLATES).get_template("benchmark.html.j2")
    return template.render(heat=content, sentences=result.summary[:SENTENCES])


def _ranges(result: Benchmark) -> dict[str, tuple[float, float]]:
    return {score: limits for each in result.metrics for score, limits in each.ranges.items()}


def _clusters(result: Benchmark) -> dict[str, Array]:
    groups = result.image_rows.get(GROUP)
    return {} if groups is None else {GROUPS: pd.factorize(pd.Series(groups, dtype=object))[0]}


def _ranks(result: Benchmark) -> pd.DataFrame:
    """Return the ranks without the number of seeds, which are not those of trainings; see ``results.study_result``."""
    return result.ranks.assign(seeds=1)


def study_of(result: Benchmark) -> StudyResult:
    """Return ``Benchmark.study``, with the tables that its answer, warnings and heat map use."""
    labels = result.labels
    tables = {"order": _ranks(result), "pairs": result.pairs.copy()}
    for name, column in (
        *(("order", "method"), ("order", "lead_over"), ("pairs", "method"), ("pairs", "other")),
    ):
        tables[name][column] = tables[name][column].map(labels.method, na_action="ignore")
    tables["reliability"] = result.agreement.images
    of_scores = {score: each for each in result.metrics for score in each.directions}
    return StudyResult(
        name=STUDY,
        label=labels.study(STUDY),
        page="",
        question="",
        data=result.data,
        models=[result.model],
        labels=labels,
        score_summaries={score: each.summary for score, each in of_scores.items()},
        measured={score: each.measures for score, each in of_scores.items()},
        methods=[each.label for each in result.methods],
        tables=tables,
        level=LEVEL,
        notes=sweep_words(tables["order"]),
    )

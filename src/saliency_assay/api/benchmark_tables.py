"""Tables, sentences and pages of a benchmark, by the functions that make those of the workflow's report."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.api.results import STUDY, Agreement, Benchmark
from saliency_assay.metrics.engine import UNDEFINED
from saliency_assay.plotting.page import page_templates
from saliency_assay.reliability.metric_sweeps import metric_sweep_table
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.reliability_tables import (
    rankings_table,
    reliability_table,
)
from saliency_assay.reliability.sweeps import Selection, select, sweep_table
from saliency_assay.reliability.variance import GROUPS
from saliency_assay.report.export.export import study_tex, tidy_table
from saliency_assay.report.pages.heat_map import HeatMap, heat_map
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.words import sweep_words
from saliency_assay.storage import GROUP

TEMPLATES = Path(__file__).with_name("templates")
RESAMPLES, LEVEL = 10_000, 0.999
"""Resamples and confidence level of the intervals of α, as in the workflow."""
COLUMNS = ["study", "data", "model", "seed", "method", "metric", "variant", "image", "score"]
"""Columns of ``storage.score_tables``, which requires pyarrow."""
SENTENCES = 3
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


def undefined_texts(result: Benchmark) -> list[str]:
    """Return ``Benchmark.undefined_texts``."""
    table = result.scores.assign(undefined=result.scores["score"].isna())
    counts = table.groupby(["method", "seed", "metric", "variant"], sort=False)["undefined"].sum()
    texts = []
    for method, rows in counts[counts > 0].reset_index().groupby("method", sort=False):
        pairs = dict.fromkeys(zip(rows["metric"], rows["variant"], strict=True))
        scores = ", ".join(result.labels.score(*pair) for pair in pairs)
        images = f"up to {rows['undefined'].max()} of {len(result.image_rows['image'])} images"
        texts.append(f"{result.labels.method(str(method))}: no score for {images}, {UNDEFINED}: {scores}")
    return texts


def order_and_pairs(result: Benchmark) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``Benchmark.ranks`` and ``Benchmark.pairs``."""
    tables = order_tables(
        result.selection.apply(result.scores),
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
    return select(result.scores, result.directions, result.families, clusters=_clusters(result), by=Rule().by)


def sweeps(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.sweeps``."""
    return sweep_table(
        result.scores,
        result.directions,
        result.selection,
        clusters=_clusters(result),
        ranges=_ranges(result),
        rule=Rule(),
    )


def metric_sweeps(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.metric_sweeps``."""
    compared, clusters = result.selection.apply(result.scores), _clusters(result)
    families = result.metric_families
    return metric_sweep_table(compared, result.directions, families, clusters=clusters, rule=Rule())


def agreement(result: Benchmark) -> Agreement:
    """Return ``Benchmark.agreement``."""
    selected, clusters = result.selection, _clusters(result)
    scored = selected.apply(result.scores), result.directions, selected.baselines(result.baselines)
    by_images = reliability_table(*scored, resamples=RESAMPLES, level=LEVEL, clusters=clusters)
    return Agreement(by_images, rankings_table(*scored, clusters))


def tidy(result: Benchmark) -> pd.DataFrame:
    """Return ranks and reliability in one table, as ``saliency-assay table`` writes it."""
    return tidy_table(STUDY, STUDY, result.ranks, result.agreement.images)


def latex(result: Benchmark) -> str:
    """Return the same as a LaTeX table."""
    table = tidy(result).assign(seeds=0)  # none of trainings
    return study_tex(STUDY, table, [], level=LEVEL, labels=result.labels)


def sentences(result: Benchmark) -> list[str]:
    """Return the answer of a benchmark in one sentence, and sentences on its limits."""
    return [result.study.answer, *result.study.warnings]


def heat_map_of(result: Benchmark) -> HeatMap:
    """Return the cells of the heat map of rank sets."""
    tables = result.study.tables
    return heat_map(
        tables["order"],
        tables["reliability"],
        result.study.names,
        result.study.measured,
        title=f"{result.model} on {result.data}: rank sets of the methods",
        level=LEVEL,
    )


def rank_set_table(result: Benchmark) -> pd.DataFrame:
    """Return ``Benchmark.table``."""
    content = result.heat_map
    rows = {row.method: [each.ranks if each else "failed" for each in row.cells] for row in content.methods}
    for row in content.baselines:
        rows[f"{row.method} (baseline)"] = [each.ranks if each else "failed" for each in row.cells]
    columns = [f"{column.name} {column.arrow}" for column in content.columns]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def notebook_html(result: Benchmark) -> str:
    """Return the heat map and the first sentences as HTML."""
    content = result.heat_map if result.cells else None
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
        cautions=sweep_words(tables["order"]),
    )

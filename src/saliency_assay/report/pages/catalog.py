"""Reference pages on the methods and metrics of a configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from saliency_assay.methods.cost import Map, passes
from saliency_assay.plotting.html import table_of
from saliency_assay.registry import directions
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.words import alpha_words

Facts = Mapping[str, Any]
SINGLE_PASS = ("gradient", "sensitivity", "gradient_x_input")


def cost_table(
    methods: Sequence[Facts],
    stores: Sequence[Facts],
    measured: Sequence[Sequence[Facts]],
    sizes: Mapping[str, tuple[int, int]],
) -> pd.DataFrame:
    """Return the cost of each method's maps: ``method, model, data, device, images, seconds, passes`` (per image).

    Args:
        methods: records as in ``methods_page``, with ``background``, and ``base`` for methods that smooth another.
        stores: ``method, model, data, batch`` of each store of maps.
        measured: for each store ``images, seconds, device`` as measured by its jobs, one per part.
        sizes: height and width of the images of each data set.
    """
    records = {facts["name"]: facts for facts in methods}
    rows = [
        {
            **{name: store[name] for name in ("method", "model", "data")},
            **{name: sum(part[name] for part in costs) for name in ("images", "seconds")},
            "device": ", ".join(dict.fromkeys(part["device"] for part in costs)),
            "passes": _passes(records[store["method"]], sizes[store["data"]], store["batch"]),
        }
        for store, costs in zip(stores, measured, strict=True)
    ]
    columns = ["method", "model", "data", "device", "images", "seconds", "passes"]
    return pd.DataFrame(rows, columns=columns)


def _passes(facts: Facts, size: tuple[int, int], batch: int) -> float:
    """Return the number of passes per image; NaN if unknown."""
    if facts["passes"] is None:
        return float("nan")
    base = _passes(facts["base"], size, batch) if "base" in facts else 1.0
    return passes(facts["passes"], Map(facts["parameters"], size, batch, base, facts["background"]))


def methods_page(methods: Sequence[Facts], costs: pd.DataFrame) -> str:
    """Return the page of methods with descriptions and the cost of a map.

    Args:
        methods: ``name, method, summary, reference, parameters, baseline``; ``signed, passes``, which are None for a
            custom method.
        costs: result of ``cost_table``.
    """
    rows = [
        {
            "entry": facts["name"],
            "method": facts["method"] or "a function of the configuration",
            "what it is": facts["summary"]
            + (" (baseline: does not use the model)" if facts["baseline"] else ""),
            "source": facts["reference"],
            "signed": {True: "yes", False: "no", None: ""}[facts["signed"]],
            "parameters": _parameter_text(facts["parameters"]),
        }
        for facts in methods
    ]
    cost_rows = costs.assign(**{"seconds an image": costs["seconds"] / costs["images"]})
    # Methods with a single backward pass, the reference for the time of all others.
    single_pass = [facts["name"] for facts in methods if facts["method"] in SINGLE_PASS]
    single_times = (
        cost_rows[cost_rows["method"].isin(single_pass)].groupby(["model", "data"])["seconds an image"].min()
    )
    reference_times = [
        single_times.get((row.model, row.data), float("nan")) for row in cost_rows.itertuples()
    ]
    cost_rows["× the plain gradient"] = cost_rows["seconds an image"] / reference_times
    columns = ["method", "model", "data", "device", "images", "passes", "seconds an image"]
    columns.append("× the plain gradient")
    cost_rows = cost_rows[columns].rename(columns={"passes": "passes an image"})
    return render(
        "methods",
        methods=table_of(pd.DataFrame(rows), "The methods of this configuration", 2),
        costs=table_of(cost_rows, "Cost of a map", 4),
    )


def metrics_page(metrics: Sequence[Facts], reliability: pd.DataFrame) -> str:
    """Return the page of metrics with descriptions, formulas, better directions and reliability in this run.

    Args:
        metrics: ``name, metric, summary, reference, formula, reduction, parameters, scores`` (each with ``name, label,
            direction, range``).
        reliability: ``study`` and the columns of ``reliability.tables.reliability_table`` for all studies.
    """
    sections = []
    for facts in metrics:
        rows = reliability[reliability["metric"].isin(score["name"] for score in facts["scores"])]
        if facts["scores_single_maps"]:  # other metrics have no entry in the variants
            rows = rows[rows["variant"].str.split(" ").str[0] == facts["name"]]
        title = f"{facts['name']}: reliability found here"
        sections.append(
            {
                "name": facts["name"],
                "summary": facts["summary"],
                "facts": {name: text for name, text in _metric_facts(facts).items() if text},
                "reliability": table_of(_reliability_columns(rows), title, 2) if len(rows) else None,
            }
        )
    return render("metrics", metrics=sections)


def _metric_facts(facts: Facts) -> dict[str, str]:
    entries = {
        "Formula": facts["formula"],
        "Source": facts["reference"],
        "Registered as": facts["metric"] if facts["metric"] != facts["name"] else "",
        "Judges": f"maps under the reduction {facts['reduction']}" if facts["reduction"] else "",
        "Parameters": _parameter_text(facts["parameters"]),
    }
    for score in facts["scores"]:
        range_text = f", range {score['range']}" if score["range"] else ""
        direction = directions.phrase(score["direction"])
        entries[f"Score {score['name']}"] = f"{score['label']}{range_text}; {direction}"
    return entries


def _reliability_columns(rows: pd.DataFrame) -> pd.DataFrame:
    verdicts = [alpha_words(row) for row in rows.to_dict("records")]  # type: ignore[arg-type]  # keys are Hashable in the stubs
    columns = ["study", "metric", "variant", "seed", "baselines", "methods", "images"]
    columns += ["alpha", "alpha_low", "alpha_high", "correlation"]
    columns_shown = rows[columns].assign(so=verdicts)
    names = {
        "metric": "score",
        "alpha": "α",
        "alpha_low": "from",
        "alpha_high": "to",
        "correlation": "ρ of methods",
    }
    return columns_shown.rename(columns=names)


def _parameter_text(parameters: Facts) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items())

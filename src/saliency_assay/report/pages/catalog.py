"""Reference pages on the methods and metrics of a configuration."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from saliency_assay.methods.cost import Map, passes
from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import Code, Keyed, table_of
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.render import render
from saliency_assay.report.pages.words import alpha_words, concordance_text

Description = Mapping[str, Any]
SINGLE_PASS = ("gradient", "sensitivity", "gradient_x_input")


def cost_table(
    methods: Sequence[Description],
    stores: Sequence[Description],
    measured: Sequence[Sequence[Description]],
    sizes: Mapping[str, tuple[int, int]],
) -> pd.DataFrame:
    """Return the cost of each method's maps: ``method, model, data, device, images, seconds, passes`` (per image).

    Args:
        methods: records as in ``methods_page``, with ``background``, and ``base`` for methods that smooth another;
            those with ``stored`` maps are left out.
        stores: ``method, model, data, batch`` of each store of maps.
        measured: for each store ``images, seconds, device, passes`` (per image) as measured by its jobs, one per shard.
            These passes stand for those of custom methods, and of methods whose record has no number of passes.
        sizes: height and width of the images of each data set.
    """
    records = {description["name"]: description for description in methods}
    rows = [
        {
            **{name: store[name] for name in ("method", "model", "data")},
            **{name: sum(shard[name] for shard in costs) for name in ("images", "seconds")},
            "device": ", ".join(dict.fromkeys(shard["device"] for shard in costs)),
            "passes": _passes(records[store["method"]], sizes[store["data"]], store["batch"]),
            "rows": sum(shard["images"] * shard["passes"] for shard in costs),
        }
        for store, costs in zip(stores, measured, strict=True)
        if not records[store["method"]]["stored"]  # maps from another program, at unknown cost
    ]
    columns = ["method", "model", "data", "device", "images", "seconds", "passes"]
    table = pd.DataFrame(rows, columns=[*columns, "rows"])
    # A custom method that only calls parts of the classifier has no rows.
    measured_passes = (table["rows"] / table["images"]).where(table["rows"] > 0)
    return table.assign(passes=table["passes"].fillna(measured_passes))[columns]


def _passes(description: Description, size: tuple[int, int], batch: int) -> float:
    """Return the number of passes per image by a method's parameters; NaN if these do not determine it."""
    if description["passes"] is None:
        return float("nan")
    base = _passes(description["base"], size, batch) if "base" in description else 1.0
    return passes(
        description["passes"], Map(description["parameters"], size, batch, base, description["background"])
    )


def methods_page(methods: Sequence[Description], costs: pd.DataFrame, labels: Labels) -> str:
    """Return the page of methods with descriptions and the cost of a map.

    Args:
        methods: ``name, label, method, summary, reference, parameters, baseline``, and ``signed, passes``, which are
            None for a custom method; ``passes`` also for a method whose record has no number.
        costs: result of ``cost_table``.
        labels: labels of the methods, models and data.
    """
    rows = [
        {
            "method": Keyed(description["label"], description["name"]),
            "registered method": _registered(
                description["name"],
                description["method"],
                "from another program" if description["stored"] else "custom function",
            ),
            "description": description["summary"]
            + (" (baseline: does not use the model)" if description["baseline"] else ""),
            "source": description["reference"] if description["method"] else Code(description["reference"]),
            "signed": {True: "yes", False: "no", None: ""}[description["signed"]],
            "parameters": Code(_parameter_text(description["parameters"])),
        }
        for description in methods
    ]
    cost_rows = costs.assign(**{"ms per image": 1000 * costs["seconds"] / costs["images"]})
    # The fastest gradient is the reference for the time of all methods.
    single_pass = [description["name"] for description in methods if description["method"] in SINGLE_PASS]
    single_times = (
        cost_rows[cost_rows["method"].isin(single_pass)].groupby(["model", "data"])["ms per image"].min()
    )
    reference_times = [
        single_times.get((row.model, row.data), float("nan")) for row in cost_rows.itertuples()
    ]
    cost_rows["time relative to a gradient"] = cost_rows["ms per image"] / reference_times
    columns = ["method", "model", "data", "device", "images", "passes", "ms per image"]
    columns.append("time relative to a gradient")
    cost_rows = cost_rows[columns].rename(columns={"passes": "passes per image"})
    return render(
        "methods",
        methods=table_of(_without_empty(pd.DataFrame(rows), "registered method"), "Methods", 2),
        costs=table_of(displayed(cost_rows, labels), "Cost of a map", 2),
    )


def _registered(name: str, registered: str, other: str = "custom function") -> Code | str:
    """Return the registered object of an entry, empty if it has the name of the entry; ``other`` if there is none."""
    if not registered:
        return other
    return "" if registered == name else Code(registered)


def _without_empty(table: pd.DataFrame, column: str) -> pd.DataFrame:
    return table if table[column].map(str).any() else table.drop(columns=column)


def metrics_page(metrics: Sequence[Description], reliability: pd.DataFrame, labels: Labels) -> str:
    """Return the page of metrics with descriptions, formulas, better directions and reliability in this run.

    Args:
        metrics: ``name, label, metric, summary, reference, formula, reduction, parameters, scores`` (each with ``name,
            label, unit, direction, range``).
        reliability: ``study`` and the columns of ``reliability.reliability_tables.reliability_table`` for all studies.
        labels: labels of the studies, methods, metrics, models and data.
    """
    sections = []
    for description in metrics:
        rows = reliability[reliability["metric"].isin(score["name"] for score in description["scores"])]
        if description["scores_single_maps"]:  # other metrics have no entry in the variants
            rows = rows[rows["variant"].str.split(" ").str[0] == description["name"]]
        title = f"{description['label']}: reliability in this run"
        sections.append(
            {
                "name": description["name"],
                "label": description["label"],
                "summary": description["summary"],
                "details": {
                    name: value for name, value in _metric_details(description).items() if str(value)
                },
                "scores": [_score_details(score) for score in description["scores"]],
                "reliability": table_of(_reliability_columns(rows, labels), title, 2) if len(rows) else None,
            }
        )
    return render("metrics", metrics=sections)


def _metric_details(description: Description) -> dict[str, str | Code]:
    return {
        "Formula": description["formula"],
        "Source": description["reference"] if description["metric"] else Code(description["reference"]),
        "Registered metric": _registered(description["name"], description["metric"]),
        "Map reduction": Code(description["reduction"] or ""),
        "Parameters": Code(_parameter_text(description["parameters"])),
    }


def _score_details(score: Description) -> dict[str, str]:
    range_text = f"range {score['range']}" if score["range"] else ""
    details = [score["unit"], range_text, Direction(score["direction"]).phrase]
    return {"name": score["name"], "label": score["label"], "text": "; ".join(filter(None, details))}


def _reliability_columns(rows: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    verdicts = [
        f"{decides} decides" if (decides := concordance_text(row)) else alpha_words(row)  # type: ignore[arg-type]
        for row in rows.to_dict("records")  # whose keys are Hashable in the stubs
    ]
    columns = ["study", "metric", "variant", "seed", "baselines", "methods", "images"]
    columns += ["alpha", "alpha_low", "alpha_high", "correlation"]
    heads = {"metric": "score", "correlation": "mean Spearman's ρ of methods"}
    return displayed(rows[columns].assign(interpretation=verdicts), labels, heads)


def _parameter_text(parameters: Description) -> str:
    return ", ".join(f"{name}: {value}" for name, value in parameters.items() if value != "")

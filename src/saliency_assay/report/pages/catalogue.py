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
    """Return the cost of the maps of each method: ``method, model, data, device, images, seconds, passes`` (an image).

    Args:
        methods: as ``methods_page`` takes them, with ``background``, and ``base`` of those that smooth one.
        stores: ``method, model, data, batch`` of each store of maps.
        measured: ``images, seconds, device`` of each, as its job wrote them, or the jobs of its parts.
        sizes: height and width of the images of each set.
    """
    known = {facts["name"]: facts for facts in methods}
    rows = [
        {
            **{name: at[name] for name in ("method", "model", "data")},
            **{name: sum(part[name] for part in costs) for name in ("images", "seconds")},
            "device": ", ".join(dict.fromkeys(part["device"] for part in costs)),
            "passes": _passes(known[at["method"]], sizes[at["data"]], at["batch"]),
        }
        for at, costs in zip(stores, measured, strict=True)
    ]
    columns = ["method", "model", "data", "device", "images", "seconds", "passes"]
    return pd.DataFrame(rows, columns=columns)


def _passes(facts: Facts, size: tuple[int, int], batch: int) -> float:
    """Return the passes of an image; NaN where they are not known."""
    if facts["passes"] is None:
        return float("nan")
    base = _passes(facts["base"], size, batch) if "base" in facts else 1.0
    return passes(facts["passes"], Map(facts["parameters"], size, batch, base, facts["background"]))


def methods_page(methods: Sequence[Facts], costs: pd.DataFrame) -> str:
    """Return the page of methods: what each is, and what a map of it costs.

    Args:
        methods: ``name, method, summary, reference, parameters, control``, and ``signed, passes``, which are None of a
            custom method.
        costs: as ``cost_table`` gives it.
    """
    rows = [
        {
            "entry": facts["name"],
            "method": facts["method"] or "a function of the configuration",
            "what it is": facts["summary"]
            + (" (baseline: does not use the model)" if facts["control"] else ""),
            "source": facts["reference"],
            "signed": {True: "yes", False: "no", None: ""}[facts["signed"]],
            "parameters": _parameters(facts["parameters"]),
        }
        for facts in methods
    ]
    shown = costs.assign(**{"seconds an image": costs["seconds"] / costs["images"]})
    # Those of one backward pass, against which the time of the others is read.
    single = [facts["name"] for facts in methods if facts["method"] in SINGLE_PASS]
    plain = shown[shown["method"].isin(single)].groupby(["model", "data"])["seconds an image"].min()
    base = [plain.get((row.model, row.data), float("nan")) for row in shown.itertuples()]
    shown["× the plain gradient"] = shown["seconds an image"] / base
    columns = ["method", "model", "data", "device", "images", "passes", "seconds an image"]
    columns.append("× the plain gradient")
    shown = shown[columns].rename(columns={"passes": "passes an image"})
    return render(
        "methods",
        methods=table_of(pd.DataFrame(rows), "The methods of this configuration", 2),
        costs=table_of(shown, "Cost of a map", 4),
    )


def metrics_page(metrics: Sequence[Facts], reliability: pd.DataFrame) -> str:
    """Return the page of metrics: what each measures and how, which end is better, and its reliability in this run.

    Args:
        metrics: ``name, metric, summary, reference, formula, reduction, parameters, scores`` (each with ``name, label,
            direction, range``).
        reliability: ``study`` and the columns of ``reliability.tables.reliability_table``, of all studies.
    """
    shown = []
    for facts in metrics:
        rows = reliability[reliability["metric"].isin(score["name"] for score in facts["scores"])]
        if facts["judges_single_maps"]:  # else no entry is in the variants
            rows = rows[rows["variant"].str.split(" ").str[0] == facts["name"]]
        title = f"{facts['name']}: reliability found here"
        shown.append(
            {
                "name": facts["name"],
                "summary": facts["summary"],
                "facts": {name: text for name, text in _metric_facts(facts).items() if text},
                "reliability": table_of(_reliability(rows), title, 2) if len(rows) else None,
            }
        )
    return render("metrics", metrics=shown)


def _metric_facts(facts: Facts) -> dict[str, str]:
    entries = {
        "Formula": facts["formula"],
        "Source": facts["reference"],
        "Registered as": facts["metric"] if facts["metric"] != facts["name"] else "",
        "Judges": f"maps under the reduction {facts['reduction']}" if facts["reduction"] else "",
        "Parameters": _parameters(facts["parameters"]),
    }
    for score in facts["scores"]:
        ranged = f", range {score['range']}" if score["range"] else ""
        direction = directions.phrase(score["direction"])
        entries[f"Score {score['name']}"] = f"{score['label']}{ranged}; {direction}"
    return entries


def _reliability(rows: pd.DataFrame) -> pd.DataFrame:
    verdicts = [alpha_words(row) for row in rows.to_dict("records")]  # type: ignore[arg-type]  # keys are Hashable in the stubs
    columns = ["study", "metric", "variant", "seed", "controls", "methods", "images"]
    columns += ["alpha", "alpha_low", "alpha_high", "correlation"]
    shown = rows[columns].assign(so=verdicts)
    names = {
        "metric": "score",
        "alpha": "α",
        "alpha_low": "from",
        "alpha_high": "to",
        "correlation": "ρ of methods",
    }
    return shown.rename(columns=names)


def _parameters(parameters: Facts) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items())

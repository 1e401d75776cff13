"""What the methods and metrics of a configuration are: pages to look things up in."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from saliency_assay.methods.cost import passes
from saliency_assay.plotting.html import table_of
from saliency_assay.plotting.page import page
from saliency_assay.registry import directions
from saliency_assay.report.pages.words import alpha_words

Facts = Mapping[str, Any]


def cost_table(
    methods: Sequence[Facts],
    drawn: Sequence[Facts],
    measured: Sequence[Sequence[Facts]],
    sizes: Mapping[str, tuple[int, int]],
) -> pd.DataFrame:
    """What the maps of each method cost: ``method, model, data, device, images, seconds, passes`` (an image).

    Args:
        methods: as ``methods_page`` takes them, with ``background``, and ``base`` of those that smooth one.
        drawn: ``method, model, data, batch`` of each store of maps.
        measured: ``images, seconds, device`` of each, as its job wrote them, or the jobs of its parts.
        sizes: height and width of the images of each set.
    """
    known = {facts["name"]: facts for facts in methods}
    rows = [
        {
            **{name: at[name] for name in ("method", "model", "data")},
            **_summed(costs),
            "passes": _passes(known[at["method"]], sizes[at["data"]], at["batch"]),
        }
        for at, costs in zip(drawn, measured, strict=True)
    ]
    columns = ["method", "model", "data", "device", "images", "seconds", "passes"]
    return pd.DataFrame(rows, columns=columns)


def _summed(parts: Sequence[Facts]) -> dict[str, Any]:
    """The costs of all parts of one store of maps."""
    found = {name: sum(part[name] for part in parts) for name in ("images", "seconds")}
    return {**found, "device": ", ".join(dict.fromkeys(part["device"] for part in parts))}


def _passes(facts: Facts, size: tuple[int, int], batch: int) -> float:
    """NaN where they are not known."""
    base = _passes(facts["base"], size, batch) if "base" in facts else 1.0
    given = {"size": size, "batch": batch, "base": base, "background": facts["background"]}
    found = passes(facts["method"], facts["parameters"], **given)
    return float("nan") if found is None else found


def methods_page(methods: Sequence[Facts], costs: pd.DataFrame) -> str:
    """The methods: what each is, and what a map of it costs.

    Args:
        methods: ``name, method, summary, reference, parameters, signed`` (None of a user's own), ``control``.
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
    plain = shown[shown["method"].isin(_plain(methods))].groupby(["model", "data"])["seconds an image"].min()
    base = [plain.get((row.model, row.data), float("nan")) for row in shown.itertuples()]
    shown["× the plain gradient"] = shown["seconds an image"] / base
    columns = [
        "method",
        "model",
        "data",
        "device",
        "images",
        "passes",
        "seconds an image",
        "× the plain gradient",
    ]
    shown = shown[columns].rename(columns={"passes": "passes an image"})
    body = [
        "<h1>Methods</h1>",
        table_of(pd.DataFrame(rows), "The methods of this configuration", 2),
        "<h2>Cost</h2>",
        "<p>A pass is one image going forward and back through the model, or forward alone where no gradients are"
        " needed; DeepLIFT and DeepSHAP take the baseline along, two to three forward passes in each. Seconds are of"
        " drawing, without loading and storing, as measured in this run while other jobs may have run beside it; a few"
        " small images say little about a method's speed.</p>",
        table_of(shown, "Cost of a map", 4),
    ]
    return page("\n".join(body), title="Methods")


def metrics_page(metrics: Sequence[Facts], reliability: pd.DataFrame) -> str:
    """The metrics: what each measures and how, which end is better, and how reliable it was found to be here.

    Args:
        metrics: ``name, metric, summary, reference, formula, reduction, parameters, scores`` (each with ``name, label,
            direction, range``).
        reliability: ``study`` and the columns of ``reliability.tables.reliability_table``, of all studies.
    """
    body = ["<h1>Metrics</h1>"]
    for facts in metrics:
        body.append(f"<h2>{escape(facts['name'])}</h2>\n<p>{escape(facts['summary'])}.</p>\n<dl>")
        said = {
            "Formula": facts["formula"],
            "Source": facts["reference"],
            "Registered as": facts["metric"] if facts["metric"] != facts["name"] else "",
            "Judges": f"maps under the reduction {facts['reduction']}" if facts["reduction"] else "",
            "Parameters": _parameters(facts["parameters"]),
        }
        for score in facts["scores"]:
            told = f"{score['label']}, range {score['range']}" if score["range"] else score["label"]
            said[f"Score {score['name']}"] = f"{told}; {directions.phrase(score['direction'])}"
        body += [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in said.items() if text]
        body.append("</dl>")
        names = [score["name"] for score in facts["scores"]]
        found = reliability[reliability["metric"].isin(names)]
        if facts["judges_single_maps"]:  # else no entry is in the variants
            found = found[found["variant"].str.split(" ").str[0] == facts["name"]]
        if len(found):
            body.append(table_of(_reliability(found), f"{facts['name']}: reliability found here", 2))
    return page("\n".join(body), title="Metrics")


def _reliability(found: pd.DataFrame) -> pd.DataFrame:
    """The rows of one metric, to be read."""
    rows = found.to_dict("records")
    verdicts = [alpha_words(row) for row in rows]  # type: ignore[arg-type]  # keys are Hashable in the stubs
    columns = ["study", "metric", "variant", "seed", "controls", "methods", "images"]
    columns += ["alpha", "alpha_low", "alpha_high", "correlation"]
    shown = found[columns].assign(so=verdicts)
    names = {
        "metric": "score",
        "alpha": "α",
        "alpha_low": "from",
        "alpha_high": "to",
        "correlation": "ρ of methods",
    }
    return shown.rename(columns=names)


def _plain(methods: Sequence[Facts]) -> list[str]:
    """Entries of one backward pass, against which the time of the others is read."""
    return [
        facts["name"]
        for facts in methods
        if facts["method"] in ("gradient", "sensitivity", "gradient_x_input")
    ]


def _parameters(parameters: Facts) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items())

"""What a study found, from its files, for the pages that put studies into words."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from saliency_assay import store
from saliency_assay.report.bam_claims import summary as claims_summary
from saliency_assay.report.overview import StudyResult
from saliency_assay.report.tables import read_table
from saliency_assay.report.words import joined
from saliency_assay.store_parts import open_stores

TABLES = ("order", "reliability", "agreement", "consistency")


def study_result(
    facts: Mapping[str, Any],
    files: Mapping[str, Path],
    maps: Sequence[Path],
    evaluations: Mapping[str, Sequence[Path]],
) -> StudyResult:
    """A study in the form that the overview is made of.

    Args:
        facts: ``name, kind, data, models`` (``{name: {architecture, label, data}}``), ``methods, asks``, and
            ``level``, of the intervals of α.
        files: its data set, ``data``; where methods are scored ``TABLES``; where it has them ``claims``, ``leakage``.
        maps: of one method, all parts.
        evaluations: for each model the ``evaluation.json`` of every seed.
    """
    models = [
        f"{name} ({model['architecture']}, told the {model['label']}; {_accuracy(evaluations[name], model['data'])})"
        for name, model in facts["models"].items()
    ]
    return StudyResult(
        name=facts["name"],
        kind=facts["kind"],
        data=_data(facts, files["data"], maps),
        models=models,
        asks=facts["asks"],
        methods=facts["methods"],
        level=facts["level"],
        tables={name: read_table(files[name]) for name in TABLES if name in files},
        cautions=[*facts["cautions"], *_cautions(facts["kind"], files)],
    )


def _data(facts: Mapping[str, Any], path: Path, drawn: Sequence[Path]) -> str:
    with open_stores(drawn, kind="maps") as maps:
        explained = "" if facts["kind"] == "retrain" else f"; maps of {len(maps)} test images"
    with store.open_store(path, kind="data") as data:
        count, _, height, width = data["image"].shape
        classes = [f"{len(names)} {kind} classes" for kind, names in data.attributes["classes"].items()]
    kinds = ", ".join(classes).replace("class classes", "classes")
    return f"{facts['data']}: {count} images of {height} × {width} pixels, {kinds}{explained}"


def _accuracy(files: Sequence[Path], data: str) -> str:
    found = [json.loads(file.read_text(encoding="utf-8"))[data]["test"] for file in files]
    images, right = found[0]["images"], 100 * fmean(each["accuracy"] for each in found)
    seeds = f", mean of {len(files)} seeds" if len(files) > 1 else ""
    return f"{right:.1f} % of {images} test images right{seeds}"


def _cautions(kind: str, files: Mapping[str, Path]) -> list[str]:
    if "claims" in files:
        claims = read_table(files["claims"])
        return [
            f"Of the paper's claims (Yang & Kim, 2019), {claims_summary(claims)} here; the report lists each of them."
        ]
    if kind != "retrain":
        return []
    if "leakage" not in files:
        return [
            "It was not measured whether masks alone tell the class; if they do, these ranks say nothing."
        ]
    leakage = read_table(files["leakage"])
    tested = leakage[leakage["p"].notna()]
    if tested.empty:
        return [
            "Whether masks alone tell the class could not be tested; if they do, these ranks say nothing."
        ]
    leaks = tested[tested["leaks"].astype(bool)]
    if leaks.empty:
        return [
            f"In none of the {len(tested)} arms that were tested were masks alone found to tell the class."
        ]
    found = leaks.groupby("method", sort=False)["accuracy"].max()
    named = joined(f"{method} ({100 * accuracy:.0f} % right)" for method, accuracy in found.items())
    return [
        f"Masks alone tell the class for {named}, chance {100 * leaks['chance'].iloc[0]:.0f} %: accuracy may stay up by"
        " that, whatever the masks hide, so their ranks here need not be about what they mark."
    ]

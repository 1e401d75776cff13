"""Results of a study, read from its files, for the overview and the study's summary."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from saliency_assay.report.pages.overview import StudyResult
from saliency_assay.report.pages.words import joined
from saliency_assay.storage import zarr_store
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.parts import open_stores
from saliency_assay.studies.bam.claims import summary as claims_summary

TABLES = ("order", "reliability", "rankings", "agreement")


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
    with zarr_store.open_store(path, kind="data") as data:
        count, _, height, width = data["image"].shape
        classes = [f"{len(names)} {kind} classes" for kind, names in data.attributes["classes"].items()]
    kinds = ", ".join(classes).replace("class classes", "classes")
    return f"{facts['data']}: {count} images of {height} × {width} pixels, {kinds}{explained}"


def _accuracy(files: Sequence[Path], data: str) -> str:
    evaluations = [json.loads(file.read_text(encoding="utf-8"))[data]["test"] for file in files]
    images, right = evaluations[0]["images"], 100 * fmean(each["accuracy"] for each in evaluations)
    seeds = f", mean of {len(files)} seeds" if len(files) > 1 else ""
    return f"{right:.1f} % of {images} test images right{seeds}"


def _cautions(kind: str, files: Mapping[str, Path]) -> list[str]:
    cautions = [claims_words(read_table(files["claims"]))] if "claims" in files else []
    if kind == "retrain":
        cautions.append(leakage_words(read_table(files["leakage"]) if "leakage" in files else None))
    return cautions


def claims_words(claims: pd.DataFrame) -> str:
    """Return how many of the claims of Yang & Kim (2019) hold: for every study that has a table of them."""
    return f"Of the paper's claims (Yang & Kim, 2019), {claims_summary(claims)} here; the report lists each of them."


def leakage_words(leakage: pd.DataFrame | None) -> str:
    """Return whether masks alone predict the class, so that the ranks of a retrain study need not be about saliency.

    - There is no table, or no arm was tested (``p`` is NaN): unknown.
    - No arm has ``leaks``: no leakage was detected, which does not exclude it.
    - Otherwise the methods with such an arm are named, with their greatest accuracy.
    """
    risk = "if masks alone predict the class, these ranks say nothing about saliency"
    if leakage is None:
        return f"Mask leakage was not measured; {risk}."
    tested = leakage[leakage["p"].notna()]
    if tested.empty:
        return f"Mask leakage could not be tested; {risk}."
    leaks = tested[tested["leaks"].astype(bool)]
    if leaks.empty:
        return f"No mask leakage was detected in any tested arm ({len(tested)})."
    greatest = leaks.groupby("method", sort=False)["accuracy"].max()
    named = joined(f"{method} ({100 * accuracy:.0f} % accuracy)" for method, accuracy in greatest.items())
    chance = f"chance {100 * leaks['chance'].iloc[0]:.0f} %"
    return (
        f"Masks alone predict the class for {named}, {chance}: accuracy may stay high whatever the masks occlude, so"
        " the ranks of these methods need not be about the pixels they mark."
    )

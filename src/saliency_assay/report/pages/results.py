"""Reader of a study's results for the overview and the study's summary page."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from saliency_assay.plotting.text import Answer, groups_text
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.records import resolve
from saliency_assay.reliability.chance import Evaluation, chance_caution, count_text
from saliency_assay.reliability.controls import TEXTS
from saliency_assay.reliability.evidence import evidence_table
from saliency_assay.reliability.rated_scores import groups_of
from saliency_assay.report.pages.study import StudyResult
from saliency_assay.report.pages.words import sweep_words
from saliency_assay.storage import zarr_store
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.shards import open_stores

TABLES = ("order", "pairs", "reliability", "rankings", "agreement", "controls")
METHODS = (
    ("order", "method"),
    ("order", "lead_over"),
    ("pairs", "method"),
    ("pairs", "other"),
    ("controls", "method"),
)
"""Columns of names of methods, which become their labels."""


def study_result(
    facts: Mapping[str, Any],
    files: Mapping[str, Path],
    maps: Sequence[Path],
    evaluations: Mapping[str, Sequence[Path]],
) -> StudyResult:
    """Read the results of a study for the overview and its summary page.

    Args:
        facts: ``name, label, page, labels, data, models`` (``{name: {label, architecture, trained_on, data}}``),
            ``methods, reference_colors, score_summaries, measured, references, level`` (of the intervals of α), and
            from its kind ``question, variants, explains_all_images, answer, cautions, notes``.
        files: ``data``, the data set; ``TABLES``, if methods are scored; ``thumbnails``, if the page shows images; and
            the tables that ``answer``, ``cautions`` and ``notes`` take.
        maps: all shards of the maps of one method.
        evaluations: for each model the ``evaluation.json`` files of all seeds.
    """
    labels = Labels(**facts["labels"])
    models, accuracies, at_chance = [], [], []
    for name, model in facts["models"].items():
        splits = [json.loads(file.read_text(encoding="utf-8"))[model["data"]] for file in evaluations[name]]
        models.append(_model_text(model, splits))
        accuracies.append(f"{model['label']} {_accuracy(splits):.1f} %")
        at_chance.append(chance_caution(model["label"], [split["test"] for split in splits]))
    tables = {name: read_table(files[name], "other", *TEXTS) for name in TABLES if name in files}
    if "order" in tables:
        for name, column in METHODS:
            tables[name][column] = tables[name][column].map(labels.method, na_action="ignore")
        if not facts["trains"]:
            tables["order"]["seeds"] = 1
    return StudyResult(
        name=facts["name"],
        label=facts["label"],
        page=facts["page"],
        labels=labels,
        question=facts["question"],
        variants=facts["variants"],
        data=_data_text(facts, labels.data_set(facts["data"]), files["data"], maps),
        models=models,
        accuracies=accuracies,
        score_summaries=facts["score_summaries"],
        measured=facts["measured"],
        methods=list(map(labels.method, facts["methods"])),
        level=facts["level"],
        tables=tables,
        reference_colors={
            labels.method(method): color for method, color in facts["reference_colors"].items()
        },
        kind_answers=_read_answers(facts["answer"], files, labels),
        cautions=_read_sentences(facts["cautions"], files, labels),
        notes=[
            *sweep_words(tables.get("order")),
            *facts["references"],
            *_read_sentences(facts["notes"], files, labels),
        ],
        at_chance=list(filter(None, at_chance)),
        thumbnails=json.loads(files["thumbnails"].read_bytes()) if "thumbnails" in files else {},
    )


def evidence_of(
    studies: Iterable[tuple[Mapping[str, Any], StudyResult]],
    entries: Iterable[str],
    task_agreement: str,
    *,
    failed: Container[Path] = (),
) -> pd.DataFrame:
    """Read the evidence on all metrics that score single maps, see ``reliability.evidence.evidence_table``.

    Studies with a model that is not shown to be better than chance are left out.

    Args:
        studies: for each study its facts, with ``evidence``, the files of tables by name, and its result.
        entries: names of the metrics of single maps.
        task_agreement: the table of the agreement of tasks; empty if no tasks are compared.
        failed: files that were not computed.
    """
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    measured: dict[str, str] = {}
    for facts, result in studies:
        measured |= result.measured
        if not result.at_chance:
            files = {name: Path(path) for name, path in facts["evidence"].items()}
            tables[result.name] = {
                name: read_table(path, *TEXTS) for name, path in files.items() if path not in failed
            }
    has_tasks = task_agreement and Path(task_agreement) not in failed
    agreement = read_table(Path(task_agreement), "task", "other") if has_tasks else None
    return evidence_table(tables, agreement, measured, entries)


def _data_text(facts: Mapping[str, Any], label: str, path: Path, shards: Sequence[Path]) -> str:
    explained = ""
    with zarr_store.open_store(path, kind="data") as data:
        count, _, height, width = data["image"].shape
        classes = [f"{len(names)} {kind} classes" for kind, names in data.attributes["classes"].items()]
        groups = groups_of(data)
    if shards and not facts["explains_all_images"]:  # no maps if those of the method failed
        with open_stores(shards, kind="maps") as maps:
            of_maps = () if groups is None else [len(np.unique(groups[maps["image"][:]]))]
            explained = f"; maps for {len(maps)} test images{groups_text(of_maps)}"
    kinds = ", ".join(classes).replace("class classes", "classes")
    in_groups = "" if groups is None else f"{len(np.unique(groups)):,} groups, "
    return f"{label}: {count:,} images of {height} × {width} pixels, {in_groups}{kinds}{explained}"


def _model_text(model: Mapping[str, Any], splits: Sequence[Mapping[str, Evaluation]]) -> str:
    trained = f" of {splits[0]['train']['images']:,} images" if "train" in splits[0] else ""
    origin = f"trained on the {model['trained_on']} labels{trained}"
    if model.get("is_designed"):
        origin = "weights set by hand"
    tested = splits[0]["test"]
    accuracy = _accuracy(splits)
    seeds = f", mean of {len(splits)} seeds" if len(splits) > 1 else ""
    return (
        f"{model['label']}: {model['architecture']}, {origin}; "
        f"test accuracy {accuracy:.1f} % on {tested['images']:,} images{count_text(tested)}{seeds}"
    )


def _accuracy(splits: Sequence[Mapping[str, Evaluation]]) -> float:
    return 100 * fmean(split["test"]["accuracy"] for split in splits)


def _read_sentences(function: str, files: Mapping[str, Path], labels: Labels) -> list[str]:
    if not function or "order" not in files:  # no method is scored
        return []
    sentences: list[str] = resolve(function)(_kind_tables(files), labels)
    return sentences


def _read_answers(function: str, files: Mapping[str, Path], labels: Labels) -> list[Answer]:
    tables = _kind_tables(files) if function else {}
    if not tables or any(table.empty for table in tables.values()):  # no method is scored
        return []
    lines: list[Answer] = resolve(function)(tables, labels)
    return lines


def _kind_tables(files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    return {
        name: read_table(path, "used")
        for name, path in files.items()
        if name not in ("data", "thumbnails", *TABLES)
    }

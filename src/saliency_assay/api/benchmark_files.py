"""Files of a benchmark: a score table and Zarr stores in the formats of the workflow, and its settings in JSON."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from saliency_assay.api.results import (
    STUDY,
    Benchmark,
    Cell,
    CellKey,
    Failure,
    MethodEntry,
    MetricEntry,
    Moments,
)
from saliency_assay.data.splits import TEST
from saliency_assay.registry.sweeps import Member
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import digest_of_file
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage import GROUP, score_tables, zarr_store

FORMAT = 1
SCORES, CURVES, FACTS = "scores.parquet", "curves.npz", "benchmark.json"
IMAGES, MAPS = "images.zarr.zip", "maps/seed{seed}/{method}.zarr.zip"
PENDING, RESPONSES = "pending.zarr.zip", "responses.npz"
"""Names of the files; those of images and maps are Zarr stores. The last two are maps and model responses of images
whose scores are not complete."""
OF_CELL = ["image", "metric", "variant", "score"]


def is_saved(folder: Path) -> bool:
    """Return True if a benchmark is saved in ``folder``."""
    return (folder / FACTS).is_file()


def check_folder(folder: Path) -> None:
    """Check that a benchmark can be saved in ``folder``, and create it.

    Raises:
        ValueError: it is a file, or a folder with other content.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"path: found the file {folder}, expected a folder")
    if folder.is_dir() and any(folder.iterdir()) and not is_saved(folder):
        raise ValueError(f"path: found the folder {folder} with other files, expected a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True)


def check_inputs(saved: Sequence[str], inputs: Sequence[str], folder: Path) -> None:
    """Check that saved results are those of the same images and model, by the digests of their first images.

    Raises:
        ValueError: they are others.
    """
    # There is none if a run was interrupted before the first image, and an empty one of earlier versions.
    if saved[:1] not in ([], [""]) and inputs and saved[0] != inputs[0]:
        raise ValueError(
            f"path: found results of other images, targets, masks, groups, weights or names in {folder}, expected "
            "those of the same, or a new folder"
        )


def save(result: Benchmark, folder: Path) -> None:
    """Save a benchmark in ``folder``; each file is written atomically.

    Raises:
        ValueError: see ``check_folder`` and ``check_inputs``.
    """
    check_folder(folder)
    if is_saved(folder):
        check_inputs(_facts(folder)["inputs"], result.inputs, folder)
    save_scores(result, folder)
    if result.pixels is not None:
        _save_maps(result, folder, result.pixels)
    if result.pending is None:
        (folder / PENDING).unlink(missing_ok=True)
    else:
        identity, maps = result.pending
        zarr_store.write(folder / PENDING, [{"map": maps}], kind="pending", attributes={"identity": identity})
    if not result.responses:
        (folder / RESPONSES).unlink(missing_ok=True)
    else:
        _write_arrays(
            folder / RESPONSES,
            {
                json.dumps([identity, name]): values
                for identity, arrays in result.responses.items()
                for name, values in arrays.items()
            },
        )


def save_scores(result: Benchmark, folder: Path) -> None:
    """Save scores, curves and settings, but no images and maps.

    Settings are written last, with digests of the other files: after an interruption in between, ``load`` does not take
    new scores for those of the old settings.
    """
    tables = [cell.table.assign(method=key.method, seed=key.seed) for key, cell in result.cells.items()]
    table = pd.concat(tables or [pd.DataFrame(columns=[*OF_CELL, "method", "seed"])], ignore_index=True)
    table = table.assign(study=STUDY, data=result.data, model=result.model)
    if GROUP in result.image_rows:
        table[GROUP] = np.asarray(result.image_rows[GROUP])[table["image"].astype(np.int64)]
    score_tables.write(folder / SCORES, table)
    curves = {
        json.dumps([*key, name]): np.stack(astuple(moments))
        for key, cell in result.cells.items()
        for name, moments in cell.curves.items()
    }
    _write_arrays(folder / CURVES, curves)
    facts = {
        "format": FORMAT,
        "files": {name: digest_of_file(folder / name) for name in (SCORES, CURVES)},
        **{name: getattr(result, name) for name in ("model", "data", "seeds", "keep", "complete", "inputs")},
        "methods": [asdict(each) for each in result.methods],
        "metrics": [asdict(each) for each in result.metrics],
        "failures": [asdict(each) for each in result.failures_found],
        "images": result.image_rows,
        "cells": [
            [*key, cell.inputs, cell.method, cell.metric, cell.causes] for key, cell in result.cells.items()
        ],
    }
    with replacing(folder / FACTS) as temporary:
        temporary.write_text(json.dumps(facts), encoding="utf-8")


def _write_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # a stub takes them for another argument


def _read_arrays(path: Path) -> dict[tuple[Any, ...], np.ndarray[Any, Any]]:
    """Return the arrays in ``path`` by their names, which are lists in JSON."""
    try:
        with np.load(path) as archive:
            return {tuple(json.loads(name)): archive[name] for name in archive.files}
    except (OSError, ValueError, TypeError, BadZipFile) as error:
        raise ValueError(f"{path}: is missing or damaged: {error}") from None


def load(folder: Path) -> Benchmark:
    """Load the benchmark in ``folder``.

    Raises:
        ValueError: there is none, or a file is damaged or of another version.
    """
    file = folder / FACTS
    if not file.is_file():
        raise ValueError(f"{folder}: found no {FACTS}, expected a folder in which a benchmark was saved")
    try:
        facts = _facts(folder)
        result = Benchmark(
            facts["model"],
            facts["data"],
            methods=[MethodEntry(**{**each, "member": _member(each)}) for each in facts["methods"]],
            metrics=[_metric_entry(each) for each in facts["metrics"]],
            failures_found=[Failure(**each) for each in facts["failures"]],
            seeds=facts["seeds"],
            keep=facts["keep"],
            complete=facts["complete"],
        )
        result.image_rows, result.inputs = facts["images"], facts["inputs"]
        digests = {CellKey(*each[:4]): each[4:] for each in facts["cells"]}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file}: is damaged: {type(error).__name__}: {error}") from None
    # Earlier versions have saved no digests.
    saved = {name: text for name, text in facts.get("files", {}).items() if (folder / name).is_file()}
    if changed := [name for name, text in saved.items() if digest_of_file(folder / name) != text]:
        warnings.warn(
            f"{folder}: found {' and '.join(changed)} of another save than {FACTS}, as after an interruption; these "
            "scores are ignored",
            stacklevel=3,
        )
        digests = {}
    tables, curves = (_tables(folder), _curves(folder)) if digests else ({}, {})
    for key, of_cell in digests.items():
        if key in tables:
            result.cells[key] = Cell(tables[key], curves.get(key, {}), *of_cell)
    _load_maps(result, folder)
    return result


def _facts(folder: Path) -> dict[str, Any]:
    """Return the settings in the folder of a benchmark.

    Raises:
        ValueError: they are damaged or of another version.
    """
    file = folder / FACTS
    try:
        facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise ValueError(f"{file}: found format {facts['format']}, expected {FORMAT}")
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file}: is damaged: {type(error).__name__}: {error}") from None
    return facts


def _metric_entry(facts: Mapping[str, Any]) -> MetricEntry:
    ranges = {score: (float(low), float(high)) for score, (low, high) in facts["ranges"].items()}
    return MetricEntry(**{**facts, "ranges": ranges, "member": _member(facts)})


def _member(facts: Mapping[str, Any]) -> Member | None:
    """Return the membership of a method or metric in a family; earlier versions have saved none."""
    return Member(**facts["member"]) if facts.get("member") else None


def _tables(folder: Path) -> dict[CellKey, pd.DataFrame]:
    table = score_tables.read([folder / SCORES])
    entry, block = table["variant"].str.partition(" ")[0], table["image"] // BLOCK
    keys = zip(table["seed"], table["method"], entry, block, strict=True)
    rows: dict[CellKey, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(CellKey(*key), []).append(row)
    return {key: table[OF_CELL].iloc[of_cell].reset_index(drop=True) for key, of_cell in rows.items()}


def _curves(folder: Path) -> dict[CellKey, dict[str, Moments]]:
    curves: dict[CellKey, dict[str, Moments]] = {}
    for (*key, curve), values in _read_arrays(folder / CURVES).items():
        curves.setdefault(CellKey(*key), {})[curve] = Moments(*values)
    return curves


def _save_maps(result: Benchmark, folder: Path, pixels: np.ndarray[Any, Any]) -> None:
    targets = np.asarray(result.image_rows["target"][: len(pixels)], dtype=np.int64)
    arrays = {"image": pixels, "label_class": targets, "split": np.full(len(pixels), TEST, dtype=np.uint8)}
    arrays |= {} if result.mask is None else {"mask": result.mask}
    classes = {"class": [str(number) for number in range(int(targets.max()) + 1)]}
    zarr_store.write(folder / IMAGES, [arrays], kind="data", attributes={"classes": classes})
    for (seed, method), maps in result.maps.items():
        rows = {"image": np.arange(len(maps)), "target": targets[: len(maps)], "map": maps}
        attributes = {"digests": result.map_digests[seed, method]}
        file = folder / MAPS.format(seed=seed, method=method)
        zarr_store.write(file, [rows], kind="maps", attributes=attributes)


def _load_maps(result: Benchmark, folder: Path) -> None:
    """Load images, maps, and what was computed for incomplete scores."""
    if (folder / IMAGES).is_file():
        with zarr_store.open_store(folder / IMAGES, kind="data") as data:
            result.pixels = data["image"][:]
            result.mask = data["mask"][:] if "mask" in data.names else None
    for seed in result.seeds:
        for method in result.methods:
            file = folder / MAPS.format(seed=seed, method=method.name)
            if file.is_file():
                with zarr_store.open_store(file, kind="maps") as maps:
                    result.maps[seed, method.name] = maps["map"][:]
                    result.map_digests[seed, method.name] = list(maps.attributes["digests"])
    if (folder / PENDING).is_file():
        with zarr_store.open_store(folder / PENDING, kind="pending") as store:
            result.pending = (str(store.attributes["identity"]), store["map"][:])
    if (folder / RESPONSES).is_file():
        for (identity, name), values in _read_arrays(folder / RESPONSES).items():
            result.responses.setdefault(identity, {})[name] = values

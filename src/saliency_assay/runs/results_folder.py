"""A results folder, or a folder in which a benchmark of the Python API was saved, and what its files record."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text
from saliency_assay.runtime import failure
from saliency_assay.runtime.shards import BLOCK
from saliency_assay.storage import csv_tables, score_tables
from saliency_assay.storage.zarr_store import open_store

CONFIGURATION, BENCHMARK = "configuration.yaml", "benchmark.json"
PARTS_OF_RUN = ("scores", "maps", "tables", "data")
"""Folders of which a results folder has at least one."""
FACTS = ("model", "data", "seeds", "methods", "metrics")
"""Keys of a saved benchmark that count as its configuration."""
RECORDED = ("inputs", "cells", "failures", "images")
"""Its other keys that are read."""
USER_FILES = Path(".state/digests.json")


class RunError(ValueError):
    """Error for a folder that is no results folder, or for a file in it. The message is one line."""


@dataclass(frozen=True)
class BenchmarkFacts:
    """Content of ``benchmark.json`` beside the configuration."""

    directions: dict[str, str]
    """Directions of its scores."""
    failures: dict[str, str]
    """Errors by the names of a method and of the metric that failed."""
    images: int
    """Number of images."""
    inputs: list[str]
    """For each block of images a digest of images, targets and weights; empty if it was saved without."""
    digests: dict[str, set[str]]
    """Digests of settings and code of each method and metric, such as ``metric deletion``."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "BenchmarkFacts":
        """Return the facts in the content of a file; exceptions are those of wrong types and missing keys."""
        digests: dict[str, set[str]] = {}
        for _, method, metric, _, _, of_method, of_metric, _ in facts["cells"]:
            for name, digest in ((f"method {method}", of_method), (f"metric {metric}", of_metric)):
                digests.setdefault(name, set()).update({digest} - {""})
        images, inputs = len(facts["images"].get("target", ())), list(map(str, facts["inputs"]))
        if len(inputs) != ceil(images / BLOCK):
            raise ValueError(f"found {len(inputs)} inputs of {images} images")
        return cls(
            {name: str(text) for each in facts["metrics"] for name, text in each["directions"].items()},
            {
                ", ".join(filter(None, (each["method"], each["metric"]))): str(each["error"])
                for each in facts["failures"]
            },
            images,
            inputs,
            digests,
        )


@dataclass(frozen=True)
class Results:
    """A results folder; all paths of its files are relative to ``folder``, with ``/``."""

    folder: Path
    configuration: Mapping[str, Any]
    """Content of ``configuration.yaml``, which is written with the report; empty without it."""
    benchmark: BenchmarkFacts | None = None
    """For a saved benchmark what else its file records."""

    @property
    def is_benchmark(self) -> bool:
        """True if it is a saved benchmark."""
        return self.benchmark is not None

    @cached_property
    def score_files(self) -> list[str]:
        """Paths of the score tables, without those that record a failure."""
        return [file for file in self._score_files() if file not in self.failures]

    @cached_property
    def failures(self) -> dict[str, str]:
        """Error lines of the methods and metrics that failed, by the path of a table or store, or by their names."""
        files = [*self._score_files(), *self._stores("maps")]
        recorded = ((file, failure.read(self.folder / file)) for file in files)
        failures = {file: found.reason for file, found in recorded if found}
        return failures | (self.benchmark.failures if self.benchmark else {})

    @cached_property
    def maps(self) -> dict[str, dict[str, Any]]:
        """Attributes of the stores of maps by path."""
        files = [file for file in self._stores("maps") if file not in self.failures]
        return {file: _attributes(self.folder / file, "maps") for file in files}

    @cached_property
    def data_files(self) -> dict[str, Path]:
        """Stores of the data sets by name."""
        if self.is_benchmark:
            file = self.folder / "images.zarr.zip"
            return {str(self.configuration["data"]): file} if file.is_file() else {}
        return {
            Path(file).name.removesuffix(".zarr.zip"): self.folder / file for file in self._stores("data")
        }

    @cached_property
    def data(self) -> dict[str, dict[str, Any]]:
        """Attributes of the data sets by name."""
        return {name: _attributes(file, "data") for name, file in self.data_files.items()}

    @cached_property
    def orders(self) -> dict[str, pd.DataFrame]:
        """For each study with ranks its table ``order.csv``."""
        files = sorted(self.folder.glob("tables/*/order.csv"))
        return {file.parent.name: _order(file) for file in files if failure.read(file) is None}

    @cached_property
    def directions(self) -> dict[str, str]:
        """Directions of the scores that rate methods."""
        if self.benchmark:
            return self.benchmark.directions
        pairs = (table[["metric", "direction"]].itertuples(index=False) for table in self.orders.values())
        return {str(metric): str(direction) for of_study in pairs for metric, direction in of_study}

    @cached_property
    def versions(self) -> dict[str, set[str]]:
        """Versions of the packages and of this project in all stores and score tables, and the devices of the maps."""
        versions: dict[str, set[str]] = {}
        stores = [*self.maps.values(), *self.data.values()]
        recorded: list[Mapping[str, str]] = [store["libraries"] for store in stores]
        recorded += [{"saliency-assay": store["version"]} for store in stores]
        recorded += [{"device of the maps": store["device"]} for store in stores if "device" in store]
        recorded += [score_tables.libraries_in(self.folder / file) for file in self.score_files]
        for libraries in recorded:
            for name, version in libraries.items():
                versions.setdefault(name, set()).add(version)
        return versions

    @cached_property
    def user_files(self) -> dict[str, str]:
        """Digests of the user's files by path, as far as they are known."""
        known = read_json(self.folder / USER_FILES)
        return {path: str(entry["digest"]) for path, entry in known.items() if "digest" in entry}

    def _score_files(self) -> Iterator[str]:
        if self.is_benchmark:
            yield "scores.parquet"
        yield from files_below(self.folder, "scores", ".parquet")

    def _stores(self, name: str) -> list[str]:
        return list(files_below(self.folder, name, ".zarr.zip"))


def open_results(folder: Path) -> Results:
    """Return the results in ``folder``.

    Raises:
        RunError: it does not exist, is neither a results folder nor one of a saved benchmark, or ``benchmark.json`` is
            damaged.
    """
    if not folder.is_dir():
        raise RunError(f"{folder}: found no folder, expected a results folder")
    if (folder / BENCHMARK).is_file():
        file = folder / BENCHMARK
        facts = read_json(file)
        if missing := {*FACTS, *RECORDED}.difference(facts):
            raise RunError(f"{file}: found no {', '.join(sorted(missing))}; is it damaged?")
        try:
            benchmark = BenchmarkFacts.of(facts)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{file}: is damaged: {type(error).__name__}: {error}") from None
        return Results(folder, {name: facts[name] for name in FACTS}, benchmark)
    if not any((folder / name).is_dir() for name in PARTS_OF_RUN):
        expected = f"a results folder, with {', '.join(PARTS_OF_RUN)}, or one with {BENCHMARK}"
        raise RunError(f"{folder}: found none of its folders, expected {expected}")
    return Results(folder, read_configuration(folder / CONFIGURATION))


def read_configuration(file: Path) -> dict[str, Any]:
    """Return the content of a configuration file; empty if there is none.

    Raises:
        RunError: it is not valid YAML.
    """
    if not file.is_file():
        return {}
    try:
        check_text(file, str(file))
    except ConfigError as error:
        raise RunError(str(error)) from None
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def read_json(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no file.

    Raises:
        RunError: it is not JSON, or no object.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: not JSON ({error})") from None
    if not isinstance(content, dict):
        raise RunError(f"{file}: found {type(content).__name__}, expected a JSON object")
    return content


def files_below(folder: Path, name: str = ".", suffix: str = "") -> Iterator[str]:
    """Yield the paths of the files below ``folder / name``, relative to ``folder``, without hidden ones."""
    for file in sorted((folder / name).rglob(f"*{suffix}")):
        path = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") for part in path.parts):
            yield path.as_posix()


def _attributes(file: Path, kind: str) -> dict[str, Any]:
    with open_store(file, kind=kind) as store:
        return store.attributes


def _order(file: Path) -> pd.DataFrame:
    """Return a table ``order.csv``.

    Raises:
        RunError: it has other columns, as of another version.
    """
    try:
        table = csv_tables.read_table(file)
    except ValueError as error:
        raise RunError(f"{file}: not a table ({error})") from None
    columns = {"metric", "variant", "direction", "data", "model", "method", "over", "mean", "win_rate"}
    columns |= {"rank_low", "rank_high", "ranked_by"}
    if missing := columns.difference(table):
        raise RunError(f"{file}: found no column {', '.join(sorted(missing))}; is it of another version?")
    return table

"""Scores of methods on a task of the suite, and their storage."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from saliency_assay.api.benchmark import benchmark
from saliency_assay.api.derived import randomize
from saliency_assay.api.identity import identity_of, identity_of_record, model_digest
from saliency_assay.api.maps import attribute
from saliency_assay.api.results import Benchmark, Cell, CellKey, Failure, MethodEntry, MetricEntry
from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import logits
from saliency_assay.registry.aliases import registered_name
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import versions_of
from saliency_assay.runtime.provenance import fingerprint
from saliency_assay.suite import VERSION
from saliency_assay.suite.tasks import ASSETS, SEEDS, Ints, Settings, Task, TaskImages

KEPT = 8
"""Images whose maps are kept in the folder of the results."""
COLUMNS = ["method", "metric", "variant", "seed", "image", "score"]
PACKAGES = ("numpy", "scipy", "skimage", "timm", "torch")
"""Packages on whose versions scores depend."""


@dataclass
class TaskScores:
    """Scores of methods on a task, with what identifies them."""

    task: str
    suite: str
    images: str
    """Digest of the images, see ``TaskImages.digest``."""
    model: str
    """Digest of the network."""
    versions: dict[str, str]
    """Versions of packages."""
    methods: list[MethodEntry]
    metrics: list[MetricEntry]
    targets: list[int]
    settings: dict[str, dict[str, Any]]
    """Parameters of each method by name."""
    code: dict[str, str]
    """Digest of the code of each method, and of each metric as ``metric NAME``."""
    known_order: list[dict[str, Any]] = field(default_factory=list)
    """Agreement of each score with the known order of degraded maps: ``metric, variant, micro, micro_low, micro_high``,
    see ``studies.validity.known_order``; empty except in the reference."""
    failures: list[Failure] = field(default_factory=list)
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=COLUMNS))
    """Rows of ``method, metric, variant, seed, image, score`` (float32)."""

    def benchmark(self) -> Benchmark:
        """Return the scores as a benchmark, in which a score is the mean of all seeds."""
        result = Benchmark(
            self.task, f"suite {self.suite}", self.methods, self.metrics, [SEEDS[0]], complete=True
        )
        count = len(self.targets)
        result.image_rows = {"image": [*range(count)], "source": [*range(count)], "target": self.targets}
        result.failures_found = list(self.failures)
        keys = ["method", "metric", "variant", "image"]
        means = self.table.groupby(keys, sort=False, observed=True)["score"].mean().reset_index()
        # Equal methods must tie, whatever the rounding of the stored scores.
        means["score"] = means["score"].astype(np.float32).astype(np.float64)
        entry = means["variant"].astype(str).str.partition(" ")[0]
        for (method, metric), rows in means.groupby([means["method"], entry], sort=False, observed=True):
            cell = rows[["image", "metric", "variant", "score"]].reset_index(drop=True)
            cell[["metric", "variant"]] = cell[["metric", "variant"]].astype(str)
            result.cells[CellKey(SEEDS[0], str(method), str(metric), 0)] = Cell(cell, {}, "", "", "")
        return result

    def check_inputs(self, loaded: "LoadedTask") -> None:
        """Check that images and network are those of the scores.

        Raises:
            ValueError: they are not.
        """
        for name, digest, remedy in (
            ("images", loaded.images.digest(), "the data are another version"),
            (
                "model",
                model_digest(loaded.model, with_code=False),
                "the weights or the layers of the network are others",
            ),
        ):
            if digest != getattr(self, name):
                raise ValueError(
                    f"{self.task}: {name}: found {digest[:12]}, expected {getattr(self, name)[:12]}; {remedy}"
                )

    def check_new(self, name: str, label: str) -> None:
        """Check that no method has the name or the label.

        Raises:
            ValueError: one has.
        """
        for key, text in (("name", name), ("label", label)):
            if any(getattr(each, key) == text for each in self.methods):
                raise ValueError(f"{key}: found {text!r}, which the reference has; choose another --{key}")

    def joined(self, other: "TaskScores") -> "TaskScores":
        """Return these scores and those of the methods of ``other``.

        Raises:
            ValueError: the scores are of other images, another network or another version of the suite, or a method has
                the name or the label of another one.
        """
        for name in ("suite", "task", "images", "model"):
            one, two = getattr(self, name), getattr(other, name)
            if one != two:
                raise ValueError(
                    f"{self.task}: found scores of another {name}, {two[:12]}, expected {one[:12]}"
                )
        for each in other.methods:
            self.check_new(each.name, each.label)
        names = {each.name for each in other.methods}
        entered = other.table[other.table["method"].isin(names)]
        return replace(
            self,
            methods=self.methods + other.methods,
            settings=self.settings | {name: other.settings.get(name, {}) for name in names},
            failures=self.failures + [each for each in other.failures if each.method in names],
            table=pd.concat([self.table, entered], ignore_index=True),
        )

    def save(self, folder: Path) -> None:
        """Write ``TASK.json`` and ``TASK.parquet``."""
        folder.mkdir(parents=True, exist_ok=True)
        compact = self.table.astype({"method": "category", "metric": "category", "variant": "category"})
        compact = compact.astype({"seed": np.int8, "image": np.int16, "score": np.float32})
        with replacing(folder / f"{self.task}.parquet") as temporary:
            compact[COLUMNS].to_parquet(temporary, index=False, compression="zstd")
        facts = {name: value for name, value in asdict(self).items() if name != "table"}
        with replacing(folder / f"{self.task}.json") as temporary:
            temporary.write_text(json.dumps(facts, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, task: str) -> "TaskScores":
        """Read what ``save`` has written.

        Raises:
            ValueError: a file is missing or damaged.
        """
        try:
            facts = json.loads((folder / f"{task}.json").read_text(encoding="utf-8"))
            facts["methods"] = [MethodEntry(**each) for each in facts["methods"]]
            facts["metrics"] = [
                MetricEntry(
                    **{**each, "ranges": {name: tuple(ends) for name, ends in each["ranges"].items()}}
                )
                for each in facts["metrics"]
            ]
            facts["failures"] = [Failure(**each) for each in facts["failures"]]
            table = pd.read_parquet(folder / f"{task}.parquet", columns=COLUMNS)
            return cls(**facts, table=table)
        except FileNotFoundError as error:
            raise ValueError(f"{task}: found no {error.filename}, expected scores of this task") from None
        except Exception as error:  # of JSON, Parquet, or fields
            raise ValueError(f"{folder / task}: is damaged: {type(error).__name__}: {error}") from None


def reference(task: str) -> TaskScores:
    """Return the reference scores of a task."""
    return TaskScores.load(ASSETS / VERSION, task)


@dataclass(frozen=True)
class LoadedTask:
    """A task with its network and images in memory."""

    task: Task
    model: Classifier
    images: TaskImages
    targets: Ints
    """Predicted classes ``[N]``, which are explained."""

    @classmethod
    def load(cls, task: Task, data: Path) -> "LoadedTask":
        """Load network and images of a task from the package and the folder ``data``.

        Raises:
            MissingData: images or weights are not there.
        """
        images, model = task.load_images(data), task.load_model(data)
        targets = logits(model, torch.from_numpy(images.pixels), batch_size=64).argmax(1).numpy()
        return cls(task, model, images, targets)

    @property
    def data(self) -> tuple[torch.Tensor, Ints, Any]:
        """Images ``[N, C, H, W]``, targets, and masks of the objects if there are any, as ``benchmark`` takes them."""
        return torch.from_numpy(self.images.pixels), self.targets, self.images.mask

    def benchmark(
        self,
        methods: Mapping[str, Mapping[str, Any]],
        path: Path,
        *,
        metrics: Settings | None = None,
        seeds: Sequence[int] = SEEDS[:1],
        progress: bool = True,
    ) -> Benchmark:
        """Return ``saliency_assay.benchmark`` of methods on the task, which continues from results in ``path``.

        Raises:
            KeyboardInterrupt: Ctrl-C, after what is complete was saved.
        """
        with warnings.catch_warnings():  # failures are part of the result
            warnings.simplefilter("ignore")
            result = benchmark(
                self.model,
                self.data,
                methods,
                self.task.metrics if metrics is None else metrics,
                seeds=seeds,
                background=self.images.background,
                randomized_model=randomize(self.model),
                path=path,
                keep=KEPT,
                progress=progress,
                model_name=self.task.name,
                data_name="suite",
            )
        if not result.complete:
            raise KeyboardInterrupt
        return result

    def is_random(self, name: str, entry: Mapping[str, Any]) -> bool:
        """Return True if a method uses random numbers; a custom one, if two seeds give other maps of two images."""
        function = _registered(entry.get("method", name))
        for record in METHODS:
            if record.name == function:
                return bool(record.stochastic)
        settings = {key: value for key, value in entry.items() if key not in ("method", "label")}
        try:
            takes = signature(resolve(function) if isinstance(function, str) else function).parameters
            if "background" in takes:
                settings.setdefault("background", self.images.background)
            first, second = (
                attribute(
                    function, self.model, self.images.pixels[:2], self.targets[:2], seed=seed, **settings
                )
                for seed in SEEDS[:2]
            )
        except Exception:  # which ``benchmark`` records as a failure
            return False
        return not np.array_equal(first, second)


def score(
    loaded: LoadedTask,
    methods: Mapping[str, Mapping[str, Any]],
    folder: Path,
    *,
    metrics: Settings | None = None,
    progress: bool = True,
) -> TaskScores:
    """Compute the scores of methods on a task: those with random numbers under three seeds, others under one.

    Args:
        loaded: the task.
        methods: for each name a dictionary as in ``saliency_assay.benchmark``; without the key ``method``, the name is
            that of a registered method.
        folder: where results are kept, so that an interrupted computation is continued.
        metrics: the task's metrics, or some of them; all by default.
        progress: True for a progress bar.

    Raises:
        ValueError: as ``benchmark``, or an entry has the key ``sweep``.
    """
    if swept := next((name for name, entry in methods.items() if {"sweep", "member"} & set(entry)), ""):
        raise ValueError(f"{swept}: found the key sweep, expected one value of each parameter")
    random = {name for name, entry in methods.items() if loaded.is_random(name, entry)}
    environment = fingerprint(versions_of(PACKAGES))[:12]  # scores of other packages are computed again
    parts = {
        "one_seed": ([name for name in methods if name not in random], SEEDS[:1]),
        "three_seeds": ([name for name in methods if name in random], SEEDS),
    }
    results = [
        loaded.benchmark(
            {name: methods[name] for name in names},
            folder / environment / part,
            metrics=metrics,
            seeds=seeds,
            progress=progress,
        )
        for part, (names, seeds) in parts.items()
        if names
    ]
    table = pd.concat([each.scores[COLUMNS] for each in results], ignore_index=True)
    names, chosen = set(methods), set(metrics or loaded.task.metrics)
    # A folder may have results of other entries.
    table = table[table["method"].isin(names) & table["variant"].str.partition(" ")[0].isin(chosen)]
    failures = [each for result in results for each in result.failures_found]
    entries = {each.name: each for result in results for each in result.methods}
    code = {name: _code(each.get("method", name), METHODS) for name, each in methods.items()}
    code |= {f"metric {name}": _code(name, METRICS) for name in metrics or loaded.task.metrics}
    return TaskScores(
        task=loaded.task.name,
        suite=VERSION,
        images=loaded.images.digest(),
        model=model_digest(loaded.model, with_code=False),
        versions=versions_of(PACKAGES),
        methods=[entries[name] for name in methods],
        metrics=[each for each in results[0].metrics if each.name in chosen],
        targets=loaded.targets.tolist(),
        settings={name: _plain(each) for name, each in methods.items()},
        code=code,
        failures=[each for each in failures if each.method in names and each.metric in ("", *chosen)],
        table=table.reset_index(drop=True).astype({"score": np.float32}),
    )


def _registered(function: Any) -> Any:
    """Return the name of the registered method of an alias; anything else unchanged."""
    if not isinstance(function, str) or ":" in function:
        return function
    return registered_name(function, [record.name for record in METHODS]) or function


def _code(function: Any, records: Iterable[Any]) -> str:
    """Return the digest of the code of a registered function, of a reference ``module:name``, or of a function."""
    record = next((each for each in records if each.name == _registered(function)), None)
    if record:
        return identity_of_record(record.function)
    return fingerprint(identity_of(resolve(function) if isinstance(function, str) else function))


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method without its function, as plain values."""
    return {key: identity_of(value) for key, value in settings.items() if key not in ("method", "label")}

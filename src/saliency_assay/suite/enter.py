"""Entry of a new method into the reference suite: its scores beside those of the reference, a report, and a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from saliency_assay import __version__
from saliency_assay.api.results import Benchmark
from saliency_assay.data.splits import TEST
from saliency_assay.methods.stored_maps import read_maps, recompute
from saliency_assay.metrics import METRICS
from saliency_assay.reliability.order_tables import BETTER, WORSE
from saliency_assay.reliability.reliability_tables import rank_text
from saliency_assay.runtime.atomic import replacing
from saliency_assay.suite import VERSION
from saliency_assay.suite.entries import written
from saliency_assay.suite.scores import LoadedTask, TaskScores, reference, score
from saliency_assay.suite.tasks import MissingData, Task, TaskImages, available

FLIPPED = {BETTER: WORSE, WORSE: BETTER}


@dataclass(frozen=True)
class Place:
    """Standing of a method among the others under one score."""

    score: str
    """Label of the score."""
    metric: str
    variant: str
    mean: float
    low: float
    """Lower end of the 95 % interval of the mean."""
    high: float
    rank_low: float
    """Best rank of the rank set; NaN without scores."""
    rank_high: float
    above_baselines: float
    """1 if it is distinguishably better than every baseline, 0 if not; NaN if no baseline has a score."""
    better_than: list[str]
    """Names of the methods that are distinguishably worse."""
    same_as: list[str]
    """Names of those that are not distinguishable."""
    worse_than: list[str]

    @property
    def rank_set(self) -> str:
        """Rank set in words, such as ``1–5 of 28``."""
        if not self.rank_low > 0:
            return "no score"
        count = len(self.better_than) + len(self.same_as) + len(self.worse_than) + 1
        return f"{rank_text(self.rank_low, self.rank_high)} of {count}"


@dataclass(frozen=True)
class Standing:
    """A method on a task, beside the methods of the reference."""

    task: Task
    scores: TaskScores
    """Scores of the method alone."""
    joined: Benchmark
    """With those of the reference."""
    places: list[Place]
    changed: list[str]
    """Differences from the installation that computed the reference."""


def enter(
    method: str | Callable[..., Any],
    name: str,
    *,
    label: str = "",
    settings: Mapping[str, Any] | None = None,
    tasks: Sequence[Task] = (),
    maps: str = "",
    data: Path = Path("data"),
    output: Path,
    progress: bool = True,
) -> tuple[list[Standing], dict[str, str]]:
    """Compute the scores of a method on the tasks of the suite, and compare it with the methods of the reference.

    Args:
        method: a function ``(model, images, targets, *, generator, **settings) -> maps``, a reference to one, or a
            registered name.
        name: name of the method in tables, other than those of the reference.
        label: name in figures; by default ``name``.
        settings: parameters of the method.
        tasks: by default all whose data are there.
        maps: path of maps from another program with ``{task}`` for the name of the task, instead of the method's.
            Metrics that compute further maps are left out.
        data: folder of images and weights.
        output: folder for results; an interrupted entry continues from it.
        progress: True for progress bars.

    Returns:
        The standing on each task, and for each task that is left out the reason.

    Raises:
        ValueError: the reference has the name or the label, ``settings`` or ``maps`` are not valid, or the method fails
            on all tasks.
        MissingData: data of one of ``tasks`` are missing, or those of all tasks.
    """
    chosen = list(tasks or available())
    if maps and "{task}" not in maps and len(chosen) > 1:
        raise ValueError(
            f"maps: found {maps!r} for {len(chosen)} tasks, expected {{task}} in the path, or one task"
        )
    if given := {"method", "label", "sweep", "member"} & set(settings or {}):
        raise ValueError(f"settings: found {min(given)}, expected parameters of the method")
    standings, left_out, failed = [], dict[str, str](), dict[str, str]()
    for task in chosen:
        before = reference(task.name)
        entry: dict[str, Any] = {**(settings or {}), "label": label or name}
        before.check_new(name, entry["label"])
        metrics = task.metrics
        try:
            loaded = LoadedTask.load(task, data)
            before.check_inputs(loaded)
            if maps:
                entry["method"] = stored(Path(maps.replace("{task}", task.name)), loaded.images)
                metrics = {each: task.metrics[each] for each in task.metrics if not _explains(each)}
            else:
                entry["method"] = method
            scores = score(loaded, {name: entry}, output / task.name, metrics=metrics, progress=progress)
            standings.append(standing(task, before, scores))
        except MissingData as error:
            if tasks:
                raise MissingData(f"{task.name}: {error}") from None
            left_out[task.name] = str(error)
        except (ValueError, OSError) as error:  # such as a layer that this network does not have
            failed[task.name] = str(error)
    if not standings and failed:
        raise ValueError("; ".join(dict.fromkeys(failed.values())))
    if not standings:
        raise MissingData("; ".join(f"{task}: {reason}" for task, reason in left_out.items()))
    return standings, left_out | failed


def standing(task: Task, before: TaskScores, scores: TaskScores) -> Standing:
    """Return the standing of the one method of ``scores`` beside those of ``before``.

    Raises:
        ValueError: the scores are of other images or another network.
    """
    joined = before.joined(scores).benchmark()
    name = scores.methods[0].name
    packages = [
        f"{package} {version} ({before.versions.get(package, 'none')} in the reference)"
        for package, version in scores.versions.items()
        if before.versions.get(package) != version
    ]
    changed = (
        [f"computed with {', '.join(packages)}; 'saliency-assay suite check' compares"] if packages else []
    )
    changed += [
        f"the code of {each} has changed since the reference"
        for each, digest in scores.code.items()
        if each.startswith("metric ") and before.code.get(each, digest) != digest
    ]
    return Standing(task, scores, joined, places(joined, name), changed)


def places(joined: Benchmark, name: str) -> list[Place]:
    """Return where a method stands among the others, for each score."""
    own = joined.pairs[joined.pairs["method"] == name]
    other = joined.pairs[joined.pairs["other"] == name]
    other = other.assign(other=other["method"], finding=other["finding"].replace(FLIPPED))
    pairs = pd.concat([own, other], ignore_index=True)
    found = []
    numbers = ["mean", "low", "high", "rank_low", "rank_high", "above_baselines"]
    for rank in joined.ranks[joined.ranks["method"] == name].to_dict("records"):
        of_score = pairs[(pairs["metric"] == rank["metric"]) & (pairs["variant"] == rank["variant"])]
        better, worse = (of_score["finding"] == finding for finding in (BETTER, WORSE))
        names = [of_score.loc[mask, "other"].tolist() for mask in (better, ~(better | worse), worse)]
        groups = dict(zip(("better_than", "same_as", "worse_than"), names, strict=True))
        metric, variant = str(rank["metric"]), str(rank["variant"])
        values: dict[str, Any] = {column: float(rank[column]) for column in numbers}
        found.append(Place(joined.labels.score(metric, variant), metric, variant, **values, **groups))
    return found


class _Set(dict[str, Any]):
    """Arrays of a data set by name, as in a store."""

    @property
    def names(self) -> list[str]:
        return [*self]


def stored(path: Path, images: TaskImages) -> Callable[..., Tensor]:
    """Return a method that looks up the maps of a file, in the order of the images.

    Raises:
        ValueError: the maps do not fit the images, see ``read_maps``.
        OSError: the file cannot be read.
    """
    indices = np.arange(len(images.pixels))
    data = _Set(image=images.pixels, split=np.full(len(indices), TEST, dtype=np.uint8))
    blocks = read_maps(path, data, indices, indices)
    maps = np.concatenate([block["map"] for block in blocks])
    of_image = {image.tobytes(): one for image, one in zip(images.pixels, maps, strict=True)}

    def lookup(model: Any, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        pixels = (images.detach().cpu() * 255).round().to(torch.uint8).numpy()
        try:
            found = np.stack([of_image[image.tobytes()] for image in pixels])
        except KeyError:
            recompute(model, images, targets, generator=generator)
        return torch.from_numpy(found).to(images.device)

    return lookup


def _explains(metric: str) -> bool:
    return next("explain" in each.takes for each in METRICS if each.name == metric)


def write_entry(path: Path, standings: Sequence[Standing], description: Mapping[str, Any]) -> None:
    """Write ``entry.zip``, see ``entries.written``."""
    facts = {"suite": VERSION, "saliency_assay": __version__, **description}
    content = written(facts, [each.scores for each in standings])
    with replacing(path) as temporary:
        temporary.write_bytes(content)

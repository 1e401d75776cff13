"""Comparison of several benchmarks: which orders of methods hold across models and data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from saliency_assay.api.results import Benchmark
from saliency_assay.plotting.page import page_templates
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.across import Across, Orders, across_tasks
from saliency_assay.report.pages.across import AgreementMap, agreement_map, answer, pair_sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True, repr=False)
class AcrossTasks(Across):
    """Agreement of benchmarks on the order of methods; in a notebook, it is displayed as a heat map and sentences."""

    tasks: list[str]
    """Names of the benchmarks."""
    labels: Labels
    """Labels of methods and scores."""

    @property
    def summary(self) -> list[str]:
        """Sentences on the result, the answer first."""
        return [answer(self), *pair_sentences(self, self.labels)]

    @property
    def heat_map(self) -> AgreementMap:
        """Agreement of each pair of tasks under each metric."""
        return agreement_map(self, self.labels, {name: name for name in self.tasks})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Plot the agreement of each pair of tasks under each metric, on ``ax`` or on the axes of a new figure."""
        # Matplotlib is imported on first use, as by the package itself.
        axes: Axes = import_module("saliency_assay.plot").across_tasks(self, ax)
        return axes

    def __repr__(self) -> str:
        return f"<AcrossTasks: {'; '.join(self.tasks)}>"

    def __str__(self) -> str:
        return "\n".join(self.summary)

    def _repr_html_(self) -> str:
        template = page_templates(TEMPLATES).get_template("across.html.j2")
        return template.render(heat=self.heat_map, sentences=self.summary)


def across(
    benchmarks: Sequence[Benchmark | str | Path] | Mapping[str, Benchmark | str | Path],
) -> AcrossTasks:
    """Compare benchmarks of several models or data sets: which orders of methods hold, and which pairs of methods flip.

    Metrics are compared by their names, so that equal names must have equal settings in all benchmarks.

    Args:
        benchmarks: results of ``saliency_assay.benchmark`` or the folders in which they were saved. Their names are
            ``MODEL on DATA``, or the keys of a dictionary.

    Returns:
        ``agreement`` (with 95 % intervals), ``pairs`` and ``left_out``: see ``reliability.across.across_tasks``.

    Raises:
        ValueError: there are fewer than two benchmarks, or two of one name; or as in ``across_tasks``.
    """
    if isinstance(benchmarks, str | Path | Benchmark):
        raise ValueError(f"benchmarks: found {type(benchmarks).__name__}, expected a list or a dictionary")
    entries = list(benchmarks.values()) if isinstance(benchmarks, Mapping) else list(benchmarks)
    loaded = [each if isinstance(each, Benchmark) else Benchmark.load(each) for each in entries]
    names = [f"{each.model} on {each.data}" for each in loaded]
    if isinstance(benchmarks, Mapping):
        names = list(map(str, benchmarks))
    if len(names) < 2:
        raise ValueError(f"benchmarks: found {len(names)}, expected at least two")
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(
            f"benchmarks: found {repeated[0]!r} {names.count(repeated[0])} times, expected a dictionary by name"
        )
    orders = [Orders(each.ranks, each.pairs) for each in loaded]
    result = across_tasks(dict(zip(names, orders, strict=True)))
    labels = _merged([each.labels for each in loaded])
    return AcrossTasks(**vars(result), tasks=names, labels=labels)


def _merged(labels: Sequence[Labels]) -> Labels:
    """Return the labels of several benchmarks; of several labels of one name the first."""
    names = [each.name for each in fields(Labels)]
    return Labels(
        **{
            name: {key: text for each in reversed(labels) for key, text in getattr(each, name).items()}
            for name in names
        }
    )

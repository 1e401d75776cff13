"""Leaderboard: the rank sets of all methods of the reference and of accepted entries, on one page."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from saliency_assay.api.across import across
from saliency_assay.api.results import Benchmark
from saliency_assay.plotting.page import page_templates
from saliency_assay.registry.properties import FAITHFULNESS, LOCALIZATION
from saliency_assay.report.pages import heat_map
from saliency_assay.runtime.atomic import replacing
from saliency_assay.suite import VERSION
from saliency_assay.suite.entries import entries, read_entry
from saliency_assay.suite.scores import TaskScores, reference
from saliency_assay.suite.tasks import available

TEMPLATES = Path(__file__).with_name("templates")
HEAT_MAPS = Path(heat_map.__file__).with_name("templates")


def with_entries(task: str, files: Sequence[Path]) -> tuple[TaskScores, list[str]]:
    """Return the reference of a task with the entries in ``files``, and the names of the entries.

    Raises:
        ValueError: an entry is not valid, or has the name or label of another method.
    """
    scores, names = reference(task), []
    for file in files:
        for entered in read_entry(file)[1]:
            if entered.task == task:
                try:
                    scores = scores.joined(entered)
                except ValueError as error:
                    raise ValueError(f"{file}: {error}") from None
                names += [each.name for each in entered.methods]
    return scores, names


def write_page(path: Path, folder: Path) -> None:
    """Write the page; it contains style and script, and needs no network.

    Args:
        path: the HTML file.
        folder: folder of the accepted entries.
    """
    files, tasks, results = entries(folder), [], {}
    for task in available():
        scores, names = with_entries(task.name, files)
        results[task.label] = joined = scores.benchmark()
        tasks.append(
            {
                "task": task,
                "heat_map": joined.heat_map,
                "more": [_known_order_row(scores, joined)],
                "entries": [joined.labels.method(name) for name in names],
                "settings": _settings(scores, joined),
                "failures": scores.failures,
            }
        )
    page = page_templates(TEMPLATES, HEAT_MAPS).get_template("leaderboard.html.j2")
    content = page.render(
        title=f"Leaderboard of suite {VERSION}",
        version=VERSION,
        tasks=tasks,
        across=Markup(across(results)._repr_html_())
        if len(results) > 1
        else "",  # escaped by its own template
    )
    with replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8")


def _known_order_row(scores: TaskScores, joined: Benchmark) -> tuple[str, str, list[str]]:
    note = (
        "Spearman's ρ between the score and the known order of maps that are degraded step by step; 1 is best. "
        "The known order applies only to faithfulness and localization"
    )
    known = {(row["metric"], row["variant"]): row for row in scores.known_order}
    of_column = {name: known.get(pair) for pair, name in joined.study.names.items()}
    columns = joined.heat_map.columns
    rows = [
        of_column[each.name] if each.measures in (FAITHFULNESS, LOCALIZATION) else None for each in columns
    ]
    return "validity (known order)", note, list(map(_rho, rows))


def _rho(row: dict[str, float] | None) -> str:
    return "–" if row is None or pd.isna(row["micro"]) else f"{row['micro']:.2f}".replace("-", "−")


def _settings(scores: TaskScores, joined: Benchmark) -> list[tuple[str, str]]:
    """Return the parameters of methods that differ from the defaults."""
    return [
        (joined.labels.method(name), ", ".join(f"{key} {value}" for key, value in parameters.items()))
        for name, parameters in scores.settings.items()
        if parameters
    ]

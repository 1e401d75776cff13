"""Report of an entry: a page with the standing of one method on each task."""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

from saliency_assay.plotting.page import page_templates
from saliency_assay.plotting.text import significant
from saliency_assay.report.pages import heat_map
from saliency_assay.runtime.atomic import replacing
from saliency_assay.suite import VERSION
from saliency_assay.suite.enter import Place, Standing

TEMPLATES = Path(__file__).with_name("templates")
HEAT_MAPS = Path(heat_map.__file__).with_name("templates")


def write_report(path: Path, label: str, standings: Sequence[Standing], left_out: Mapping[str, str]) -> None:
    """Write the page; it contains its style, and needs no network."""
    page = page_templates(TEMPLATES, HEAT_MAPS).get_template("entry.html.j2")
    content = page.render(
        title=label,
        version=VERSION,
        tasks=[
            {
                "standing": each,
                "sentences": sentences(label, each),
                "rows": _rows(each),
                "heat_map": each.joined.heat_map,
            }
            for each in standings
        ],
        left_out=left_out,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8")


def sentences(label: str, standing: Standing) -> list[str]:
    """Return where a method stands on a task, in sentences."""
    places = standing.places
    if not places:
        return [f"{label} has no scores on this task."]

    def named(chosen: Sequence[Place]) -> str:
        return ", ".join(each.score for each in chosen)

    told_apart = [each for each in places if each.better_than or each.worse_than]
    best = [each for each in told_apart if each.rank_low == 1]
    below = [each for each in told_apart if each.above_baselines == 0]
    silent = [each for each in places if each not in told_apart]
    texts = [f"{len(told_apart)} of {len(places)} scores distinguish {label} from another method."]
    if best:
        texts.append(f"On {len(best)} of these, no method is better: {named(best)}.")
    elif told_apart:
        texts.append("On each of these, another method is better.")
    if below:
        texts.append(f"On {len(below)}, it is not shown to be better than every baseline: {named(below)}.")
    if silent:
        texts.append(f"These scores distinguish it from none: {named(silent)}.")
    return texts


def _rows(standing: Standing) -> list[dict[str, str]]:
    labels = standing.joined.labels

    def names(methods: Sequence[str]) -> str:
        return ", ".join(labels.method(each) for each in methods) or "none"

    return [
        {
            "score": place.score,
            "mean": significant(place.mean, 3)
            + ("" if isnan(place.low) else f" [{significant(place.low, 3)}, {significant(place.high, 3)}]"),
            "ranks": place.rank_set,
            **{
                key: f"{len(methods)}"
                for key, methods in (
                    ("better", place.better_than),
                    ("same", place.same_as),
                    ("worse", place.worse_than),
                )
            },
            "better_names": names(place.better_than),
            "same_names": names(place.same_as),
            "worse_names": names(place.worse_than),
        }
        for place in standing.places
    ]

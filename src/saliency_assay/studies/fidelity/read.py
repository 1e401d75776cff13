"""Read a study of kind ``fidelity``: its metrics, and a paper's values to compare with."""

from collections.abc import Iterable, Sequence

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Metric, Sections, Study
from saliency_assay.registry.records import unknown
from saliency_assay.studies.fidelity.settings import FidelityStudy


def read_study(name: str, entry: FidelityStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study of one model on the set that it was trained on.

    Raises:
        ConfigError: a model, metric, method or score does not exist, or a metric needs masks that the images lack.
    """
    model = look_up(f"studies.{name}.model", "model", entry.model, sections.models)
    metrics = select_metrics(f"studies.{name}.metrics", entry.metrics, sections)
    study = Study(
        name,
        entry.kind,
        model.data,
        (model.name,),
        methods,
        metrics,
        settings=entry,
        options=("scatter",) if metric_pairs(sections.metrics[metric] for metric in metrics) else (),
        figure_values=tuple(
            {"metric": metric, "figure": figure}
            for metric in metrics
            for figure in sections.metrics[metric].figures
        ),
        printed=entry.printed,
        printed_alpha=entry.printed_alpha,
        printed_correlation=entry.printed_correlation,
    )
    check_masks(study, sections)
    _check_printed(study, sections)
    return study


def select_metrics(place: str, listed: Sequence[str] | None, sections: Sections) -> tuple[str, ...]:
    """Return the ``listed`` metrics; by default all under ``metrics`` that score single maps."""
    configured = [name for name, metric in sections.metrics.items() if metric.scores_single_maps]
    registered = [name for name, record in sections.catalog.metrics.items() if record.scores_single_maps]
    valid = dict.fromkeys([*configured, *registered])
    metrics = tuple(listed or ()) or tuple(name for name in sections.listed_metrics if name in configured)
    for name in metrics:
        look_up(place, "metric of single maps", name, valid)
    if not metrics:
        actual = "missing, and no entry under metrics scores single maps"
        raise ConfigError(f"{place}: {actual}; valid: {', '.join(sorted(valid))}")
    return metrics


def metric_pairs(metrics: Iterable[Metric]) -> list[list[str]]:
    """Return all pairs of an infidelity metric and a sensitivity metric, by name."""
    metrics_by_score: dict[str, list[str]] = {"infidelity": [], "sensitivity_max": []}
    for metric in metrics:
        for score in metrics_by_score.keys() & metric.directions.keys():
            metrics_by_score[score].append(metric.name)
    return [
        [infidelity, sensitivity]
        for infidelity in metrics_by_score["infidelity"]
        for sensitivity in metrics_by_score["sensitivity_max"]
    ]


def check_masks(study: Study, sections: Sections) -> None:
    """Check that the study's images have the masks that its metrics need."""
    masked = [name for entry in sections.data.values() if entry.masks for name in entry.sets]
    for name in study.metrics:
        if "mask" in sections.metrics[name].takes and study.data not in masked:
            valid = ", ".join([*masked, "image files with the key masks (docs/data.md)"])
            raise ConfigError(
                f"studies.{study.name}.metrics: {name} needs the object's mask, which the set {study.data} "
                f"(models.{study.models[0]}) does not have; valid: {valid}"
            )


def _check_printed(study: Study, sections: Sections) -> None:
    """Check that printed values of a paper belong to the study's methods, and each to one of its scores.

    Sub-variants after an entry's name (``aopc_morf aopc L=20``) are not checked; they are known only after scoring.
    """
    place, study_methods = f"studies.{study.name}", dict.fromkeys(study.methods)
    pairs = [(score, name) for name in study.metrics for score in sections.metrics[name].directions]
    for method, values in study.printed.items():
        look_up(f"{place}.printed", "method", method, study_methods)
        for name in values:
            _check_score(f"{place}.printed.{method}", name, pairs)
    use_model = [sections.methods[name].uses_model for name in study.methods]
    missing = {
        "with": "no baselines" if all(use_model) else "",
        "without": "" if any(use_model) else "only baselines",
    }
    for name, alphas in study.printed_alpha.items():
        _check_score(f"{place}.printed_alpha", name, pairs)
        for kind in alphas:
            if missing[kind]:
                other = "without" if kind == "with" else "with"
                raise ConfigError(
                    f"{place}.printed_alpha.{name}.{kind}: the study has {missing[kind]} (methods that do not use the "
                    f"model); valid: {other}"
                )
    for name, others in study.printed_correlation.items():
        _check_score(f"{place}.printed_correlation", name, pairs)
        for other, values in others.items():
            _check_score(f"{place}.printed_correlation.{name}", other, pairs)
            if other == name:
                raise ConfigError(
                    f"{place}.printed_correlation.{name}: found {other!r} again, expected another score"
                )
            for method in values:
                look_up(f"{place}.printed_correlation.{name}.{other}", "method", method, study_methods)


def _check_score(place: str, name: str, pairs: list[tuple[str, str]]) -> None:
    """Check that ``name`` belongs to exactly one of ``pairs``, a score and its entry."""
    matches = [pair for pair in pairs if name in pair or tuple(name.split(" ")[:2]) == pair]
    if not matches:
        valid_names = dict.fromkeys(name for pair in pairs for name in pair)
        raise ConfigError(f"{place}: {unknown('score', name, valid_names)}")
    if len(matches) > 1:
        actual = f"{name!r}, which has {len(matches)} scores"
        raise ConfigError(f"{place}: found {actual}, expected one of them, such as '{' '.join(matches[0])}'")

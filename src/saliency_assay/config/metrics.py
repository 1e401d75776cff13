"""Check the section ``metrics``, and what metrics need of the data of a study."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from saliency_assay.config.caption import METRICS as CAPTIONED
from saliency_assay.config.checks import look_up, parameters_of
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalogue, DataEntry, Method, Metric, Study
from saliency_assay.config.settings import CustomMetric, RegisteredMetric
from saliency_assay.registry.records import resolve, unknown
from saliency_assay.registry.signatures import GENERATOR, OFFERED, check_call, describe_function
from saliency_assay.studies.fidelity.settings import FidelityStudy

POSITIONAL = ("predict", "images", "targets", "maps")
DIRECTIONS = ("direction", "target")
"""Keys of a custom metric that say which scores are better."""


@dataclass(frozen=True)
class Boxes:
    """The figure of a custom metric."""

    function: str = "saliency_assay.studies.fidelity.figures:boxes"
    reads: tuple[str, ...] = ()


BOXES = Boxes()


def read_metrics(
    entries: Mapping[str, RegisteredMetric | CustomMetric], requested: Iterable[str], catalogue: Catalogue
) -> dict[str, Metric]:
    """Return the records of all entries, of BAM's metrics and of those that studies have ``requested``."""
    made = {name: _metric(name, entry, catalogue) for name, entry in entries.items()}
    for name, record in catalogue.metrics.items():
        if name not in made and (not record.judges_single_maps or name in requested):
            made[name] = _metric(name, RegisteredMetric(), catalogue)
    return made


def _metric(name: str, entry: RegisteredMetric | CustomMetric, catalogue: Catalogue) -> Metric:
    place = f"metrics.{name}"
    same = catalogue.metrics.get(name)
    taken = name in CAPTIONED or (same and not same.judges_single_maps)
    if taken and (isinstance(entry, CustomMetric) or entry.metric not in (None, name)):
        of = "caption" if name in CAPTIONED else "BAM"
        raise ConfigError(
            f"{place}: is the name of a metric of {of} studies, which stands for itself; rename it"
        )
    if isinstance(entry, CustomMetric):
        return _custom_metric(name, entry)
    for key in DIRECTIONS:
        if key in entry.parameters:
            raise ConfigError(f"{place}.{key}: a registered metric has its own, expected function beside it")
    record = look_up(place, "metric", name if entry.metric is None else entry.metric, catalogue.metrics)
    if not record.judges_single_maps and record.name != name:
        raise ConfigError(f"{place}.metric: found {record.name!r}, which stands under its own name only")
    parameters = parameters_of(place, record.parameters, entry.parameters, entry.own_keys())
    misfit = resolve(record.check)(parameters) if record.check else ""
    if misfit:
        raise ConfigError(f"{place}.{misfit}")
    return Metric(
        name=name,
        metric=record.name,
        function=record.function,
        parameters=parameters,
        judges_single_maps=record.judges_single_maps,
        takes=record.takes,
        probe=record.probe,
        directions={score.name: score.direction for score in record.scores},
        labels={score.name: score.label for score in record.scores},
        figures=dict(record.figures),
        summary=record.summary,
    )


def _custom_metric(name: str, entry: CustomMetric) -> Metric:
    """Return the record of a custom metric, whose one score has the entry's name."""
    place = f"metrics.{name}"
    if "metric" in entry.parameters:
        raise ConfigError(f"{place}: found both function and metric, expected one of them")
    try:
        takes = check_call(entry.function, entry.parameters, positional=POSITIONAL, offered=OFFERED)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    description = describe_function(entry.function, given=(*POSITIONAL, GENERATOR, *OFFERED))
    return Metric(
        name=name,
        metric="",
        function=entry.function,
        parameters={**description.defaults, **entry.parameters},
        judges_single_maps=True,
        takes=takes,
        probe="",
        directions={name: _direction(place, entry)},
        labels={name: name},
        figures={"scores": BOXES},
        summary=description.summary or entry.function,
    )


def _direction(place: str, entry: CustomMetric) -> str:
    """Return the direction of a custom metric, which has either ``direction`` or ``target``."""
    if entry.direction and entry.target is not None:
        raise ConfigError(f"{place}: found both direction and target, expected one of them")
    if entry.direction:
        return entry.direction
    if entry.target is None:
        expected = "expected higher or lower, or target, the ideal value, in its place"
        raise ConfigError(f"{place}.direction: missing, {expected}")
    return f"target {float(entry.target)!r}".removesuffix(".0")


def metrics_of(
    study: str,
    entry: FidelityStudy,
    metrics: Mapping[str, Metric],
    listed: Iterable[str],
    catalogue: Catalogue,
) -> tuple[str, ...]:
    """Return the metrics that a fidelity study names; by default all that are ``listed`` and judge single maps.

    Raises:
        ConfigError: one that does not exist or judges no single maps, or none at all.
    """
    place = f"studies.{study}.metrics"
    judging = [name for name, metric in metrics.items() if metric.judges_single_maps]
    registered = [name for name, record in catalogue.metrics.items() if record.judges_single_maps]
    valid = dict.fromkeys([*judging, *registered])
    chosen = entry.metrics or tuple(name for name in listed if name in judging)
    for name in chosen:
        look_up(place, "metric of single maps", name, valid)
    if not chosen:
        found = "missing, and no entry under metrics judges single maps"
        raise ConfigError(f"{place}: {found}; valid: {', '.join(sorted(valid))}")
    return chosen


def check_masks(study: Study, metrics: Mapping[str, Metric], data: Mapping[str, DataEntry]) -> None:
    """Check that the study's images have the masks that its metrics need."""
    masked = [name for entry in data.values() if entry.masks for name in entry.sets]
    for name in study.metrics:
        if "mask" in metrics[name].takes and study.data not in masked:
            raise ConfigError(
                f"studies.{study.name}.metrics: {name} needs the object's mask, which the set {study.data} "
                f"(models.{study.models[0]}) does not have; valid: {', '.join(masked) or 'none'}"
            )


def check_printed(study: Study, metrics: Mapping[str, Metric], methods: Mapping[str, Method]) -> None:
    """Check that printed values of a paper belong to the study's methods, and each to one of its scores.

    What follows an entry's name in full (``aopc_morf aopc L=20``) is known only once it is scored.
    """
    place, of_study = f"studies.{study.name}", dict.fromkeys(study.methods)
    pairs = [(score, name) for name in study.metrics for score in metrics[name].directions]
    for method, values in study.printed.items():
        look_up(f"{place}.printed", "method", method, of_study)
        for name in values:
            _check_score(f"{place}.printed.{method}", name, pairs)
    looking = [methods[name].uses_model for name in study.methods]
    lacking = {
        "with": "no control" if all(looking) else "",
        "without": "" if any(looking) else "controls alone",
    }
    for name, alphas in study.printed_alpha.items():
        _check_score(f"{place}.printed_alpha", name, pairs)
        for kind in alphas:
            if lacking[kind]:
                other = "without" if kind == "with" else "with"
                raise ConfigError(
                    f"{place}.printed_alpha.{name}.{kind}: the study has {lacking[kind]} (methods that look at no "
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
                look_up(f"{place}.printed_correlation.{name}.{other}", "method", method, of_study)


def _check_score(place: str, name: str, pairs: list[tuple[str, str]]) -> None:
    """Check that ``name`` belongs to exactly one of ``pairs``, a score and its entry."""
    meant = [pair for pair in pairs if name in pair or tuple(name.split(" ")[:2]) == pair]
    if not meant:
        known = dict.fromkeys(part for pair in pairs for part in pair)
        raise ConfigError(f"{place}: {unknown('score', name, known)}")
    if len(meant) > 1:
        found = f"{name!r}, which has {len(meant)} scores"
        raise ConfigError(f"{place}: found {found}, expected one of them, such as '{' '.join(meant[0])}'")

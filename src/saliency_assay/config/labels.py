"""Display names of the entries of a configuration."""

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any, TypeVar

from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Catalog, Config, Metric
from saliency_assay.registry.labels import Labels

R = TypeVar("R")
FIRST_METHODS = (
    *("gradient", "gradient_x_input", "integrated_gradients", "gradcam", "guided_backprop", "smoothgrad"),
    *("lrp_epsilon", "deeplift"),
)
"""Methods that are compared most often: the first places of the palette, whose lines are solid and differ in color."""


def label_of(name: str, configured: str | None, record: Any = None) -> str:
    """Return the label of an entry.

    Args:
        name: name of the entry.
        configured: its key ``label``, if it has one.
        record: registry record of the object that it configures, whose label is the default under the same name.
    """
    if configured:
        return configured
    if record and record.name == name:
        return str(record.label)
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def check_distinct(section: str, records: Mapping[str, Any], entries: Collection[str]) -> None:
    """Check that no two records of a section have the same label; only ``entries`` are in the configuration.

    Raises:
        ConfigError: two records have the same label.
    """
    names: dict[str, str] = {}
    for name, record in records.items():
        if record.label in names:
            other = names[record.label]
            place, other = (name, other) if name in entries else (other, name)
            raise ConfigError(
                f"{section}.{place}.label: found {record.label!r}, the label of {section}.{other}, too; "
                f"expected a label that no other entry of {section} has"
            )
        names[record.label] = name


def labels_of(config: Config, catalog: Catalog, studies: Iterable[str] | None = None) -> Labels:
    """Return the labels of the entries that these studies use, by default those of all entries.

    All mappings are sorted, because the order of entries in the configuration must not rerun jobs.
    """
    selected_studies = [config.studies[name] for name in (config.studies if studies is None else studies)]
    if studies is None:
        methods, metrics, models, data = config.methods, config.metrics, config.models, config.data
    else:
        names = {name for study in selected_studies for name in study.all_models}
        models = _only(config.models, names)
        methods = _only(config.methods, {name for study in selected_studies for name in study.methods})
        metrics = _only(config.metrics, {name for study in selected_studies for name in study.metrics})
        sets = {study.data for study in selected_studies} | {model.data for model in models.values()}
        data = {name: entry for name, entry in config.data.items() if sets & {name, *entry.sets}}
    kinds = [catalog.study_kinds[study.kind] for study in selected_studies]
    sub_variants = {name: metric.sub_variants for name, metric in metrics.items() if metric.sub_variants}
    shared = {pattern: text for kind in kinds for pattern, text in kind.sub_variants.items()}
    scores = [(score, label) for metric in metrics.values() for score, label in metric.labels.items()]
    scores += [(score.name, score.label) for kind in kinds for score in kind.scores]
    set_labels = [label for entry in data.values() for label in entry.labels_of_sets.items()]
    return Labels(
        methods=_labels(methods)
        | {key: label for kind in kinds for key, label in kind.method_labels.items()},
        metrics=_labels(metrics),
        scores=dict(sorted(scores)),
        data=_labels(data) | dict(sorted(set_labels)),
        models=_labels(models),
        studies={study.name: study.label for study in sorted(selected_studies, key=lambda study: study.name)},
        entry_scores={name: _entry_scores(metric, catalog) for name, metric in sorted(metrics.items())},
        sub_variants=dict(sorted(sub_variants.items())) | ({"": shared} if shared else {}),
        places={name: place for name, place in _places(config, catalog).items() if name in methods},
    )


def _places(config: Config, catalog: Catalog) -> dict[str, int]:
    """Return ``Labels.places`` of all methods.

    A method with the name of its record has the place of the record, so that its look is the same in every report.
    Others follow, sorted by name.
    """
    own_names = {name for name, method in config.methods.items() if name == method.method}
    places = {}
    for uses_model in (True, False):
        registered = dict.fromkeys([*FIRST_METHODS, *catalog.methods])
        names = [name for name in registered if catalog.methods[name].uses_model == uses_model]
        other_names = sorted(config.methods.keys() - own_names)
        names += [name for name in other_names if config.methods[name].uses_model == uses_model]
        for index, name in enumerate(names):
            places[name] = index if uses_model else -1 - index
    return {name: place for name, place in sorted(places.items()) if name in config.methods}


def _only(records: Mapping[str, R], names: Container[str]) -> dict[str, R]:
    return {name: record for name, record in records.items() if name in names}


def _labels(records: Mapping[str, Any]) -> dict[str, str]:
    return {name: record.label for name, record in sorted(records.items())}


def _entry_scores(metric: Metric, catalog: Catalog) -> dict[str, str]:
    """Return the labels of the scores of an entry.

    A single score has the label of the entry. Several scores have their registered labels, extended by the words in
    parentheses of the entry's label: ``AOPC (mean fill)`` and ``AOPC (MoRF)`` become ``AOPC (MoRF, mean fill)``.
    """
    if len(metric.labels) == 1:
        return dict.fromkeys(metric.labels, metric.label)
    registered = catalog.metrics[metric.metric].label
    if metric.label.startswith(f"{registered} ("):
        addition = metric.label.removeprefix(registered)
        return {score: f"{label}{addition}".replace(") (", ", ") for score, label in metric.labels.items()}
    prefix = "" if metric.label == registered else f"{metric.label}: "
    return {score: f"{prefix}{label}" for score, label in metric.labels.items()}

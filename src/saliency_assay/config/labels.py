"""Display names of the entries of a configuration."""

from collections.abc import Collection, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from saliency_assay.config.errors import ConfigError
from saliency_assay.registry.labels import Labels, method_places, score_labels

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

R = TypeVar("R")


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


def labels_of(config: "Configuration", studies: Iterable[str] | None = None) -> Labels:
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
    kinds = [config.catalog.study_kinds[study.kind] for study in selected_studies]
    sub_variants = {name: metric.sub_variants for name, metric in metrics.items() if metric.sub_variants}
    shared = {pattern: text for kind in kinds for pattern, text in kind.sub_variants.items()}
    scores = [(score, label) for metric in metrics.values() for score, label in metric.labels.items()]
    scores += [(score.name, score.label) for kind in kinds for score in kind.scores]
    set_labels = [label for entry in data.values() for label in entry.labels_of_sets.items()]
    # A family has the look of its method in figures of the selected members.
    families = {method.member.family: method for method in config.methods.values() if method.member}
    places = method_places(
        {
            name: (method.method, method.uses_model)
            for name, method in [*config.methods.items(), *families.items()]
        },
        {name: record.uses_model for name, record in config.catalog.methods.items()},
    )
    members = [method.member for method in methods.values() if method.member]
    families_of_studies = {member.family: member.family_label for member in members}
    return Labels(
        methods=_labels(methods)
        | dict(sorted(families_of_studies.items()))
        | {key: label for kind in kinds for key, label in kind.method_labels.items()},
        metrics=_labels(metrics),
        scores=dict(sorted(scores)),
        data=_labels(data) | dict(sorted(set_labels)),
        models=_labels(models),
        studies={study.name: study.label for study in sorted(selected_studies, key=lambda study: study.name)},
        entry_scores={
            name: score_labels(
                metric.labels,
                metric.label,
                config.catalog.metrics[metric.metric].label if metric.metric else "",
            )
            for name, metric in sorted(metrics.items())
        },
        sub_variants=dict(sorted(sub_variants.items())) | ({"": shared} if shared else {}),
        places={
            name: place for name, place in places.items() if name in methods or name in families_of_studies
        },
    )


def _only(records: Mapping[str, R], names: Container[str]) -> dict[str, R]:
    return {name: record for name, record in records.items() if name in names}


def _labels(records: Mapping[str, Any]) -> dict[str, str]:
    return {name: record.label for name, record in sorted(records.items())}

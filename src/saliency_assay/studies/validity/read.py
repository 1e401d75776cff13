"""Read a study of kind ``validity``."""

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Sections, Study
from saliency_assay.studies.fidelity.read import check_masks, select_metrics
from saliency_assay.studies.validity.settings import ValidityStudy


def read_study(name: str, entry: ValidityStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study of one model on the set that it was trained on.

    Raises:
        ConfigError: a model, metric or method does not exist, a metric needs masks that the images lack, or a large
            noise is not larger than the small one.
    """
    place = f"studies.{name}"
    model = look_up(f"{place}.model", "model", entry.model, sections.models)
    for method in entry.degraded_methods or ():
        look_up(f"{place}.degraded_methods", "method", method, dict.fromkeys(methods))
    for key in ("model_noise", "input_noise"):
        small, large = getattr(entry, key)
        if not small < large:
            raise ConfigError(
                f"{place}.{key}: found [{small:g}, {large:g}]; valid: [small, large] with small < large"
            )
    if not entry.degradations and not entry.iterations:
        raise ConfigError(f"{place}: found no degradations and iterations: 0, expected at least one of both")
    study = Study(
        name,
        entry.kind,
        model.data,
        (model.name,),
        methods,
        select_metrics(f"{place}.metrics", entry.metrics, sections),
        settings=entry,
    )
    check_masks(study, sections)
    return study

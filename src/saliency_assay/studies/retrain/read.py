"""Reading and checking of a study of kind ``retrain`` in the configuration."""

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import Sections, Study
from saliency_assay.studies.retrain.settings import RetrainStudy, retraining_from


def read_study(name: str, entry: RetrainStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study, with a ``Retraining`` as its settings.

    Raises:
        ConfigError: values are inconsistent, a method is not in the study, or the model is not trained.
    """
    place = f"studies.{name}"
    model = look_up(f"{place}.model", "model", entry.model, sections.models)
    if not model.training["epochs"]:
        actual = f"{model.name}, whose training.epochs is 0"
        raise ConfigError(f"{place}.model: found {actual}; expected a model with epochs, to be retrained")
    for method in entry.reductions:
        look_up(f"{place}.reductions", "method of the study", method, dict.fromkeys(methods))
    try:
        retraining = retraining_from(entry)
    except ValueError as error:
        raise ConfigError(f"{place}.{error}") from None
    return Study(
        name,
        entry.kind,
        model.data,
        (model.name,),
        methods,
        settings=retraining,
        options=("leakage",) if retraining.leak_iterations else (),
        figure_values=tuple(
            {"protocol": protocol, "fill": fill}
            for protocol in retraining.protocols
            for fill in retraining.fills
        ),
    )

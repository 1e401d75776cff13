"""Reading and checking of a study of kind ``caption`` in the configuration."""

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import DataEntry, Sections, Study
from saliency_assay.studies.caption.settings import CaptionStudy


def read_study(name: str, entry: CaptionStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study, in which both models are explained on the training set of the first.

    Raises:
        ConfigError: a model does not exist, is not trained on images with captions, or has other classes.
    """
    place = f"studies.{name}"
    captioned_sets = {f"{data.name}_both": data for data in sections.data.values() if data.source}
    pair = []
    for role, model_name in (("image_model", entry.image_model), ("caption_model", entry.caption_model)):
        model = look_up(f"{place}.{role}", "model", model_name, sections.models)
        look_up(
            f"{place}.{role}: {model.name}: data",
            "set with images and captions",
            model.data,
            captioned_sets,
        )
        pair.append(model)
    first, second = pair
    if first == second:
        raise ConfigError(f"{place}.caption_model: found {second.name} again, expected another model")
    actual, expected = captioned_sets[second.data], captioned_sets[first.data]
    if (actual.source, actual.classes, actual.captions) != (
        expected.source,
        expected.classes,
        expected.captions,
    ):
        raise ConfigError(
            f"{place}.caption_model: {second.name} has the classes {_classes_text(actual)}, "
            f"expected {_classes_text(expected)}, as {first.name}"
        )
    return Study(
        name,
        entry.kind,
        first.data,
        (first.name, second.name),
        methods,
        settings=entry,
        evaluated={model.name: captioned_sets[model.data].sets for model in pair},
    )


def _classes_text(data: DataEntry) -> str:
    """Return the classes, their set and their captions as text."""
    words = "" if data.captions == data.classes else f", called {' and '.join(data.captions)}"
    return f"{' and '.join(data.classes)} of {data.source}{words}"

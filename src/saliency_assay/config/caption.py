"""A study of kind ``caption``: which half of a picture with a caption explanations point at."""

from collections.abc import Mapping

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.records import DataEntry, Model, Study
from saliency_assay.studies.caption.settings import CaptionStudy

METRICS = ("infidelity_halves", "block_attribution")
"""The metrics of a caption study; both stand for themselves in the configuration."""


def read_caption_study(
    name: str,
    entry: CaptionStudy,
    methods: tuple[str, ...],
    data: Mapping[str, DataEntry],
    models: Mapping[str, Model],
) -> Study:
    """The study ``name``: both models are explained on the images that the first was trained for.

    Raises:
        ConfigError: a model that does not exist or is not trained on pictures with captions, or of other classes.
    """
    place = f"studies.{name}"
    both = {f"{captioned.name}_both": captioned for captioned in data.values() if captioned.source}
    found = []
    for role, name_of_model in (("image_model", entry.image_model), ("caption_model", entry.caption_model)):
        model = look_up(f"{place}.{role}", "model", name_of_model, models)
        look_up(f"{place}.{role}: {model.name}: data", "set with pictures and captions", model.data, both)
        found.append(model)
    if found[0] == found[1]:
        raise ConfigError(f"{place}.caption_model: found {found[1].name} again, expected another model")
    first, second = (both[model.data] for model in found)
    known = [(data.source, data.classes, data.captions) for data in (first, second)]
    if known[0] != known[1]:
        (expected, as_first), (other, as_second) = zip(found, map(_known, (first, second)), strict=True)
        raise ConfigError(
            f"{place}.caption_model: {other.name} knows {as_second}, expected {as_first} as {expected.name}"
        )
    return Study(name, "caption", found[0].data, tuple(model.name for model in found), methods, METRICS)


def _known(data: DataEntry) -> str:
    words = "" if data.captions == data.classes else f", called {' and '.join(data.captions)}"
    return f"{' and '.join(data.classes)} of {data.source}{words}"

"""A study of kind ``caption`` in the configuration."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.data import CaptionData, DataEntry
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.studies import Study

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration


class CaptionStudy(Study):
    """Comparison of two models of captioned images: one uses the picture, one the caption."""

    kind: Literal["caption"] = Field(description="The kind of study.")
    image_model: str = Field(description="Model that uses the picture, trained on a set `NAME_both`.")
    caption_model: str = Field(
        description="Model that uses the caption, trained on the same classes and captions."
    )

    def complete_kind(self, config: "Configuration") -> None:
        """Check the models, which are explained on the training set of the first.

        Raises:
            ConfigError: a model does not exist, is not trained on images with captions, or has other classes.
        """
        captioned_sets: dict[str, DataEntry] = {
            f"{data.name}_both": data for data in config.data.values() if data.source
        }
        pair = []
        for role in ("image_model", "caption_model"):
            model = look_up(f"{self.place}.{role}", "model", getattr(self, role), config.models)
            place = f"{self.place}.{role}: {model.name}: data"
            look_up(place, "set with images and captions", model.data, captioned_sets)
            model.require_classes_of_data(f"{self.place}.{role}")
            pair.append(model)
        first, second = pair
        if first.name == second.name:
            expected = "expected another model"
            raise ConfigError(f"{self.place}.caption_model: found {second.name} again, {expected}")
        classes, first_classes = (_classes_text(captioned_sets[model.data]) for model in (second, first))
        if classes != first_classes:
            raise ConfigError(
                f"{self.place}.caption_model: {second.name} has the classes {classes}, "
                f"expected {first_classes}, as {first.name}"
            )
        self.data, self.models = first.data, (first.name, second.name)
        self.evaluated = {model.name: captioned_sets[model.data].sets for model in pair}


def _classes_text(data: DataEntry) -> str:
    """Return the classes, their set and their captions as text."""
    assert isinstance(data, CaptionData)
    words = "" if data.captions == data.classes else f", called {' and '.join(data.captions)}"
    return f"{' and '.join(data.classes)} of {data.source}{words}"

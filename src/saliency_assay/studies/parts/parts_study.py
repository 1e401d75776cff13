"""A study of kind ``parts`` in the configuration."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import INTEGER
from saliency_assay.config.studies import Study

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

DATA = "birds"
"""Kind of data whose images can be rendered without parts."""


class PartsStudy(Study):
    """FunnyBirds' protocols on one model's maps."""

    kind: Literal["parts"] = Field(description="The kind of study.")
    model: str = Field(description="The explained model, on its own data set of kind `birds`.")
    dilation: Annotated[int, Field(ge=0, le=16), INTEGER] = Field(
        1,
        description="Pixels by which parts and objects are enlarged before their attribution is summed "
        "([FunnyBirds](parts.md): 2 of 256 pixels).",
    )

    def complete_kind(self, config: "Configuration") -> None:
        """Check the model.

        Raises:
            ConfigError: the model does not exist, has classes of its own, or is trained on images without parts.
        """
        model = look_up(f"{self.place}.model", "model", self.model, config.models)
        self.data, self.models = model.data, (model.name,)
        kind = config.sets[model.data].kind
        if kind != DATA:
            raise ConfigError(
                f"{self.place}.model: found {model.name}, trained on images of kind {kind}; valid: a model trained on"
                f" images of kind {DATA}, which can be rendered without parts"
            )
        if model.classes is not None or model.multi_label:
            found = "multi_label" if model.multi_label else "classes"
            raise ConfigError(
                f"{self.place}.model: found {model.name} with the key {found}; valid: a model with one output for each"
                " class of its data"
            )

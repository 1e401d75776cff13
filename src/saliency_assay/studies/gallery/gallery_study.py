"""A study of kind ``gallery`` in the configuration."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.studies import Study

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration


class GalleryStudy(Study):
    """Maps of one model, without scores."""

    kind: Literal["gallery"] = Field(description="The kind of study.")
    model: str = Field(description="The explained model, on its own data set.")

    def complete_kind(self, config: "Configuration") -> None:
        """Check the model.

        Raises:
            ConfigError: the model does not exist.
        """
        model = look_up(f"{self.place}.model", "model", self.model, config.models)
        self.data, self.models = model.data, (model.name,)

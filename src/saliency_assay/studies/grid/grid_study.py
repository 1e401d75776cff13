"""A study of kind ``grid`` in the configuration."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import INTEGER, NUMBER, Distinct
from saliency_assay.config.studies import Study

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

Setting = Literal["gridpg", "difull", "dipart"]


class GridStudy(Study):
    """Localization of one model's maps in grids of its test images."""

    kind: Literal["grid"] = Field(description="The kind of study.")
    model: str = Field(description="The explained model.")
    settings: Annotated[Distinct[Setting], Field(min_length=1)] = Field(
        ("gridpg", "difull", "dipart"),
        description="[Settings](grid.md): what a cell's logits depend on.",
    )
    cells: Annotated[int, Field(ge=2, le=8), INTEGER] = Field(
        2, description="Images in a row and in a column of a grid; 3 in the paper."
    )
    grids: Annotated[int, Field(ge=2, le=100_000), INTEGER] = Field(100, description="Number of grids.")
    confidence: Annotated[float, Field(ge=0, lt=1), NUMBER] = Field(
        0.99,
        description="Smallest probability of the correct class for a single image to be used.",
    )
    seed: Annotated[int, Field(ge=0), INTEGER] = Field(0, description="Seed of the selection of images.")

    def complete_kind(self, config: "Configuration") -> None:
        """Check the model, and set the data and the models of the study.

        Raises:
            ConfigError: the model does not exist, has several classes per image or, in DiPart, no CAM layer.
        """
        model = look_up(f"{self.place}.model", "model", self.model, config.models)
        if model.multi_label:
            raise ConfigError(
                f"{self.place}.model: found {model.name}, whose images may have several classes; expected a model of "
                "exclusive classes, since the images of a grid have different ones"
            )
        if not model.cam_layer and set(self.settings) - {"difull"}:
            raise ConfigError(
                f"{self.place}.settings: found {', '.join(self.settings)} with {model.name}, which has no cam_layer; "
                "valid: difull"
            )
        self.data, self.models = model.data, (model.name,)
        self.figure_values = tuple({"setting": setting} for setting in self.settings)

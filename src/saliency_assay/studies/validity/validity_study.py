"""A study of kind ``validity`` in the configuration."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import INTEGER, NUMBER, Distinct
from saliency_assay.config.scored_study import ScoredStudy
from saliency_assay.config.sweeps import with_members

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

Degradation = Literal["noise", "shuffle", "removal", "blur"]
DEGRADATIONS: tuple[Degradation, ...] = ("noise", "shuffle", "removal", "blur")
Count = Annotated[int, Field(ge=1, le=1000), INTEGER]
Size = Annotated[float, Field(gt=0), NUMBER]
SmallAndLarge = Annotated[list[Size], Field(min_length=2, max_length=2)]


class ValidityStudy(ScoredStudy):
    """Validity and reliability of metrics on one model's maps."""

    kind: Literal["validity"] = Field(description="The kind of study.")
    images: Count = Field(
        50,
        description="Explained images for degraded maps, changed models and changed images.",
    )
    degraded_methods: Annotated[Distinct[str], Field(min_length=1)] = Field(
        (),
        description="Methods whose maps are degraded; by default all that use the model.",
    )
    degradations: Distinct[Degradation] = Field(
        DEGRADATIONS,
        description="Ways to degrade maps ([known order](validity.md#known-order)); `[]` for none.",
    )
    levels: Annotated[int, Field(ge=2, le=20), INTEGER] = Field(
        5, description="Number of degraded maps of each kind, in addition to the original map."
    )
    iterations: Annotated[int, Field(ge=0, le=100), INTEGER] = Field(
        3,
        description="Repetitions of [meta-consistency](validity.md#meta-consistency); 0 for none.",
    )
    perturbations: Count = Field(
        5, description="Number of changed models, and of changed images, in each repetition (K)."
    )
    model_noise: SmallAndLarge = Field(
        [0.001, 2.0],
        description="Small and large standard deviation of the random factors (mean 1) that multiply the weights.",
    )
    input_noise: SmallAndLarge = Field(
        [0.001, 5.0],
        description="Small and large amplitude of the uniform noise added to pixels in [0, 1].",
    )

    def complete_kind(self, config: "Configuration") -> None:
        """Check model, metrics, degraded methods and noise.

        Raises:
            ConfigError: a model, metric or method does not exist, a metric needs masks that the images lack, or a large
                noise is not larger than the small one.
        """
        super().complete_kind(config)
        place = f"{self.place}.degraded_methods"
        self.degraded_methods = with_members(place, self.degraded_methods, config.methods)
        for method in self.degraded_methods:
            look_up(place, "method", method, dict.fromkeys(self.methods))
        for key in ("model_noise", "input_noise"):
            small, large = getattr(self, key)
            if not small < large:
                valid = "[small, large] with small < large"
                raise ConfigError(f"{self.place}.{key}: found [{small:g}, {large:g}]; valid: {valid}")
        if not self.degradations and not self.iterations:
            expected = "expected at least one of both"
            raise ConfigError(f"{self.place}: found no degradations and iterations: 0, {expected}")

"""A study of kind ``retrain`` in the configuration."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import INTEGER, NUMBER, Derived, Distinct, OrAbsent, Positive, Settings
from saliency_assay.config.studies import Study
from saliency_assay.studies.retrain.parameters import (
    GROWING,
    INTERPOLATED,
    Fill,
    iterations,
    transform_from,
)

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

Protocol = Literal["iteroar", "roar", "roar_lerf"]
Reduction = Literal["sum", "abs_sum", "abs_max", "positive_sum", "squared_sum", "visual"]


class LeakageSettings(Settings):
    """Classifiers that are trained on masks alone."""

    repeats: Annotated[int, Field(ge=2), INTEGER] = Field(
        3,
        description="Pairs of classifiers per seed: one trained on class labels, the other on permuted labels.",
    )
    iterations: OrAbsent[Distinct[Positive]] = Field(
        None,
        min_length=1,
        description="The iterations i whose data sets D_i are tested; by default the first and the last.",
    )


class RetrainStudy(Study):
    """Retraining of a model on images without their most salient pixels ([Retraining](retrain.md))."""

    kind: Literal["retrain"] = Field(description="The kind of study.")
    model: str = Field(
        description="The original model f_0. Every retrained model f_i has the settings and initial weights of f_0."
    )
    protocols: Distinct[Protocol] = Field(
        ("iteroar",),
        min_length=1,
        description="`iteroar` computes new maps for every f_i; `roar` uses those of f_0; `roar_lerf` also uses"
        " those of f_0, but occludes the least important pixels first.",
    )
    fills: Distinct[Fill] = Field(
        ("zero", "mean"),
        min_length=1,
        description="Fill of occluded pixels: black, the mean color under the mask, or ROAD's noisy linear"
        " interpolation.",
    )
    percentile: Annotated[float, Field(gt=0, lt=100), NUMBER] = Field(
        95, description="τ: an iteration occludes the pixels above this percentile of the map."
    )
    occluded: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.5,
        description="ρ: the share of the image occluded in the end; a multiple of 1 − τ/100.",
    )
    reduction: Reduction = Field("sum", description="[Reduction](metrics.md#reductions) of maps.")
    reductions: dict[str, Reduction] = Field(
        {}, description="Reductions for individual methods, by method name."
    )
    transform: dict[Any, Any] = Field(
        {"kind": "none"},
        description="[Mask transform](retrain.md#mask-transforms) that reduces leakage: a `kind` and its parameters.",
    )
    keep_maps: bool = Field(False, description="Store the maps, too, not only the masks.")
    shards: Positive = Field(
        1,
        description="Number of [shards](retrain.md#shards) of an iteration's masks, each with its own job.",
    )
    leakage: OrAbsent[LeakageSettings] = Field(
        None, description="Settings of [leakage](retrain.md#leakage); by default, leakage is not measured."
    )

    leak_iterations: Derived[tuple[int, ...]] = ()
    """The i of the D_i on whose masks classifiers are trained; empty if leakage is not measured."""

    def complete_kind(self, config: "Configuration") -> None:
        """Check the model, and the settings of masks and leakage.

        Raises:
            ConfigError: values are inconsistent, a method is not in the study, or the model is not trained.
        """
        model = look_up(f"{self.place}.model", "model", self.model, config.models)
        model.require_classes_of_data(f"{self.place}.model")
        if model.finetuned_from:
            actual = f"{model.name}, which is trained from the weights of {model.finetuned_from}"
            expected = f"expected a model whose training can be repeated, such as {model.finetuned_from}"
            raise ConfigError(f"{self.place}.model: found {actual}; {expected}")
        if not model.training["epochs"]:
            actual = f"{model.name}, whose training.epochs is 0"
            expected = "expected a model with epochs, to be retrained"
            raise ConfigError(f"{self.place}.model: found {actual}; {expected}")
        for method in self.reductions:
            look_up(f"{self.place}.reductions", "method of the study", method, dict.fromkeys(self.methods))
        try:
            self.complete_masks()
        except ValueError as error:
            raise ConfigError(f"{self.place}.{error}") from None
        self.data, self.models = model.data, (model.name,)
        self.options = ("leakage",) if self.leak_iterations else ()
        self.figure_values = tuple(
            {"protocol": protocol, "fill": fill} for protocol in self.protocols for fill in self.fills
        )

    def complete_masks(self) -> None:
        """Set the parameters of the mask transform and the iterations whose leakage is measured.

        Raises:
            ValueError: inconsistent settings; the message begins with the key.
        """
        # Numbers of one value are one setting: 95 and 95.0 must not rerun jobs.
        self.percentile, self.occluded = float(self.percentile), float(self.occluded)
        count = self.iterations
        self.transform = transform_from(self.transform)
        kind = self.transform["kind"]
        if INTERPOLATED in self.fills and kind in GROWING:
            raise ValueError(
                f"fills: found {INTERPOLATED!r} with transform {kind!r}, which may leave no pixel to interpolate from; "
                "valid: zero, mean"
            )
        if self.leakage:
            self.leak_iterations = tuple(sorted(self.leakage.iterations or {1, count}))
            if (last := self.leak_iterations[-1]) > count:
                raise ValueError(f"leakage.iterations: found {last}, expected integers from 1 to {count}")

    @property
    def iterations(self) -> int:
        """I, the number of consecutive masks.

        Raises:
            ValueError: ``occluded`` ρ is no multiple of the share of a mask, 1 − τ/100.
        """
        return iterations(self.percentile, self.occluded)

    @property
    def repeats(self) -> int:
        """Classifiers trained per seed and iteration on the images' labels, and as many on permuted labels."""
        return (self.leakage or LeakageSettings()).repeats

    def reduction_of(self, method: str) -> str:
        """Return the reduction of a method's maps to one value per pixel."""
        return self.reductions.get(method, self.reduction)

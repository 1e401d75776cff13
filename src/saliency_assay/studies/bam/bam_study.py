"""A study of kind ``bam`` in the configuration."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.data import ComposedData
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import Distinct, OrAbsent, Positive, Settings
from saliency_assay.config.methods import Method
from saliency_assay.config.models import Model
from saliency_assay.config.studies import Study
from saliency_assay.data.bam.set_names import classes_of

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration


class IndependenceSettings(Settings):
    """Measurement of [IIR](metrics/bam.md#iir)."""

    model: str = Field(description="The explained model. In the paper, it is trained on `NAME_0s`.")
    images: Positive = Field(
        300,
        description="Maximum number of test images; all contain the common object.",
    )


class BamStudy(Study):
    """Comparison of two models trained on object labels and scene labels of the same images."""

    kind: Literal["bam"] = Field(description="The kind of study.")
    data: str = Field(description="Entry of kind `bam` or `synthetic`, here called `NAME`.")
    object_model: str = Field(description="f_o, the model trained on the object labels of `NAME_os`.")
    scene_model: str = Field(description="f_s, the model trained on the scene labels of `NAME_os`.")
    robustness: Distinct[Literal["scale", "location"]] = Field(
        (),
        description="Variants of `NAME_os` for MCS and IDR: other object sizes (`scale`) or places (`location`).",
    )
    series: Annotated[Distinct[str], Field(min_length=2)] = Field(
        (),
        description="Models of the [commonality series](bam.md#commonality-series) in order of k, ending at 1, each "
        "trained on the scene labels of a set `NAME_os_kNN`.",
    )
    independence: OrAbsent[IndependenceSettings] = Field(
        None,
        description="Settings of IIR; by default, IIR is not measured.",
    )
    concepts: bool = Field(False, description="Measure TCAV, with the common object as the concept.")

    def complete_kind(self, config: "Configuration") -> None:
        """Check that the models of the study were trained on the right data and labels.

        Raises:
            ConfigError: data, a model or an object does not exist or is not of the required kind, a method is called
                ``tcav``, or a method needs a background, which the images of input independence do not have.
        """
        place = self.place
        bam_data = {name: entry for name, entry in config.data.items() if isinstance(entry, ComposedData)}
        data = look_up(f"{place}.data", "BAM data", self.data, bam_data)
        if self.independence or self.concepts:
            common_place = f"data.{data.name}.common_object"
            look_up(common_place, "object", data.common_object, dict.fromkeys(data.objects))
        self.models = (self.object_model, self.scene_model)
        for label, model_name in zip(("object", "scene"), self.models, strict=True):
            model = look_up(f"{place}.{label}_model", "model", model_name, config.models)
            _check_training(f"{place}.{label}_model", model, f"{data.name}_os", label)
        _check_series(f"{place}.series", self.series, data, config.models)
        self._check_methods(config.methods)
        variants = [f"{data.name}_os_{variant}" for variant in self.robustness]
        main_sets = [f"{data.name}_{member}" for member in ("os", "0s", "og")]
        evaluated = {model: [*main_sets, *variants] for model in self.models}
        for model_name in self.series:
            evaluated.setdefault(model_name, []).append(f"{data.name}_0s_k")
        if self.independence:
            _check_independence(f"{place}.independence.model", self.independence.model, data, config.models)
            self.pair_sets = {delta_set(self.name, seed): self.independence.images for seed in config.seeds}
            evaluated.setdefault(self.independence.model, []).append(f"{data.name}_0s")
        self.evaluated = {model: tuple(sets) for model, sets in evaluated.items()}
        options = {"series": self.series, "concepts": self.concepts, "independence": self.independence}
        self.options = tuple(option for option, is_enabled in options.items() if is_enabled)

    def _check_methods(self, methods: Mapping[str, Method]) -> None:
        """Check that the methods can be used with the options of the study."""
        place = f"{self.place}.methods"
        if self.concepts and "tcav" in self.methods:
            raise ConfigError(
                f"{place}: found 'tcav', which is the name of concepts in the study's tables; rename it"
            )
        for name in self.methods:
            if self.independence and methods[name].background:
                reason = (
                    "uses training images as its background, which the images of independence do not include"
                )
                raise ConfigError(f"{place}: {name} {reason}; remove one of the two")


def delta_set(study: str, seed: int | str) -> str:
    """Return the name of the set of a study's images with and without an invariant patch."""
    return f"{study}_delta_seed{seed}"


def _check_series(
    place: str, names: tuple[str, ...], data: ComposedData, models: Mapping[str, Model]
) -> None:
    """Check that commonality increases from model to model, up to a model with the object in every class."""
    if not names:
        return
    series = [look_up(f"{place}.{index}", "model", name, models) for index, name in enumerate(names)]
    prefix = f"{data.name}_"
    series_sets = [name for name in data.sets if name.startswith(f"{prefix}os_k")]
    if not series_sets:
        raise ConfigError(f"data.{data.name}.commonality: missing, expected several k for {place}")
    for index, model in enumerate(series):
        model.require_classes_of_data(f"{place}.{index}")
        if model.data not in series_sets or model.trained_on != "scene":
            expected = f"expected the scene label and one of {', '.join(series_sets)}"
            actual = f"{model.name} is trained on {model.data} with the {model.trained_on} label"
            raise ConfigError(f"{place}.{index}: {actual}, {expected}")
    classes = [classes_of(model.data.removeprefix(prefix)) for model in series]
    for index, (before, after) in enumerate(pairwise(classes), start=1):
        if after <= before:
            actual = f"{names[index]} on {series[index].data} after {series[index - 1].data}"
            raise ConfigError(f"{place}.{index}: found {actual}, expected k to increase")
    if classes[-1] != len(data.scenes):
        actual = f"{names[-1]} on {series[-1].data}"
        expected = f"expected a model of k = 1, on {prefix}os_k{len(data.scenes):02d}"
        raise ConfigError(
            f"{place}.{len(names) - 1}: found {actual}, {expected}, with which the others are compared"
        )


def _check_independence(place: str, name: str, data: ComposedData, models: Mapping[str, Model]) -> None:
    """Check that the model of input independence is trained on a set of the study's data."""
    model = look_up(place, "model", name, models)
    model.require_classes_of_data(place)
    if model.data not in data.sets:
        actual = f"{model.name}, which is trained on {model.data}"
        raise ConfigError(f"{place}: found {actual}; expected one of {', '.join(data.sets)}")


def _check_training(place: str, model: Model, data: str, label: str) -> None:
    """Check the data and the label that a model was trained on."""
    model.require_classes_of_data(place)
    if (model.data, model.trained_on) != (data, label):
        actual = f"trained on {model.data} with the {model.trained_on} label"
        raise ConfigError(f"{place}: {model.name} is {actual}, expected {data} and {label}")

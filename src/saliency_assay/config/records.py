"""Typed records of a checked configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from saliency_assay.registry.records import Parameter
from saliency_assay.registry.study_kind import StudyKind

Parameters = dict[str, Any]
BaselineSubset = Literal["with", "without"]


@dataclass(frozen=True)
class Catalog:
    """All registries, by name. ``catalog.CATALOG`` is the one of the package."""

    data_kinds: Mapping[str, Any]
    architectures: Mapping[str, Any]
    methods: Mapping[str, Any]
    metrics: Mapping[str, Any]
    training: Mapping[str, Parameter]
    study_kinds: Mapping[str, StudyKind]


@dataclass(frozen=True)
class DataEntry:
    """One entry under ``data``, which provides one set for each of ``members``, or without members one of its name."""

    name: str
    label: str
    """Name in figures, tables and pages, as in all entries."""
    kind: str
    function: str
    max_explained_images: int
    explanation_order: str
    shards: int
    """Number of shards in which the images of a set are explained and scored; see ``shards_of``."""
    resident_limit: float
    """Gigabytes of training images that are kept on the device."""
    labels: tuple[str, ...]
    members: tuple[str, ...]
    """Sets that it provides, without the name of the entry."""
    member_labels: Mapping[str, str]
    parameters: Parameters
    coco: tuple[tuple[str, str], ...] = ()
    miniplaces: str = ""
    objects: tuple[str, ...] = ()
    scenes: tuple[str, ...] = ()
    common_object: str = ""
    """For composed kinds: the object of the commonality series, of the patch δ and of the TCAV concept."""
    files: tuple[str, ...] = ()
    """Lists and files with a fixed name that the kind reads; their content is part of the settings of jobs."""
    masks: bool = False
    """True if its images have masks of an object or a caption."""
    source: str = ""
    """For kind ``caption``: the set of the images without captions."""
    classes: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets that it provides."""
        return tuple(f"{self.name}_{member}" for member in self.members) or (self.name,)

    @property
    def labels_of_sets(self) -> dict[str, str]:
        """Label of each set that it provides."""
        if not self.members:
            return {self.name: self.label}
        return {
            f"{self.name}_{member}": f"{self.label} ({self.member_labels[member]})".replace(") (", ", ")
            for member in self.members
        }

    def labels_of(self, name: str) -> tuple[str, ...]:
        """Return the labels of the images of the set ``name``.

        Sets of the commonality series contain at most one kind of object, so they have no object label.
        """
        return ("scene",) if self.is_common(name) else self.labels

    def is_common(self, name: str) -> bool:
        """Return True if the set ``name`` belongs to the commonality series: one object, in some scene classes."""
        member = name.removeprefix(f"{self.name}_")
        return bool(self.members) and (member == "0s_k" or member.startswith("os_k"))

    def shards_of(self, name: str) -> int:
        """Return the number of shards of the set ``name``.

        Sets of the commonality series are never split, because only one of their scene classes is explained.
        """
        return 1 if self.is_common(name) else self.shards


@dataclass(frozen=True)
class Model:
    """One entry under ``models``."""

    name: str
    label: str
    architecture: str
    function: str
    cam_layer: str
    concept_layers: tuple[str, ...]
    parameters: Parameters
    data: str
    trained_on: str
    """The label of the training set that it predicts."""
    target: str
    """The class that maps explain: ``label`` or ``predicted``."""
    weights: str
    batch_size: int
    training: Parameters
    trials: tuple[Parameters, ...] = ()
    """Training parameters to select from by validation accuracy; each replaces values in ``training``."""
    head_is_pool_linear: bool = False
    """True if the logits are one linear layer over the spatial mean of ``cam_layer``, which CAM needs."""
    has_relu: bool = True
    """False for an architecture of other activations; True for a custom network, which is checked once it is built."""
    has_attention: bool = True
    """False for an architecture without attention over all tokens; True for a custom network, as ``has_relu``."""
    token_grid: tuple[int, ...] = ()
    """Rows and columns of the tokens that ``cam_layer`` returns; empty for the grid that the images suggest."""
    normalization: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Mean and standard deviation of each channel, for pixels in [0, 1]; None if the entry has none."""
    files: tuple[str, ...] = ()
    """Files that a custom function reads; their content is part of the settings of jobs."""


@dataclass(frozen=True)
class Method:
    """One entry under ``methods``: a registered method, or a custom function (then ``method`` is empty)."""

    name: str
    label: str
    method: str
    function: str
    parameters: Parameters
    needs: tuple[str, ...] = ()
    noise_group: str = ""
    """Part of the seed of its noise: methods of one group use the same samples."""
    base: "Method | None" = None
    """The method that this one smooths."""
    background: int = 0
    """Number of training images that it is passed as a background sample."""
    uses_model: bool = True
    """False for baselines that do not use the model."""
    summary: str = ""
    """Summary of a custom function, from its docstring."""
    files: tuple[str, ...] = ()
    """Files that a custom function or that of its base reads; their content is part of the settings of jobs."""

    @property
    def registered(self) -> bool:
        """True if neither the method nor the method that it smooths is a custom function."""
        return bool(self.method) and (self.base is None or self.base.registered)


@dataclass(frozen=True)
class Metric:
    """One entry under ``metrics``: a registered metric, or a custom function (then ``metric`` is empty)."""

    name: str
    label: str
    metric: str
    function: str
    parameters: Parameters
    scores_single_maps: bool
    takes: tuple[str, ...]
    responses: str
    directions: Mapping[str, str]
    """For each of its scores ``higher`` or ``lower``, which is better, or ``target X`` (``registry.directions``)."""
    labels: Mapping[str, str]
    """Label of each of its scores, as registered."""
    units: Mapping[str, str]
    """Unit or statistic of each of its scores, for axes; empty if it has none."""
    sub_variants: Mapping[str, str]
    """Patterns of the labels of sub-variants (``registry.labels``)."""
    figures: Mapping[str, Any]
    """Figures by name, each with its ``function`` and the results that it ``reads``."""
    measures: str
    """Property of a map that it measures (``registry.properties``)."""
    summary: str
    score_summaries: Mapping[str, str]
    """Description of each of its scores."""
    training: Parameters = field(default_factory=dict)
    """Training parameters of the fine-tuned model, if the metric takes one, that differ from those of the model."""
    files: tuple[str, ...] = ()
    """Files that a custom function reads; their content is part of the settings of jobs."""


@dataclass(frozen=True)
class Study:
    """One entry under ``studies``, as the reader of its kind returns it."""

    name: str
    kind: str
    data: str
    models: tuple[str, ...]
    """Models whose maps the gallery shows."""
    methods: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    """Metrics of its kind, or those that its entry selects if the kind has none."""
    label: str = ""
    """Set by ``config.read`` for all kinds of study."""
    settings: Any = None
    """Settings that are specific to its kind."""
    options: tuple[str, ...] = ()
    """Options that add outputs to those of all studies of its kind (``Outputs.option``)."""
    other_models: tuple[str, ...] = ()
    """Models that it explains in addition to ``models``."""
    evaluated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each model the sets on which it is evaluated in addition to its training set."""
    pair_sets: Mapping[str, int] = field(default_factory=dict)
    """For each set of image pairs (original and changed copy) that a rule makes for one model, the number of pairs."""
    figure_values: tuple[Mapping[str, str], ...] = ({},)
    """Values for the names in braces in ``Outputs.figures``."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Values from a paper: for each score the value of each method."""
    printed_alpha: Mapping[str, Mapping[BaselineSubset, float]] = field(default_factory=dict)
    """Values of Krippendorff's α from a paper: for each score those ``with`` and ``without`` baselines."""
    printed_correlation: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Values of Spearman's ρ from a paper: for each pair of scores the value of each method."""

    @property
    def all_models(self) -> tuple[str, ...]:
        """All models that it explains."""
        return tuple(dict.fromkeys([*self.models, *self.other_models]))


@dataclass(frozen=True)
class Reliability:
    """Settings of the reliability of metrics."""

    resamples: int
    """Bootstrap resamples for the intervals of α."""
    level: float
    """Confidence level of the intervals of α and of inter-method reliability."""
    ranks: str
    """``wins`` or ``means``: what rank sets compare."""
    margin: float | None
    """Largest difference of means of equivalent methods."""
    margin_unit: str
    """``sd`` or ``score``."""


@dataclass(frozen=True)
class Sections:
    """The sections of the configuration to which the entry of a study may refer."""

    data: Mapping[str, DataEntry]
    models: Mapping[str, Model]
    methods: Mapping[str, Method]
    metrics: Mapping[str, Metric]
    """Metrics that have an entry, and those that studies name."""
    listed_metrics: tuple[str, ...]
    """Metrics that have an entry."""
    seeds: tuple[int, ...]
    catalog: Catalog


@dataclass(frozen=True)
class Config:
    """A checked configuration."""

    results: str
    device: str
    seeds: tuple[int, ...]
    data: Mapping[str, DataEntry]
    models: Mapping[str, Model]
    methods: Mapping[str, Method]
    metrics: Mapping[str, Metric]
    studies: Mapping[str, Study]
    reliability: Reliability
    gallery_images: int
    not_computed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each study sentences on its methods and metrics that are left out because their jobs failed."""

    @cached_property
    def sets(self) -> dict[str, DataEntry]:
        """For the name of each set the entry that provides it."""
        return {name: entry for entry in self.data.values() for name in entry.sets}

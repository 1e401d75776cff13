"""Typed records of a checked configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from saliency_assay.registry.records import Parameter
from saliency_assay.registry.study_kind import StudyKind

Parameters = dict[str, Any]
Controls = Literal["with", "without"]


@dataclass(frozen=True)
class Catalogue:
    """All that a configuration may name, by name. ``catalogue.CATALOGUE`` holds what is registered."""

    data_kinds: Mapping[str, Any]
    architectures: Mapping[str, Any]
    methods: Mapping[str, Any]
    metrics: Mapping[str, Any]
    training: Mapping[str, Parameter]
    study_kinds: Mapping[str, StudyKind]


@dataclass(frozen=True)
class DataEntry:
    """One entry under ``data``. Kinds with ``members`` make a set for each, others one set of the entry's name."""

    name: str
    kind: str
    function: str
    explain: int
    explain_order: str
    shards: int
    """Parts in which the images of a set are explained and scored; see ``shards_of``."""
    resident_limit: float
    """Gigabytes of images that a training keeps whole on its device."""
    labels: tuple[str, ...]
    members: tuple[str, ...]
    parameters: Parameters
    coco: tuple[tuple[str, str], ...] = ()
    miniplaces: str = ""
    objects: tuple[str, ...] = ()
    scenes: tuple[str, ...] = ()
    common_object: str = ""
    """Of kinds that are composed: the object of the sets of several commonalities, of δ and of the concept."""
    files: tuple[str, ...] = ()
    """The files of a fixed name that the kind reads, where it reads any: their content is watched."""
    source: str = ""
    """Of kind ``caption``: the set that its pictures are from."""
    classes: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets that it makes."""
        return tuple(f"{self.name}_{member}" for member in self.members) or (self.name,)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """The labels of the images of the set ``name``: sets of one commonality have one object, or none."""
        return ("scene",) if self.is_common(name) else self.labels

    def is_common(self, name: str) -> bool:
        """Whether the set ``name`` is of the series of commonalities: one object, in some of the scenes."""
        member = name.removeprefix(f"{self.name}_")
        return bool(self.members) and (member == "0s_k" or member.startswith("os_k"))

    def shards_of(self, name: str) -> int:
        """The parts of the set ``name``: sets of one commonality, of which one scene is explained, are never split."""
        return 1 if self.is_common(name) else self.shards

    @property
    def masks(self) -> bool:
        """Whether its images come with the pixels of an object or a caption: those that were composed do."""
        return bool(self.members)


@dataclass(frozen=True)
class Model:
    """One entry under ``models``."""

    name: str
    architecture: str
    function: str
    cam_layer: str
    concept_layers: tuple[str, ...]
    parameters: Parameters
    data: str
    label: str
    target: str
    """The class that maps explain: ``label`` or ``predicted``."""
    weights: str
    batch_size: int
    training: Parameters
    trials: tuple[Parameters, ...] = ()
    """Parameters of the training to choose from by validation accuracy, in place of those in ``training``."""
    head_is_pool_linear: bool = False
    """Whether logits are one linear layer over the spatial mean of ``cam_layer``, which CAM needs."""
    normalisation: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Mean and deviation of each channel in [0, 1], where the entry says them."""


@dataclass(frozen=True)
class Method:
    """One entry under ``methods``: a registered method, or a user's function (then ``method`` is empty)."""

    name: str
    method: str
    function: str
    parameters: Parameters
    needs: tuple[str, ...] = ()
    stream: str = ""
    """What its noise is seeded by: methods of one stream see the same samples."""
    base: "Method | None" = None
    """The method that this one smooths."""
    background: int = 0
    """How many training images it is given."""
    uses_model: bool = True
    """Not so of controls."""
    summary: str = ""
    """What a user's function says of itself."""

    @property
    def registered(self) -> bool:
        """Whether all of it is the project's: no user's function, neither itself nor what it smooths."""
        return bool(self.method) and (self.base is None or self.base.registered)


@dataclass(frozen=True)
class Metric:
    """One entry under ``metrics``: a registered metric, or a user's function (then ``metric`` is empty)."""

    name: str
    metric: str
    function: str
    parameters: Parameters
    judges_single_maps: bool
    takes: tuple[str, ...]
    probe: str
    directions: Mapping[str, str]
    """Of each of its scores: ``higher`` or ``lower``, which is better, or ``target X`` (``directions``)."""
    labels: Mapping[str, str]
    """Of each of its scores, for an axis."""
    figures: Mapping[str, Any]
    """By name, each with its ``function`` and what it ``reads``."""
    summary: str


@dataclass(frozen=True)
class Study:
    """One entry under ``studies``, as the reader of its kind returns it."""

    name: str
    kind: str
    data: str
    models: tuple[str, ...]
    """Those whose maps the gallery shows."""
    methods: tuple[str, ...]
    metrics: tuple[str, ...] = ()
    """Those of its kind where that has its own, otherwise those that its entry chooses."""
    settings: Any = None
    """Settings that only its kind has."""
    options: tuple[str, ...] = ()
    """Optional parts that it has beside those of all studies of its kind (``Outputs.option``)."""
    other_models: tuple[str, ...] = ()
    """Models that it explains beside ``models``."""
    evaluated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each model the sets on which it is evaluated beside its own."""
    pair_sets: Mapping[str, int] = field(default_factory=dict)
    """Sets that its rules make for one model, of images beside their changed copies; for each the number of pairs."""
    figure_values: tuple[Mapping[str, str], ...] = ({},)
    """Values of the names in braces in ``Outputs.figures``."""
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What a paper reports: for each method the value of a score."""
    printed_alpha: Mapping[str, Mapping[Controls, float]] = field(default_factory=dict)
    """The same of α: for each score the values ``with`` and ``without`` controls."""
    printed_correlation: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """The same of Spearman's ρ: for each score and each other one the value of a method."""

    @property
    def all_models(self) -> tuple[str, ...]:
        """All models that it explains."""
        return tuple(dict.fromkeys([*self.models, *self.other_models]))


@dataclass(frozen=True)
class Reliability:
    """How the reliability of metrics is measured."""

    resamples: int
    """For the intervals of α."""
    level: float
    """Confidence level of the intervals of α and of mean correlations."""


@dataclass(frozen=True)
class Sections:
    """All that the entry of a study may name."""

    data: Mapping[str, DataEntry]
    models: Mapping[str, Model]
    methods: Mapping[str, Method]
    metrics: Mapping[str, Metric]
    """Those that have an entry, and those that studies name."""
    listed_metrics: tuple[str, ...]
    """Those that have an entry."""
    seeds: tuple[int, ...]
    catalogue: Catalogue


@dataclass(frozen=True)
class Config:
    """A whole, checked configuration."""

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

    @cached_property
    def sets(self) -> dict[str, DataEntry]:
        """Every set's name, with the entry that makes it."""
        return {name: entry for entry in self.data.values() for name in entry.sets}

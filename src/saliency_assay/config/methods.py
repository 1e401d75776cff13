"""The section ``methods``, and checks of the layers that methods need of the models of a study."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag

from saliency_assay.config.captum_classes import captum_class, captum_classes
from saliency_assay.config.checks import (
    Catalog,
    custom_parameters,
    files_of,
    look_up,
    parameters_of,
)
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.fields import (
    FILES,
    FUNCTION,
    LABEL,
    Derived,
    Distinct,
    Entry,
    Line,
    OrAbsent,
    Positive,
    Text,
    entry_kind,
)
from saliency_assay.config.models import Model
from saliency_assay.config.sweeps import SWEEP, Sweep, errors_of_family
from saliency_assay.registry.controls import UPPER_CONTROL
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.records import short_repr, unknown
from saliency_assay.registry.signatures import GENERATOR, check_call, describe_function
from saliency_assay.registry.sweeps import Member
from saliency_assay.runtime.user_files import Source

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

POSITIONAL = ("model", "images", "targets")
"""Positional arguments of a method."""
MAPS_SUFFIXES = (".npz", ".npy", ".zarr", ".zarr.zip")
WILDCARDS = ("model", "data", "seed")
"""Names in braces in the paths of maps from another program."""
RECOMPUTE = "saliency_assay.methods.stored_maps:recompute"
WITHOUT_RELU = "; or use lrp_epsilon or integrated_gradients, which need no ReLU"


class Method(Entry):
    """An entry under ``methods``: a registered method, a function, a class of captum, or maps from another program."""

    label: Line = Field("", description=LABEL)

    member: Derived[Member | None] = None
    """Its membership in a family; None for an entry without ``sweep``."""
    method: Derived[str] = ""
    """Name of the registered method; empty for a custom function and for maps from another program."""
    maps: Derived[str] = ""
    """Path of the maps from another program, with ``WILDCARDS`` in braces; empty for a method that computes maps."""
    function: Derived[str] = ""
    needs: Derived[tuple[str, ...]] = ()
    noise_group: Derived[str] = ""
    """Part of the seed of its noise: methods of one group use the same samples."""
    smoothed: Derived["Method | None"] = None
    """The method that this one smooths."""
    background: Derived[int] = 0
    """Number of training images that it is passed as a background sample."""
    takes_mask: Derived[bool] = False
    """True if it is passed the object's mask."""
    uses_model: Derived[bool] = True
    """False for methods that do not use the model."""
    control: Derived[str] = ""
    """``lower`` or ``upper`` for a control, see ``methods.Method``."""
    summary: Derived[str] = ""
    """Summary of a custom function, from its docstring."""

    def complete(self, name: str, others: "Mapping[str, Method]", catalog: Catalog) -> None:
        """Check the entry ``methods.name``, whose ``base`` may be one of ``others``, and set the derived fields.

        Raises:
            ConfigError: the entry is not valid.
        """
        raise NotImplementedError

    @property
    def is_baseline(self) -> bool:
        """True if it does not use the model and is no upper control."""
        return not self.uses_model and self.control != UPPER_CONTROL

    @property
    def registered(self) -> bool:
        """True if neither the method nor the method that it smooths is a custom function."""
        return bool(self.method) and (self.smoothed is None or self.smoothed.registered)


class RegisteredMethod(Method):
    """A registered method. Any other key is a parameter of the method."""

    model_config = ConfigDict(
        json_schema_extra={
            "additionalProperties": True,
            "not": {"anyOf": [{"required": [key]} for key in ("captum", "function", "maps")]},
        }
    )

    method: str = Field(
        "", description="The registered [method](methods.md); by default the name of the entry."
    )
    label: Line = Field("", description=LABEL)
    base: OrAbsent[str] = Field(
        None,
        description="For smoothing methods: the method to smooth, an entry or a registered method.",
    )
    background: Positive = Field(100, description="Number of training images, for methods that use them.")
    sweep: Sweep = Field({}, description=SWEEP)

    def complete(self, name: str, others: Mapping[str, Method], catalog: Catalog) -> None:
        """Check the entry, and set the fields that follow from the record of the method."""
        place = f"methods.{name}"
        is_named = "method" in self.model_fields_set
        record = look_up(place, "method", self.method if is_named else name, catalog.methods)
        keys = ("method", "label", "sweep", *(key for key in record.takes if key != "mask"))
        # Optional keys that this method does not take are passed on as parameters, to be reported as unknown keys.
        misplaced = dict.fromkeys(self.model_fields_set - {"parameters", "member", *keys})
        values = {**misplaced, **self.parameters}
        self.parameters = parameters_of(place, record.parameters, values, keys, check=record.check)
        self.smoothed = None if self.base is None else _base(place, self.base, others, catalog)
        self.name, self.label, self.method = name, label_of(name, self.label, record), record.name
        self.function, self.uses_model = record.function, record.uses_model
        self.needs = tuple(dict.fromkeys([*record.needs, *(self.smoothed.needs if self.smoothed else ())]))
        self.noise_group = record.noise_group or record.name
        self.background = self.background if "background" in record.takes else 0
        self.takes_mask, self.control = "mask" in record.takes, record.control
        self.sources = self.smoothed.sources if self.smoothed else ()


class CustomMethod(Method):
    """A custom method. Any other key is a parameter of the function."""

    function: str = Field(description=f"The function that computes maps, {FUNCTION}")
    files: Distinct[Text] = Field((), description=FILES)
    label: Line = Field("", description=LABEL)
    sweep: Sweep = Field({}, description=SWEEP)

    def complete(self, name: str, others: Mapping[str, Method], catalog: Catalog) -> None:
        """Check the call against the source code of the function, which is not run, and set the derived fields."""
        place = f"methods.{name}"
        if "method" in self.parameters:
            raise ConfigError(f"{place}: found both function and method, expected one of them")
        try:
            check_call(self.function, self.parameters, positional=POSITIONAL)
        except ValueError as error:
            raise ConfigError(f"{place}.{error}") from None
        description = describe_function(self.function, passed=(*POSITIONAL, GENERATOR))
        self.parameters = custom_parameters(place, {**description.defaults, **self.parameters})
        self.name, self.label, self.summary = name, label_of(name, self.label), description.summary
        self.noise_group = self.function
        self.sources = files_of(place, self.function, self.files)


class CaptumMethod(Method):
    """An attribution class of captum. Any other key is an argument of the class or of its `attribute`."""

    captum: Text = Field(
        description="Class in `captum.attr`, such as `GradientShap`; requires `pip install captum`. Classes that "
        "take a layer need its path as the key `layer`."
    )
    label: Line = Field("", description=LABEL)
    background: Positive = Field(
        100,
        description="Number of training images passed as `baselines`, for classes in which these have no default.",
    )
    sweep: Sweep = Field({}, description=SWEEP)

    def complete(self, name: str, others: Mapping[str, Method], catalog: Catalog) -> None:
        """Check the arguments against the source code of the class, and set the derived fields."""
        place, classes = f"methods.{name}", captum_classes()
        if not classes:
            raise ConfigError(f"{place}.captum: captum is not installed: pip install captum")
        valid = [each for each in classes if captum_class(each) is not None]
        if self.captum not in valid:
            raise ConfigError(f"{place}.captum: {unknown('class', self.captum, valid)}")
        described = captum_class(self.captum)
        assert described is not None
        for key in self.parameters:
            if key not in described.arguments:
                raise ConfigError(f"{place}.{key}: {unknown('argument', key, described.arguments)}")
        if described.takes_layer and "layer" not in self.parameters:
            raise ConfigError(f"{place}.layer: missing, expected the path of a layer for {self.captum}")
        takes_background = described.needs_baselines and "baselines" not in self.parameters
        if "background" in self.model_fields_set and not takes_background:
            raise ConfigError(
                f"{place}.background: found a value, expected none: {self.captum} takes no images"
            )
        self.background = self.background if takes_background else 0
        self.parameters = custom_parameters(place, self.parameters)
        self.name, self.label = name, label_of(name, self.label)
        self.function = self.noise_group = f"saliency_assay.adapters.captum:{self.captum}"
        self.summary = f"{self.captum} of captum"


class StoredMaps(Method):
    """Maps that another program computed."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    maps: Text = Field(
        description="The [file of maps](howto/own-maps.md) (`.npz`, `.npy`, `.zarr` or `.zarr.zip`). `{model}`, "
        "`{data}` and `{seed}` stand for model, data set and seed."
    )
    label: Line = Field("", description=LABEL)

    def complete(self, name: str, others: Mapping[str, Method], catalog: Catalog) -> None:
        """Check the keys and the form of the path, and set the derived fields."""
        place = f"methods.{name}"
        if self.parameters:
            raise ConfigError(f"{place}: {unknown('key', next(iter(self.parameters)), self.own_keys())}")
        try:
            fields = [field for _, *field in Formatter().parse(self.maps) if field[0] is not None]
            names = {f"{name}{format_spec}{conversion or ''}" for name, format_spec, conversion in fields}
        except ValueError:
            names = {"{"}
        valid = ", ".join(f"{{{wildcard}}}" for wildcard in WILDCARDS)
        if names - set(WILDCARDS) or not self.maps.endswith(MAPS_SUFFIXES):
            expected = (
                f"expected a path that ends with {' or '.join(MAPS_SUFFIXES)}; valid in braces: {valid}"
            )
            raise ConfigError(f"{place}.maps: found {short_repr(self.maps)}, {expected}")
        self.name, self.label = name, label_of(name, self.label)
        self.function = self.noise_group = RECOMPUTE
        self.summary = "Maps from another program"

    def source_of(self, model: str, data: str, seed: int | str) -> Source:
        """Return the file of the maps of a model on a set."""
        path = self.maps.format(model=model, data=data, seed=seed)
        return Source(f"methods.{self.name}.maps", path, is_folder=path.endswith(".zarr"))


def _method_kind(entry: Any) -> str:
    """Return the tag of the model that validates an entry under ``methods``."""
    kind = entry_kind(entry)
    if kind == "registered" and isinstance(entry, dict):
        return next((key for key in ("captum", "maps") if key in entry), kind)
    return kind


AnyMethod = Annotated[
    Annotated[RegisteredMethod, Tag("registered")]
    | Annotated[CustomMethod, Tag("custom")]
    | Annotated[CaptumMethod, Tag("captum")]
    | Annotated[StoredMaps, Tag("maps")],
    Discriminator(_method_kind),
]


def complete_methods(entries: Mapping[str, Method], catalog: Catalog) -> None:
    """Complete all entries, smoothing methods after the others, which their ``base`` may name."""
    smoothing = {name for name, entry in entries.items() if getattr(entry, "base", None) is not None}
    plain = {name: entry for name, entry in entries.items() if name not in smoothing}
    for name, entry in [*plain.items(), *((name, entries[name]) for name in entries if name in smoothing)]:
        with errors_of_family("methods", name, entry.member):
            entry.complete(name, plain if name in smoothing else {}, catalog)


def _base(place: str, name: str, others: Mapping[str, Method], catalog: Catalog) -> Method:
    """Return the method to smooth: an entry, or a registered method with its defaults."""
    members = [other for other, entry in others.items() if entry.member and entry.member.family == name]
    if members:
        raise ConfigError(f"{place}.base: found {name}, which is a sweep; valid: {', '.join(members)}")
    if name not in others and name in catalog.methods:
        base: Method = RegisteredMethod()
        base.complete(name, {}, catalog)
    else:
        base = look_up(f"{place}.base", "method", name, others)
    if base.maps:
        problem = f"found {name}, whose maps are from another program"
        raise ConfigError(f"{place}.base: {problem}; expected a method that computes maps, such as gradient")
    record = catalog.methods.get(base.method)
    takes_background = "takes a background" if base.background else ""
    if reason := record.unsmoothable if record else takes_background:
        problem = f"found {base.name}, which {reason}"
        raise ConfigError(f"{place}.base: {problem}; expected a method that does not, such as gradient")
    return base


def check_needs(
    study: Any,
    section: str,
    models: Mapping[str, Model],
    entries: Mapping[str, Any],
    architectures: Mapping[str, Any],
) -> None:
    """Check that the models of a study have what its ``methods`` or ``metrics``, the ``section``, need.

    Raises:
        ConfigError: a model lacks what an entry needs, such as a layer.
    """
    for name in (name for name in getattr(study, section) if name in entries):
        for model in study.all_models:
            problem = unsupported(entries[name].needs, models[model])
            if problem:
                architecture = models[model].architecture
                if architecture not in architectures and not models[model].cam_layer:
                    valid = f"models.{model}.cam_layer set to one"
                else:
                    suitable = (
                        other
                        for other, record in architectures.items()
                        if not unsupported(entries[name].needs, record)
                    )
                    valid = ", ".join(suitable) or "none"
                raise ConfigError(
                    f"studies.{study.name}.{section}: {name} {problem}, which {architecture} (models.{model}) does not "
                    f"have; valid: {valid}{WITHOUT_RELU if 'ReLU' in problem else ''}"
                )


def check_masks(study: Any, config: "Configuration") -> None:
    """Check that the images of a study have masks if one of its methods takes them.

    Raises:
        ConfigError: the images have no masks, or the study computes maps of further images.
    """
    kinds = config.catalog.study_kinds
    for name in study.methods:
        if not config.methods[name].takes_mask:
            continue
        place = f"studies.{study.name}.methods: found {name}, the object's mask,"
        if not kinds[study.kind].takes_stored_maps:
            valid = ", ".join(kind.name for kind in kinds.values() if kind.takes_stored_maps)
            raise ConfigError(
                f"{place} in a study of kind {study.kind}, which computes further maps; valid: studies of kinds {valid}"
            )
        for data in dict.fromkeys(config.models[model].data for model in study.models):
            if data not in config.masked_sets:
                sets = ", ".join([*config.masked_sets, "image files with the key masks (docs/data.md)"])
                raise ConfigError(f"{place} which the set {data} does not have; valid: {sets}")


def stored_maps(config: "Configuration") -> Iterator[Source]:
    """Yield the files of maps from another program, after checking that their studies need no other maps.

    Raises:
        ConfigError: a kind of study computes further maps, or a file is that of several models, sets or seeds.
    """
    kinds = config.catalog.study_kinds
    for study in config.studies.values():
        for name in study.methods:
            if config.methods[name].maps and not kinds[study.kind].takes_stored_maps:
                valid = ", ".join(kind.name for kind in kinds.values() if kind.takes_stored_maps)
                raise ConfigError(
                    f"studies.{study.name}.methods: found {name}, whose maps are from another program, in a study of "
                    f"kind {study.kind}, which computes further maps; valid: studies of kinds {valid}"
                )
    for method in config.methods.values():
        if isinstance(method, StoredMaps):
            yield from _files_of_maps(method, config)


def _files_of_maps(method: StoredMaps, config: "Configuration") -> Iterator[Source]:
    """Yield the files of a method, after checking that the maps in each are those of one model on one set."""
    users = dict[str, tuple[str, ...]]()
    for study in (study for study in config.studies.values() if method.name in study.methods):
        for name, seed in product(study.models, config.seeds):
            model, source = config.models[name], method.source_of(name, study.data, seed)
            user = (name, study.data, str(seed) if model.is_trained else "")
            for key, first, second in zip(WILDCARDS, users.setdefault(source.path, user), user, strict=True):
                if first != second:
                    expected = f"expected {{{key}}} in the path"
                    raise ConfigError(
                        f"{source.place}: found {method.maps!r} for {key} {first} and {key} {second}; {expected}"
                    )
            yield source


def unsupported(needs: Iterable[str], architecture: Any) -> str:
    """Return a phrase for the first of ``needs`` that an architecture or model does not meet; empty if it meets all."""
    if "exact_importance" in needs and not architecture.is_designed:
        return "needs an exact importance of pixels by construction"
    if "cam_layer" in needs and not architecture.cam_layer:
        return "needs a layer for class activation maps"
    if "pool_linear_head" in needs and not architecture.head_is_pool_linear:
        return "needs a head of average pooling and one linear layer"
    if "attention" in needs and not architecture.has_attention:
        return "needs attention over all tokens of an image"
    if "relu" in needs and not architecture.has_relu:
        return "needs a ReLU"
    return ""

"""The key ``sweep`` of methods and metrics, which makes an entry a family (``registry.sweeps``)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import WithJsonSchema

from saliency_assay.config.errors import ConfigError
from saliency_assay.registry.labels import label_of
from saliency_assay.registry.sweeps import LEAST_IMAGES, LEAST_VALUES, Family, Member, families_of, members_of

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

E = TypeVar("E", bound=Any)
Values = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": ["boolean", "number", "string"]},
            "minItems": LEAST_VALUES,
            "uniqueItems": True,
        }
    ),
]
Sweep = dict[str, Values]
SWEEP = "Values of parameters to compare; see [Sweeps](#sweeps)."


def expanded(section: str, entries: Mapping[str, E], records: Mapping[str, Any]) -> dict[str, E]:
    """Return the entries of a section with the members of each family in its place.

    Args:
        section: ``methods`` or ``metrics``.
        entries: the entries before they are completed.
        records: the registered methods or metrics.

    Raises:
        ConfigError: a sweep is not valid, or a member has the name of another entry.
    """
    key, complete = section.removesuffix("s"), dict[str, E]()
    for name, entry in entries.items():
        members = {name: entry}
        if "sweep" in entry.model_fields_set:
            members = _members(section, key, name, entry, records)
        for member in members:
            if member in complete or (member != name and member in entries):
                raise ConfigError(
                    f"{section}.{name}.sweep: found {member}, the name of another entry, expected other names"
                )
        complete |= members
    return complete


def _members(section: str, key: str, name: str, entry: E, records: Mapping[str, Any]) -> dict[str, E]:
    place = f"{section}.{name}"
    is_registered = key in type(entry).own_keys()
    registered = (getattr(entry, key) or name) if is_registered else ""
    record = records.get(registered)
    if record and section == "metrics" and not record.scores_single_maps:
        raise ConfigError(f"{place}.sweep: found with {registered}, expected with a metric of single maps")
    label = label_of(name, entry.label, record)
    for parameter in entry.sweep:
        if parameter in entry.own_keys():
            raise ConfigError(f"{place}.sweep.{parameter}: found a key of the entry, expected a parameter")
    try:
        members = members_of(place, name, label, entry.sweep, entry.parameters)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return {
        member.name: entry.model_copy(
            update={
                "label": member.label,
                "parameters": {**entry.parameters, **member.values},
                "member": member,
                **({key: registered} if is_registered else {}),
            }
        )
        for member in members
    }


@contextmanager
def errors_of_family(section: str, name: str, member: Member | None) -> Iterator[None]:
    """Replace the name of a member in errors by that of its family, whose entry is in the file."""
    try:
        yield
    except ConfigError as error:
        if member is None:
            raise
        text, family = str(error), f"{section}.{member.family}"
        for key in member.values:
            text = text.replace(f"{section}.{name}.{key}:", f"{family}.sweep.{key}:")
            text = text.replace(
                f"{section}.{name}: unknown key {key!r}", f"{family}.sweep: unknown key {key!r}"
            )
        raise ConfigError(text.replace(f"{section}.{name}", family)) from None


def with_members(place: str, names: Iterable[str], entries: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a study's list with the members of each family in its place.

    Raises:
        ConfigError: a member is in the list beside its family.
    """
    members: dict[str, list[str]] = {}
    for name, entry in entries.items():
        if entry.member:
            members.setdefault(entry.member.family, []).append(name)
    listed: list[str] = []
    for name in names:
        for member in members.get(name, [name]):
            if member in listed:
                raise ConfigError(f"{place}: found {member} and its family, expected one of the two")
            listed.append(member)
    return tuple(listed)


def families(names: Iterable[str], entries: Mapping[str, Any]) -> list[Family]:
    """Return the families of which a study has at least two members, from the names of its methods or metrics."""
    return families_of((name, entries[name].member) for name in names)


def check_images(study: Any, config: "Configuration") -> None:
    """Check that a study with families explains enough images to divide them.

    Raises:
        ConfigError: it explains fewer than ``LEAST_IMAGES``.
    """
    data = config.sets.get(study.data)
    rated = config.catalog.study_kinds[study.kind].is_rated
    if (
        data
        and rated
        and families(study.methods, config.methods)
        and data.max_explained_images < LEAST_IMAGES
    ):
        raise ConfigError(
            f"data.{data.name}.max_explained_images: found {data.max_explained_images}, expected at least "
            f"{LEAST_IMAGES}: values of a sweep (studies.{study.name}) are selected on half of the images"
        )

"""Every set of a BAM collection by its name: which plan it follows, and how it is composed."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from saliency_assay.data.bam.commonality import plan_common
from saliency_assay.data.bam.compose import SETS, Block, compose, compose_common
from saliency_assay.data.bam.placement import Collection, Plan, plan
from saliency_assay.data.bam.set_names import classes_of
from saliency_assay.data.bam.variants import relocated, rescaled
from saliency_assay.runtime.provenance import seed_of

VARIANTS = ("os_scale", "os_location")


def compose_member(
    collection: Collection,
    member: str,
    parameters: Mapping[str, Any],
    *,
    seed: int,
    common_object: str = "",
    block: int = 256,
) -> Iterator[Block]:
    """The images of the set ``member``, ``block`` at a time: what ``compose`` or ``compose_common`` yields.

    Args:
        member: ``os``, ``0s`` or ``og``; ``os_scale`` or ``os_location``; ``os_kNN`` or ``0s_k``.
        parameters: what ``plan`` reads, for ``os_scale`` also ``variant_smallest`` and ``variant_largest``; for a
            series, ``os_kNN`` and ``0s_k``, what ``plan_common`` reads.
        seed: of the collection; sets that are aligned draw the same from it.
        common_object: for a series.

    Raises:
        ValueError: another ``member``, or what its plan refuses.
    """
    if is_series(member):
        generator = np.random.default_rng(seed_of(seed, "compose_bam", "commonality"))
        common = plan_common(collection, common_object=common_object, **parameters, generator=generator)
        return compose_common(common, collection, classes_of(member), block=block)
    if member in VARIANTS:
        return compose(_variant(collection, member, parameters, seed), collection, "os", block=block)
    drawn = plan(collection, **parameters, generator=_generator(seed))
    return compose(drawn, collection, member, block=block)


def is_series(member: str) -> bool:
    """Whether ``member`` is one of the sets of several commonalities; those have a scene label only.

    Raises:
        ValueError: no set is called so.
    """
    if member in (*SETS, *VARIANTS):
        return False
    try:
        return classes_of(member) >= 0
    except ValueError:
        known = ", ".join((*SETS, *VARIANTS))
        raise ValueError(f"set {member!r}: expected one of {known}, os_kNN, 0s_k") from None


def _variant(collection: Collection, member: str, parameters: Mapping[str, Any], seed: int) -> Plan:
    generator, base = _generator(seed), dict(parameters)
    sizes = {name: base.pop(name) for name in ("variant_smallest", "variant_largest") if name in base}
    drawn = plan(collection, **base, generator=generator)
    # The plan took the first four children; a variant changes nothing that was drawn from them.
    scaling, locating = generator.spawn(2)
    if member == "os_location":
        return relocated(drawn, generator=locating)
    return rescaled(drawn, collection, measure=base["measure"], **sizes, generator=scaling)


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed_of(seed, "compose_bam"))

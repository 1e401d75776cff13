"""Variants of a plan: its objects in other sizes or in other places, and nothing else changed.

They show how far a metric of BAM hangs on either (Yang and Kim 2019, section 5.1: "robust to the scale and location of
objects"). The paper does not say which sizes and places.
"""

from dataclasses import replace

import numpy as np

from saliency_assay.data.bam.placement import Collection, Plan, box_sides, placed, side_range


def rescaled(
    plan: Plan,
    collection: Collection,
    *,
    measure: str,
    variant_smallest: float,
    variant_largest: float,
    generator: np.random.Generator,
) -> Plan:
    """``plan`` with longer sides drawn anew, uniformly, from another range, read as ``side_range`` does.

    Each box keeps its centre to half a pixel, or is moved by the fewest pixels that keep it inside the scene.

    Raises:
        ValueError: no whole number of pixels is in the range.
    """
    least, greatest = _sides(plan.size, measure, variant_smallest, variant_largest)
    longer = generator.integers(least, greatest, endpoint=True, size=len(plan))
    sides = np.stack(
        box_sides(collection.heights[plan.cutout], collection.widths[plan.cutout], longer), axis=1
    )
    # Halves go to the even pixel, so that boxes drift neither up nor down.
    corners = np.rint(plan.placement[:, :2] + (plan.placement[:, 2:] - sides) / 2).astype(np.int64)
    corners = np.clip(corners, 0, plan.size - sides)
    return replace(plan, placement=np.concatenate([corners, sides], axis=1))


def relocated(plan: Plan, *, generator: np.random.Generator) -> Plan:
    """``plan`` with the same boxes at places drawn anew, uniformly among those where they lie in the scene."""
    return replace(plan, placement=placed(plan.placement[:, 2], plan.placement[:, 3], plan.size, generator))


def _sides(size: int, measure: str, smallest: float, largest: float) -> tuple[int, int]:
    try:
        return side_range(size, measure=measure, smallest=smallest, largest=largest)
    except ValueError as error:
        raise ValueError(f"variant_smallest, variant_largest: {error}") from None

"""FunnyBirds' protocols: the published program, closed forms and definitions in plain loops.

``PUBLISHED`` are the results of the program of Hesse et al. (visinf/funnybirds-framework, commit 1350bbe) for the maps,
layers and logits of ``example``, at six of its 80 thresholds.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from numpy import ndarray as Array
from torch import Tensor

from saliency_assay.metrics.scored import Scored
from saliency_assay.studies.parts.classes import (
    class_table,
    contrasted_classes,
    intersection_rates,
    minimal_sufficient_sets,
)
from saliency_assay.studies.parts.protocols import (
    background_independence,
    part_importance,
    score_protocols,
    sets_of,
)
from saliency_assay.studies.parts.thresholds import (
    OF_THRESHOLDS,
    THRESHOLDS,
    best_threshold,
    part_completeness,
)

P, OBJECTS, SIZE = 5, 3, 16
SETS = 2**P
AT = (0, 16, 32, 48, 64, 79)
PUBLISHED = {
    "csdc": (0.78362573, 0.79239766, 0.80994152, 0.83918129, 0.84210526, 0.80116959),
    "preservation_check": (0.66666667, 0.57894737, 0.61403509, 0.59649123, 0.54385965, 0.45614035),
    "deletion_check": (0.52631579, 0.50877193, 0.45614035, 0.43859649, 0.38596491, 0.42105263),
    "distractibility": (0.3128655, 0.34269006, 0.38070175, 0.42222222, 0.48654971, 0.54122807),
    "background_independence": 0.83625731,
    "single_deletion": 0.46140351,
    "target_sensitivity": 0.53703704,
}


def example() -> dict[str, Array]:
    """Return random maps, layers and logits; those of images that are not correctly classified are left out."""
    generator = np.random.default_rng(20231002)
    classes, images = 20, 60
    table = np.array([[generator.integers(v) for v in (4, 3, 4, 4, 4)] for _ in range(classes)])
    labels = np.array([2, 3, 5, 7, 11, 14])[np.arange(images) % 6]
    layers = generator.integers(0, 1 + P + OBJECTS, (images, SIZE // 2, SIZE // 2)).repeat(2, 1).repeat(2, 2)
    layers[generator.random((images, SIZE, SIZE)) < 0.6] = 0
    kept = (np.arange(SETS)[:, None] >> np.arange(P)) & 1
    agree = table[labels][:, None] == table[None]
    weights = generator.uniform(0.2, 1.5, (images, classes, P))
    part_logits = np.einsum("sp,nkp->nsk", kept, agree * weights)
    part_logits = part_logits + 0.3 * generator.normal(size=(images, SETS, classes))
    object_logits = part_logits[:, -1:] + 0.2 * generator.normal(size=(images, OBJECTS, classes))
    maps = generator.normal(0.02, 1, (classes, images, 3, SIZE, SIZE)).swapaxes(0, 1)
    correct = part_logits[:, -1].argmax(1) == labels
    of_images = {
        "labels": labels,
        "layers": layers,
        "part_logits": part_logits,
        "object_logits": object_logits,
        "maps": maps,
    }
    return {"table": table, **{name: values[correct] for name, values in of_images.items()}}


def scored(case: dict[str, Array], dilation: int = 2) -> Scored:
    """Score the maps of a case; the images that the method explains again are their own numbers."""
    numbers = torch.arange(len(case["labels"]))[:, None, None, None]

    def explain(images: Tensor, targets: Tensor) -> Tensor:
        return torch.from_numpy(case["maps"])[images.flatten(), targets]

    labels = torch.from_numpy(case["labels"])
    tensors: dict[str, Any] = {
        name: torch.from_numpy(case[name]) for name in ("layers", "part_logits", "object_logits")
    }
    return score_protocols(
        lambda images: images,
        numbers,
        labels,
        explain(numbers, labels),
        generator=torch.Generator(),
        explain=explain,
        table=case["table"],
        dilation=dilation,
        **tensors,
    )


def test_means_equal_those_of_the_published_program() -> None:
    case = example()
    result = scored(case)
    for name in OF_THRESHOLDS:
        means = np.nanmean(result.curves[name].numpy(), axis=0)
        np.testing.assert_allclose(means[list(AT)], PUBLISHED[name], atol=1e-7)
    for name in ("single_deletion", "target_sensitivity"):
        assert np.nanmean(result.scores[name, ""].numpy()) == pytest.approx(PUBLISHED[name], abs=1e-7)
    independence = background_independence(
        *(torch.from_numpy(case[name]) for name in ("part_logits", "object_logits", "labels"))
    )
    assert independence.mean().item() == pytest.approx(PUBLISHED["background_independence"], abs=1e-7)


def random_table(seed: int, classes: int = 12) -> Array:
    generator = np.random.default_rng(seed)
    numbers = generator.choice(3**4, classes, replace=False)
    return np.stack(np.unravel_index(numbers, (3,) * 4), axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_minimal_sufficient_sets_follow_their_definition(seed: int) -> None:
    table = random_table(seed)
    parts = table.shape[1]
    for label, variants in enumerate(table):
        others = np.delete(table, label, axis=0)
        sufficient = [
            set(chosen)
            for size in range(parts + 1)
            for chosen in combinations(range(parts), size)
            if not (others[:, chosen] == variants[list(chosen)]).all(1).any()
        ]
        minimal = [one for one in sufficient if not any(other < one for other in sufficient)]
        numbers = sorted(sum(2**part for part in chosen) for chosen in minimal)
        assert np.flatnonzero(minimal_sufficient_sets(table)[label]).tolist() == numbers
        for number in range(2**parts):
            parts_of_set = {part for part in range(parts) if number >> part & 1}
            rate = max(len(parts_of_set & chosen) / len(chosen) for chosen in minimal)
            assert intersection_rates(table)[label, number] == pytest.approx(rate)


def test_contrasted_classes_share_two_parts_each_and_none_in_common() -> None:
    table = random_table(1, 30)
    classes, shared = contrasted_classes(table)
    assert (classes >= 0).any()
    for label, (pair, sets) in enumerate(zip(classes, shared, strict=True)):
        if pair[0] >= 0:
            own = [sum(2**p for p in range(4) if table[label, p] == table[other, p]) for other in pair]
            assert own == sets.tolist()
            assert [number.bit_count() for number in own] == [2, 2]
            assert own[0] & own[1] == 0


def test_classes_without_contrast_are_marked() -> None:
    classes, _ = contrasted_classes(np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2]]))
    assert (classes == -1).all()


def linear_case(maps_of: Callable[[Array, Array], Array]) -> dict[str, Array]:
    """Return a case in which the logit of a class is the weighted number of its parts in the image, plus 1.

    Each part has four pixels, and a map gives each of them ``maps_of(weights, agree)``, ``[N, K, P]``.
    """
    table = random_table(2, 40)
    parts, images = table.shape[1], len(table)
    labels = np.arange(images)
    weights = np.array([4.0, 3.0, 2.5, 2.0])
    agree = table[labels][:, None] == table[None]
    kept = (np.arange(2**parts)[:, None] >> np.arange(parts)) & 1
    part_logits = 1 + np.einsum("sp,nkp->nsk", kept, agree * weights)
    layers = np.zeros((images, 4, 8), dtype=np.int64)
    for part in range(parts):
        layers[:, :2, 2 * part : 2 * part + 2] = 1 + part
    layers[:, 3] = 1 + parts  # an object
    values = np.broadcast_to(maps_of(weights, agree), agree.shape)
    maps = np.zeros((images, len(table), 1, 4, 8))
    for part in range(parts):
        maps[..., :2, 2 * part : 2 * part + 2] = values[..., part, None, None, None]
    return {
        "table": table,
        "labels": labels,
        "layers": layers,
        "part_logits": part_logits,
        "object_logits": part_logits[:, -1:],
        "maps": maps,
    }


def test_the_contributions_of_a_linear_model_have_the_best_scores() -> None:
    case = linear_case(lambda weights, agree: agree * weights)
    result = scored(case, dilation=0)
    # All parts are important at the lowest threshold. Without parts, class 0 is predicted, so it is left out.
    for name in OF_THRESHOLDS:
        assert (result.curves[name][1:, 0] == 1).all()
    assert result.scores["single_deletion", ""].tolist() == pytest.approx([1] * 40)
    sensitivity = result.scores["target_sensitivity", ""]
    assert (sensitivity[~sensitivity.isnan()] == 1).all()
    assert not sensitivity.isnan().all()
    index = best_threshold([curve.numpy() for curve in result.curves.values()])
    completeness = part_completeness(*(result.curves[name][:, index].numpy() for name in OF_THRESHOLDS))
    assert index == 0
    assert (completeness[1:] == 1).all()


def test_contributions_of_the_opposite_order_have_the_lowest_correlation() -> None:
    case = linear_case(lambda weights, agree: agree / weights)
    assert scored(case, dilation=0).scores["single_deletion", ""].tolist() == pytest.approx([0] * 40)


def test_a_constant_map_has_the_scores_of_the_area_of_parts() -> None:
    case = linear_case(lambda weights, agree: np.ones_like(agree, dtype=float))
    case["maps"][:] = 1
    result = scored(case, dilation=0)
    # Each part has 4 of 32 pixels and the object 8, so that all are important below 1/8, and the object below 1/4.
    low, middle, high = THRESHOLDS < 1 / 8, (THRESHOLDS > 1 / 8) & (THRESHOLDS < 1 / 4), THRESHOLDS > 1 / 4
    for name in ("csdc", "preservation_check", "deletion_check"):
        assert (result.curves[name][1:, low] == 1).all()  # without parts, class 0 is predicted
    assert (result.curves["csdc"][:, ~low] == 0).all()
    assert (result.curves["deletion_check"][:, ~low] == 0).all()
    # The object is the only irrelevant region.
    assert (result.curves["distractibility"][:, low | middle] == 0).all()
    assert (result.curves["distractibility"][:, high] == 1).all()
    assert result.scores["single_deletion", ""].isnan().all()  # a constant importance has no order
    sensitivity = result.scores["target_sensitivity", ""]
    assert (sensitivity[~sensitivity.isnan()] == 0).all()  # the map does not depend on the class


def test_images_of_other_predictions_have_no_scores() -> None:
    case = linear_case(lambda weights, agree: agree * weights)
    case["part_logits"][0, -1, 1] = 100
    result = scored(case, dilation=0)
    for values in [*result.scores.values(), *result.curves.values()]:
        assert values[0].isnan().all()
    assert not result.scores["single_deletion", ""][1:].isnan().any()


def test_maps_with_nan_have_no_scores() -> None:
    case = linear_case(lambda weights, agree: agree * weights)
    case["maps"][3, :, 0, 0, 0] = np.nan
    result = scored(case, dilation=0)
    for values in [*result.scores.values(), *result.curves.values()]:
        assert values[3].isnan().all()


def test_importance_is_the_sum_in_the_enlarged_region() -> None:
    layers = torch.zeros(1, 7, 7, dtype=torch.uint8)
    layers[0, 3, 3] = 2
    pixels = torch.arange(49, dtype=torch.float64).reshape(1, 7, 7)
    for dilation in (0, 1, 2):
        window = slice(3 - dilation, 4 + dilation)
        expected = [0.0, pixels[0, window, window].sum().item()]
        assert part_importance(pixels, layers, 2, dilation)[0].tolist() == expected


def test_sets_are_numbers_of_their_parts() -> None:
    assert sets_of(torch.tensor([[True, False, True], [False, False, False]])).tolist() == [5, 0]


def test_the_threshold_has_the_best_means() -> None:
    curves = [np.tile(values, (2, 1)) for values in ([0.0, 0.6, 0.6], [0.3, 0.3, 0.3], [0.0, 0.0, 0.0])]
    assert best_threshold([*curves, np.tile([0.5, 0.5, 0.2], (2, 1))]) == 1
    assert best_threshold([*curves, np.tile([0.9, 0.5, 0.5], (2, 1))]) == 0
    with pytest.raises(ValueError, match="found no image with a score"):
        best_threshold([*curves, np.full((2, 3), np.nan)])


def test_the_variants_of_a_class_are_those_of_its_images() -> None:
    labels = np.array([0, 1, 0, 1])
    parts = np.array([[0, -1], [2, 1], [-1, 3], [2, 1]])
    assert class_table(labels, parts).tolist() == [[0, 3], [2, 1]]
    with pytest.raises(ValueError, match="no image with all parts of class 0"):
        class_table(labels, np.array([[0, -1], [2, 1], [-1, -1], [2, 1]]))
    with pytest.raises(ValueError, match="different variants"):
        class_table(labels, np.array([[0, 3], [2, 1], [1, 3], [2, 1]]))

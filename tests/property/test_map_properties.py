"""Reductions, ranks, masks, fills and metrics on any maps: invariances, bounds, and what is no number."""

from functools import cache

import numpy as np
import pytest
import torch
from contract.test_metrics_contract import COUNT, ON_MAPS, SIZE, Metric, scored_by
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from saliency_assay.metrics.reductions import REDUCTIONS, percentile, reduce
from saliency_assay.studies.retrain.masks import mean_under
from saliency_assay.studies.retrain.occluded import occlude

SHAPES = array_shapes(min_dims=4, max_dims=4, max_side=6)
# Whole numbers are summed without rounding, so what should be equal is equal.
WHOLE = st.integers(-1000, 1000).map(float)
MAPS = SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=WHOLE)).map(torch.from_numpy)
ANY = SHAPES.flatmap(lambda shape: arrays(np.float32, shape, elements=st.floats(width=32))).map(
    torch.from_numpy
)
BYTES = SHAPES.flatmap(lambda shape: arrays(np.uint8, shape)).map(torch.from_numpy)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(maps=MAPS, data=st.data())
def test_reductions_know_no_order(reduction: str, maps: torch.Tensor, data: st.DataObject) -> None:
    """Of images, channels or pixels."""
    reduced = reduce(maps, reduction)
    assert reduced.shape == (len(maps), *maps.shape[2:])
    for dimension, of_result in ((0, 0), (1, None), (2, 1), (3, 2)):
        order = torch.tensor(data.draw(st.permutations(range(maps.shape[dimension]))))
        expected = reduced if of_result is None else reduced.index_select(of_result, order)
        assert torch.equal(
            reduce(maps.index_select(dimension, order), reduction).nan_to_num(-1), expected.nan_to_num(-1)
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@given(maps=ANY)
def test_a_value_that_is_no_number_is_its_own_maps_alone(reduction: str, maps: torch.Tensor) -> None:
    reduced, finite = reduce(maps, reduction), maps.isfinite().flatten(1).all(1)
    assert reduced[~finite].isnan().all()
    for row in torch.arange(len(maps))[finite]:
        assert torch.equal(
            reduce(maps[row : row + 1], reduction).nan_to_num(-1), reduced[row : row + 1].nan_to_num(-1)
        )


@given(
    values=array_shapes(min_dims=2, max_dims=2, max_side=30).flatmap(
        lambda shape: arrays(np.float64, shape, elements=WHOLE)
    ),
    percent=st.integers(0, 100),
)
def test_percentiles_are_numpys(values: np.ndarray, percent: int) -> None:
    percentiles = percentile(torch.from_numpy(values), percent)
    np.testing.assert_allclose(percentiles, np.percentile(values, percent, axis=1), rtol=1e-12, atol=1e-9)


@given(images=BYTES, data=st.data())
def test_colors_are_means_rounded_half_up(images: torch.Tensor, data: st.DataObject) -> None:
    mask = torch.from_numpy(data.draw(arrays(bool, (len(images), *images.shape[2:]))))
    means = mean_under(images, mask)
    for image, where, colors in zip(images.numpy(), mask.numpy(), means.tolist(), strict=True):
        for channel, color in zip(image, colors, strict=True):
            values = [int(value) for value in channel[where]]
            assert color == ((2 * sum(values) + len(values)) // (2 * len(values)) if values else 0)
    changed = occlude(images, mask, means)
    assert torch.equal(changed.movedim(1, -1)[~mask], images.movedim(1, -1)[~mask])
    assert (changed == torch.where(mask[:, None], means[:, :, None, None], images)).all()


# ---- metrics

SCALE_FREE = {
    "aopc", "faithfulness", "necessity_sufficiency", "deletion", "insertion", "road", "sensitivity_n", "pointing_game",
    "mask_attribution", "block_attribution", "faithfulness_correlation", "region_perturbation", "irof", "monotonicity",
    "sparseness", "complexity", "random_logit", "emprt", "average_drop", "mask_overlap",
    "saco", "non_sensitivity", "effective_complexity", "mask_ranking",
}  # fmt: skip
"""Those that look at the order or the shares of a map, or correlate it: its unit is nothing to them."""


def some_maps(seed: int, coarseness: int, constant: bool) -> np.ndarray:
    """Maps of ``coarseness`` different values, and so with more or fewer ties; the last of one value on request."""
    levels = np.random.default_rng(seed).integers(-coarseness, coarseness + 1, (COUNT, 3, SIZE, SIZE))
    levels[-1] = 3 if constant else levels[-1]
    return levels.astype(np.float32) / 8


SOME_MAPS = st.builds(some_maps, st.integers(0, 2**32), st.sampled_from([1, 5, 1000]), st.booleans())


@cache
def ranges() -> dict[str, tuple[float, float]]:
    return {score.name: score.range for metric in ON_MAPS for score in metric.scores}


def scores_of(metric: Metric, maps: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    return {key: values for key, values in scored_by(metric, maps=maps).items() if isinstance(key, tuple)}


@pytest.mark.parametrize("metric", ON_MAPS, ids=lambda metric: metric.name)
@settings(max_examples=4)
@given(maps=SOME_MAPS, shift=st.integers(-12, 12))
def test_scores_lie_in_their_registered_range(metric: Metric, maps: np.ndarray, shift: int) -> None:
    scores = scores_of(metric, maps * np.float32(2.0**shift))
    assert scores
    for (name, _), values in scores.items():
        low, high = ranges()[name]
        assert values.shape == (COUNT,)
        slack = 1e-5 * max(1.0, float(np.nanmax(np.abs(values), initial=0)))
        assert (((values >= low - slack) & (values <= high + slack)) | np.isnan(values)).all(), (name, values)
    # A power of two changes no bit but the exponent's.
    if metric.name in SCALE_FREE:
        again = scores_of(metric, maps)
        for key, values in scores.items():
            np.testing.assert_allclose(values, again[key], rtol=1e-4, atol=1e-5, err_msg=str(key))


@pytest.mark.parametrize("metric", ON_MAPS, ids=lambda metric: metric.name)
@settings(max_examples=2)
@given(maps=SOME_MAPS, spoilt=st.integers(0, COUNT - 1), batch=st.integers(1, COUNT))
def test_a_spoilt_map_has_no_score_and_spoils_no_other(
    metric: Metric, maps: np.ndarray, spoilt: int, batch: int
) -> None:
    """In any batches."""
    whole, damaged = scores_of(metric, maps), maps.copy()
    damaged[spoilt, 1, 3, 4] = np.inf
    scores = {
        key: values
        for key, values in scored_by(metric, batch_size=batch, maps=damaged).items()
        if isinstance(key, tuple)
    }
    others = np.arange(COUNT) != spoilt
    for key, values in scores.items():
        assert np.isnan(values[spoilt]), key
        np.testing.assert_allclose(values[others], whole[key][others], rtol=1e-4, atol=1e-5, err_msg=str(key))

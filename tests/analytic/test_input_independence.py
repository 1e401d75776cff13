"""BAM's input independence: δ against closed forms and plain loops, its rate against worked examples."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from support import conv_classifier, generator, state_of
from test_mcs_and_idr import plain_concept
from torch import Tensor, nn

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models.classifier import Classifier
from saliency_assay.storage import zarr_store
from saliency_assay.studies.bam.input_independence import (
    INPUTS,
    REGIONS,
    input_independence,
    relative_change,
    score_independence,
    score_rows,
)
from saliency_assay.studies.bam.invariant_patch import (
    Changed,
    Descent,
    change_all,
    change_images,
    paired,
    select_images,
)
from saliency_assay.studies.bam.mcs_and_idr import random_masks

NAN = float("nan")
# ------------------------------------------------------------------------------------------ the change δ


def linear_classifier(weights: Tensor) -> Classifier:
    """Logits ``[N, K]`` that are ``weights`` ``[K, C, H, W]`` times pixels in [0, 1], without a bias."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(weights[0].numel(), len(weights), bias=False))
    network[1].weight.data = weights.flatten(1).double()
    channels = weights.shape[1]
    colors = {"mean": [0.0] * channels, "std": [1.0] * channels}
    model = Classifier(network, classes=len(weights), **colors, cam_layer="0", concept_layers=[])
    return model.double().eval()


def pictures(count: int = 5, size: int = 12, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Originals, composites and masks; the region is another box in every image."""
    chance = generator(seed)
    images = torch.randint(0, 256, (count, 3, size, size), generator=chance, dtype=torch.uint8)
    objects = torch.randint(0, 256, (count, 3, size, size), generator=chance, dtype=torch.uint8)
    masks = torch.zeros(count, size, size, dtype=torch.bool)
    for row in range(count):
        masks[row, row % 4 : row % 4 + 6, 2 : 8 + row % 3] = True
    return images, torch.where(masks[:, None], objects, images), masks


def loss(model: nn.Module, x: Tensor, delta: Tensor, settings: Descent) -> Tensor:
    """Appendix A's, of one image in 0–255."""
    change = (model((x + delta)[None] / 255) - model(x[None] / 255)).square().sum().sqrt()
    outside = (x + delta - 255).relu().sum() + (-x - delta).relu().sum()
    return change - settings.norm_weight * delta.square().sum().sqrt() + settings.range_weight * outside


def plain_start(x: Tensor, composite: Tensor, mask: Tensor, protocol: str) -> Tensor:
    dog = composite.double() if protocol == "printed" else (x + composite.double()).clamp(0, 255)
    return (dog - x) * mask


@pytest.mark.parametrize("protocol", ["printed", "released"])
def test_the_constant_step_is_gradient_descent_on_the_printed_loss(protocol: str) -> None:
    model, (images, composites, masks) = conv_classifier(), pictures()
    weights = {"norm_weight": 5e-4, "range_weight": 3e-4}
    settings = Descent(
        steps=4, step_size=4e4, protocol=protocol, step_rule="constant", tolerance=9.0, **weights
    )
    changed = change_images(model, images, composites, masks, settings)
    left_range = 0
    for row in range(len(images)):
        x, mask = images[row].double(), masks[row].double()
        start = delta = plain_start(x, composites[row], mask, protocol)
        changes = [loss(model, x, delta, Descent(norm_weight=0, range_weight=0))]
        for _ in range(4):
            leaf = delta.clone().requires_grad_()
            (slope,) = torch.autograd.grad(loss(model, x, leaf, settings), leaf)
            delta = delta - 4e4 * slope * mask
            changes.append(loss(model, x, delta, Descent(norm_weight=0, range_weight=0)))
        left_range += int(((x + delta < 0) | (x + delta > 255)).sum())
        stored = (x + delta).clamp(0, 255).round()
        np.testing.assert_array_equal(changed.image[row].double(), stored)
        expected = [each.detach().item() for each in changes]
        np.testing.assert_allclose(changed.convergence[row], expected, rtol=1e-5)
        numbers = {
            "output_norm": model(x[None] / 255).norm(),
            "output_change": (model(stored[None] / 255) - model(x[None] / 255)).norm(),
            "delta_norm": (stored - x).norm(),
            "start_distance": (stored - x - start).norm(),
        }
        for name, number in numbers.items():
            assert float(getattr(changed, name)[row]) == pytest.approx(number.detach().item(), rel=1e-5), name
    assert left_range > 10  # so that the range's term and the last clipping do something


@pytest.mark.parametrize(("protocol", "tolerance"), [("printed", 0.004), ("released", 0.0)])
def test_the_polyak_step_in_plain_code(protocol: str, tolerance: float) -> None:
    model, (images, composites, masks) = conv_classifier(), pictures()
    settings = Descent(steps=12, step_size=300.0, norm_weight=0.2, protocol=protocol, tolerance=tolerance)
    changed = change_images(model, images, composites, masks, settings)
    rested = []
    for row in range(len(images)):
        x, mask = images[row].double(), masks[row].double()
        start = delta = plain_start(x, composites[row], mask, protocol)
        f_x, changes, kept = model(x[None] / 255), [], []
        for _ in range(13):
            seen = (x + delta).clamp(0, 255).round()
            leaf = seen.clone().requires_grad_()
            change = (model(leaf[None] / 255) - f_x).norm()
            changes.append(change.detach().item())
            kept.append(seen)
            if change <= tolerance * f_x.norm():
                break
            slope = torch.autograd.grad(change, leaf)[0] * mask
            delta = delta - change.detach() / slope.square().sum() * slope + 300 * 0.2 * delta / delta.norm()
            delta = (x + delta).clamp(0, 255) - x
        rested.append(len(changes) < 13)
        best = kept[int(np.argmin(changes))]
        np.testing.assert_array_equal(changed.image[row].double(), best)
        expected = changes + changes[-1:] * (13 - len(changes))
        np.testing.assert_allclose(changed.convergence[row], expected, rtol=1e-5)
        assert float(changed.output_change[row]) == pytest.approx(min(changes), rel=1e-5)
        assert float(changed.start_distance[row]) == pytest.approx(float((best - x - start).norm()), rel=1e-5)
    assert any(rested) == (tolerance > 0)


def test_a_path_does_not_depend_on_the_batch() -> None:
    model, arrays = conv_classifier(), [each.numpy() for each in pictures(7)]
    settings = Descent(steps=9, step_size=2e4, norm_weight=1e-4, tolerance=0.02)
    whole = change_all(model, *arrays, settings, batch_size=7)
    parts = change_all(model, *arrays, settings, batch_size=3)
    assert list(whole) == list(Changed._fields)
    for name, values in whole.items():
        np.testing.assert_allclose(parts[name], values, rtol=1e-5, err_msg=name)
    assert whole["convergence"].shape == (7, 10)


def test_the_model_stays_as_it_is() -> None:
    model, (images, composites, masks) = conv_classifier().train(), pictures()
    copies = [each.clone() for each in (images, composites, masks)]
    before = state_of(model)
    change_images(model, images, composites, masks, Descent(steps=2))
    assert state_of(model) == before
    assert all(map(torch.equal, copies, (images, composites, masks)))


def test_a_model_that_ignores_the_region_leaves_the_composite() -> None:
    """There is no gradient to follow, and the output does not change: the composite itself is kept."""
    images, composites, masks = pictures(2)
    weights = torch.ones(2, 3, 12, 12) * ~masks.any(0)
    changed = change_images(linear_classifier(weights), images, composites, masks, Descent())
    assert torch.equal(changed.image, composites)
    assert not changed.convergence.any()


class Coarse(nn.Module):
    """Whole numbers, which have no gradient: a part of the brightness, rounded."""

    def forward(self, images: Tensor) -> Tensor:
        return (images.mean((2, 3))[:, :2] * 8).round()


def test_without_a_gradient_the_first_of_equals_is_kept() -> None:
    """The norm's term goes on moving δ, so that equal changes of the output come from different images."""
    images, composites, masks = pictures(3)
    images = images // 8 + 20
    composites = torch.where(masks[:, None], composites // 8 + 180, images)
    model = Classifier(
        Coarse(), classes=2, mean=[0.0] * 3, std=[1.0] * 3, cam_layer="", concept_layers=[]
    ).double()
    settings = Descent(steps=6, step_size=500, norm_weight=0.02)
    changed = change_images(model, images, composites, masks, settings)
    assert (changed.convergence == changed.convergence[:, :1]).all()
    assert (changed.output_change > 0).all()
    assert torch.equal(changed.image, composites)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"images": torch.zeros(2, 3, 4, 4)}, r"images: found float32 \[2, 3, 4, 4\], expected uint8"),
        ({"composites": torch.zeros(2, 3, 4, 5).byte()}, r"composites: found uint8 \[2, 3, 4, 5\]"),
        ({"masks": torch.zeros(2, 4, 4)}, r"masks: found float32 \[2, 4, 4\], expected bool \[2, 4, 4\]"),
        ({"masks": torch.ones(2, 5, 4).bool()}, r"masks: found bool \[2, 5, 4\], expected bool \[2, 4, 4\]"),
    ],
)
def test_images_that_do_not_fit_are_refused(wrong: dict[str, Tensor], message: str) -> None:
    picture = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    inputs = {"images": picture, "composites": picture, "masks": torch.ones(2, 4, 4).bool()} | wrong
    with pytest.raises(ValueError, match=f"^{message}"):
        change_images(conv_classifier(), **inputs, descent=Descent())


def test_logits_that_are_not_finite_are_refused() -> None:
    weights = torch.ones(2, 3, 12, 12)
    weights[0, 0, 0, 0] = torch.inf
    images, composites, masks = pictures(3)
    images[:, 0, 0, 0] = 0
    images[1, 0, 0, 0] = 1
    composites[:, 0, 0, 0] = images[:, 0, 0, 0]
    with pytest.raises(ValueError, match=r"^logits of 3 of 3 images"):
        change_images(linear_classifier(weights), images, composites, masks, Descent(steps=2))


# ------------------------------------------------------------------------------------------------ the set

OBJECTS = ("bird", "dog")


def labeled() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Three scenes of each object, four images of each pair, the last two of them for testing."""
    pairs = np.arange(24) // 4
    split = np.where(np.arange(24) % 4 >= 2, TEST, TRAIN).astype(np.uint8)
    return split, {"label_object": pairs // 3, "label_scene": pairs % 3}


def test_chosen_images_have_the_object_and_take_scenes_in_turn(caplog: pytest.LogCaptureFixture) -> None:
    split, labels = labeled()
    with caplog.at_level(logging.WARNING):
        selected = select_images(split, labels, OBJECTS, "dog", 4)
        assert not caplog.messages
        assert (labels["label_object"][selected] == 1).all()
        assert (split[selected] == TEST).all()
        assert sorted(labels["label_scene"][selected[:3]]) == [0, 1, 2]
        assert len(set(selected.tolist())) == 4
        everything = select_images(split, labels, OBJECTS, "dog", 7)
    assert sorted(everything) == [14, 15, 18, 19, 22, 23]
    assert everything[:4].tolist() == selected.tolist()
    (message,) = caplog.messages
    assert message.startswith("images: found 6 test images of 'dog'")


def test_an_object_without_test_images_is_refused() -> None:
    split, labels = labeled()
    with pytest.raises(ValueError, match=r"^common_object: found 'cat', valid: bird, dog"):
        select_images(split, labels, OBJECTS, "cat", 3)
    split[labels["label_object"] == 1] = TRAIN
    with pytest.raises(ValueError, match=r"^images: found no test image of 'dog'"):
        select_images(split, labels, OBJECTS, "dog", 3)


def test_the_set_holds_originals_and_then_changed_images(tmp_path: Path) -> None:
    images, composites, masks = (each.numpy() for each in pictures(3))
    changed = change_all(conv_classifier(), images, composites, masks, Descent(steps=4), batch_size=2)
    source = np.array([8, 2, 5])
    columns = {"mask": masks, "label_scene": np.array([2, 0, 1])}
    path = tmp_path / "delta.zarr.zip"
    zarr_store.write(path, [paired(images, columns, source, changed)], kind="data", attributes={})
    with zarr_store.open_store(path, kind="data") as data:
        stored = {name: data[name][:] for name in data.names}
    assert len(stored["image"]) == 6
    np.testing.assert_array_equal(stored["image"][:3], images)
    np.testing.assert_array_equal(stored["image"][3:], changed["image"])
    assert stored["changed"].tolist() == [False] * 3 + [True] * 3
    assert stored["source"].tolist() == [8, 2, 5, 8, 2, 5]
    assert stored["label_scene"].tolist() == [2, 0, 1, 2, 0, 1]
    assert (stored["split"] == TEST).all()
    np.testing.assert_array_equal(stored["mask"], np.concatenate([masks, masks]))
    for name in ("output_norm", "output_change", "delta_norm", "start_distance", "convergence"):
        assert not stored[name][:3].any()
        np.testing.assert_array_equal(stored[name][3:], changed[name], err_msg=name)
        assert stored[name].dtype == np.float32
    # The norms are those of the stored images.
    pixels = torch.tensor(stored["image"]).double() / 255
    logits = conv_classifier()(pixels).detach()
    np.testing.assert_allclose(stored["output_change"][3:], (logits[3:] - logits[:3]).norm(dim=1), rtol=1e-5)
    np.testing.assert_allclose(stored["output_norm"][3:], logits[:3].norm(dim=1), rtol=1e-5)


# ----------------------------------------------------------------------------------------------- the rate


def test_the_rate_counts_strictly_and_the_change_is_relative() -> None:
    without = torch.tensor([0.5, 0.5, 0.5, 0.5, 0.25, 0.0, NAN, 0.5, 0.5], dtype=torch.float64)
    with_delta = torch.tensor([0.5, 0.5625, 0.4375, 0.55, 0.0, 0.3, 0.5, NAN, 0.5], dtype=torch.float64)
    correct = torch.tensor([True] * 8 + [False])
    change = relative_change(with_delta, without, correct)
    np.testing.assert_allclose(change, [0, 0.125, 0.125, 0.1, 1, NAN, NAN, NAN, NAN], rtol=1e-12)
    rate = input_independence(with_delta, without, correct, 0.125)
    assert rate.dtype == torch.float64
    np.testing.assert_array_equal(rate, [1, 0, 0, 1, 0, 0, NAN, NAN, NAN])


def test_attribution_that_appears_where_there_was_none_is_a_failure() -> None:
    """An infinite relative change is not below t; only 0/0 is undefined, and the mean of ratios leaves out both."""
    without = torch.tensor([0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    with_delta = torch.tensor([0.2, 1e-30, 1.0, 0.5, 0.0, 0.2, NAN])
    correct = torch.tensor([True] * 5 + [False, True])
    rate = input_independence(with_delta, without, correct, 0.1)
    np.testing.assert_array_equal(rate, [0, 0, 0, 1, NAN, NAN, NAN])
    assert rate[:4].mean() == 0.25
    change = relative_change(with_delta, without, correct)
    np.testing.assert_array_equal(change, [NAN, NAN, NAN, 0, NAN, NAN, NAN])


COUNT = 11


def study() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    maps = {"without": rng.random((COUNT, 3, 9, 8))}
    maps["with_delta"] = maps["without"] * rng.uniform(0.8, 1.2, (COUNT, 3, 9, 8))
    maps["without"][4] = -1  # nothing positive
    maps["with_delta"][5, 0, 0, 0] = np.nan
    masks = rng.random((COUNT, 9, 8)) < 0.3
    correct = rng.random(COUNT) < 0.7
    correct[:6], correct[6] = True, False
    return maps, masks, correct


def scored() -> dict[str, np.ndarray]:
    maps, masks, correct = study()
    cut = range(4, COUNT, 4)
    blocks = {name: iter(np.split(maps[name], cut)) for name in INPUTS}
    return score_independence(
        blocks, np.split(masks, cut), correct, threshold=0.02, generator=generator(3), reduction="visual"
    )


def test_a_study_equals_plain_loops() -> None:
    maps, masks, correct = study()
    scores = scored()
    outside = random_masks(torch.tensor(masks), generator(3), outside=True).numpy()
    assert not (outside & masks).any()
    expected: dict[str, list[float]] = {}
    for region, where in zip(REGIONS, (masks, outside), strict=True):
        before, after = (
            [plain_concept(*both) for both in zip(maps[of], where, strict=True)] for of in INPUTS
        )
        change = [
            abs(b - a) / a if right else NAN for a, b, right in zip(before, after, correct, strict=True)
        ]
        expected[f"concept_without_{region}"], expected[f"concept_with_delta_{region}"] = before, after
        expected[f"iir_difference_{region}"] = change
        expected[f"iir_{region}"] = [NAN if c != c else float(c < 0.02) for c in change]
    assert set(scores) == set(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(scores[key], values, rtol=1e-10, err_msg=key)
    assert np.isnan(scores["iir_object"][4:7]).all()
    assert set(scores["iir_object"][np.isfinite(scores["iir_object"])]) == {0, 1}


def test_rows_of_the_score_table() -> None:
    correct, source = study()[2], np.arange(COUNT) * 10 + 7
    scores = scored()
    rows = score_rows(scores, correct, source)
    assert len(rows) == 4 * correct.sum() + 4 * COUNT
    for metric, variant, key, counted in (
        ("iir", "outside", "iir_outside", correct),
        ("iir_difference", "object", "iir_difference_object", correct),
        ("concept_attribution", "object_delta", "concept_with_delta_object", np.ones(COUNT, bool)),
        ("concept_attribution", "outside", "concept_without_outside", np.ones(COUNT, bool)),
    ):
        part = rows[(rows["metric"] == metric) & (rows["variant"] == variant)]
        assert part["image"].tolist() == source[counted].tolist()
        np.testing.assert_array_equal(part["score"], scores[key][counted])


def test_streams_that_do_not_fit_are_refused() -> None:
    maps, masks, correct = study()
    options = {"threshold": 0.1, "generator": generator()}
    with pytest.raises(ValueError, match=r"^maps: found with_delta, expected with_delta, without"):
        score_independence({"with_delta": []}, [masks], correct, **options)
    short = {"without": [maps["without"]], "with_delta": [maps["with_delta"][:10]]}
    with pytest.raises(ValueError, match=r"^block 0: found 11 masks and 11 of without, 10 of with_delta"):
        score_independence(short, [masks], correct, **options)
    whole = {name: [maps[name]] for name in INPUTS}
    for wrong, kind in ((correct[:10], r"bool \[10\]"), (correct.astype(float), r"float64 \[11\]")):
        with pytest.raises(ValueError, match=rf"^correct: found {kind}, expected bool \[11\]"):
            score_independence(whole, [masks], wrong, **options)

"""The perturbation engine against one forward for each image and point."""

import logging
from collections.abc import Callable

import numpy as np
import pytest
import torch
from support import CLASSES, conv_classifier, cyclic_targets, generator, random_images
from torch import Tensor

from saliency_assay.metrics.perturbation import (
    LEAST_ROWS,
    PerturbationBatch,
    Span,
    differs,
    evaluate_masks,
    evaluate_order,
    original,
    perturbation_batch,
    ranks_of,
    read,
)

HEIGHT, WIDTH = 6, 5
PIXELS = HEIGHT * WIDTH
NAN = float("nan")


def some_images(count: int, channels: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    return random_images(count, channels, HEIGHT, dtype=dtype)[..., :WIDTH]


def some_ranks(count: int) -> Tensor:
    return ranks_of(torch.randn(count, HEIGHT, WIDTH, generator=generator(3)))


def some_fill(kind: str, images: Tensor) -> Tensor:
    shape = {
        "black": (1, 1, 1),
        "color": (1, 1, 1),
        "an image's color": (len(images), 1, 1),
        "one picture": (1, HEIGHT, WIDTH),
        "a picture each": (len(images), HEIGHT, WIDTH),
    }[kind]
    fill = torch.rand(shape[0], images.shape[1], *shape[1:], generator=generator(4), dtype=images.dtype)
    return fill * 0 if kind == "black" else fill


class Recorded:
    """A model that keeps what it receives."""

    def __init__(self, model: Callable[[Tensor], Tensor]) -> None:
        self.model, self.seen = model, list[Tensor]()

    def __call__(self, images: Tensor) -> Tensor:
        self.seen.append(images)
        return self.model(images)

    @property
    def rows(self) -> list[int]:
        return [len(batch) for batch in self.seen]


def plain(
    model: Callable[[Tensor], Tensor],
    images: Tensor,
    fill: Tensor,
    removed: np.ndarray,
    targets: Tensor,
    output: str,
) -> np.ndarray:
    """The output under ``removed``, bool ``[N, S, H, W]``, pixel by pixel and forward by forward."""
    shown, found = fill.expand_as(images).numpy(), np.empty(removed.shape[:2])
    for n, s in np.ndindex(*found.shape):
        image = images[n].numpy().copy()
        for i, j in np.argwhere(removed[n, s]):
            image[:, i, j] = shown[n, :, i, j]
        with torch.no_grad():
            logits = model(torch.tensor(image)[None])[0].numpy().astype(np.float64)
        values = np.exp(logits) / np.exp(logits).sum() if output == "probability" else logits
        found[n, s] = values[targets[n]]
    return found


def plain_removed(ranks: Tensor, span: Span) -> np.ndarray:
    count, points = span.start.shape
    removed = np.zeros((count, points, HEIGHT, WIDTH), dtype=bool)
    for n, s, i, j in np.ndindex(*removed.shape):
        inside = span.start[n, s] <= ranks[n, i * WIDTH + j] < span.stop[n, s]
        removed[n, s, i, j] = not inside if span.kept else inside
    return removed


def span_of(bounds: list[tuple[int, int]], count: int, *, kept: bool = False) -> Span:
    start, stop = (torch.tensor(part).expand(count, -1) for part in zip(*bounds, strict=True))
    return Span(start, stop, kept)


EVERY = [
    *((0, m) for m in (0, 1, 7, PIXELS - 1, PIXELS)),
    *((PIXELS - m, PIXELS) for m in (0, 1, 7, PIXELS - 1)),
    (3, 3),
    (9, 4),  # empty, too
    (3, 12),
    (12, 13),
    (1, PIXELS - 1),
]
"""From the first pixel on, to the last, none, and within."""


# ------------------------------------------------------------------------------------------------- along


@pytest.mark.parametrize("kind", ["black", "color", "an image's color", "one picture", "a picture each"])
@pytest.mark.parametrize(("output", "channels"), [("probability", 3), ("logit", 1)])
def test_every_span_equals_a_forward_of_its_own(kind: str, output: str, channels: int) -> None:
    model, images, targets = conv_classifier(channels=channels), some_images(4, channels), cyclic_targets(4)
    fill, ranks = some_fill(kind, images), some_ranks(4)
    batch = perturbation_batch(model, images, targets, fill, output=output)
    spans = [span_of(EVERY, 4), span_of(EVERY, 4, kept=True)]
    found = evaluate_order(batch, ranks, spans)
    for span, values in zip(spans, found, strict=True):
        expected = plain(model, images, fill, plain_removed(ranks, span), targets, output)
        assert values.dtype == torch.float64
        np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_spans_may_differ_between_images_and_in_length() -> None:
    model, images, targets = conv_classifier(), some_images(3), cyclic_targets(3)
    fill, ranks = some_fill("black", images), some_ranks(3)
    bounds = torch.randint(PIXELS + 1, (2, 3, 9), generator=generator(8))
    spans = [
        Span(bounds.amin(0), bounds.amax(0)),
        Span(bounds.amin(0)[:, :2], bounds.amax(0)[:, :2], kept=True),
    ]
    found = evaluate_order(perturbation_batch(model, images, targets, fill), ranks, spans)
    assert [list(values.shape) for values in found] == [[3, 9], [3, 2]]
    for span, values in zip(spans, found, strict=True):
        expected = plain(model, images, fill, plain_removed(ranks, span), targets, "probability")
        np.testing.assert_allclose(values, expected, rtol=1e-10)


def test_the_original_is_the_model_on_the_images() -> None:
    model, images, targets = Recorded(conv_classifier()), some_images(5), cyclic_targets(5)
    found = original(
        perturbation_batch(model, images, targets, some_fill("a picture each", images), output="logit")
    )
    assert model.rows == [5]
    assert torch.equal(model.seen[0], images)
    expected = model.model(images).gather(1, targets[:, None])[:, 0].detach()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_nothing_goes_through_the_model_twice() -> None:
    """Removing the first m is keeping the rest alone, and all that removes nothing is the original."""
    model, images, ranks = Recorded(conv_classifier()), some_images(3), some_ranks(3)
    batch = perturbation_batch(model, images, cyclic_targets(3), some_fill("a picture each", images))
    spans = [
        span_of([(0, 4), (5, 5), (0, 4), (0, PIXELS), (20, PIXELS)], 3),
        span_of([(4, PIXELS), (0, PIXELS), (7, 2), (0, 20)], 3, kept=True),
        span_of([(6, 9)], 3),
        span_of([(6, 9)], 3, kept=True),
    ]
    found = evaluate_order(batch, ranks, spans)
    shown = torch.cat(model.seen).flatten(1)
    assert len(shown) == len(shown.unique(dim=0)) == 3 * 6  # first 4, none, all, last 10, 6–8 and all but 6–8
    assert torch.equal(found[0], found[0][:, [0, 1, 0, 3, 4]])
    assert torch.equal(found[1], found[0][:, [0, 1, 3, 4]])
    assert not torch.equal(found[2], found[3])


@pytest.mark.parametrize(("count", "rows"), [(3, LEAST_ROWS), (40, 40)])
def test_passes_hold_as_many_rows_as_images_but_not_few(count: int, rows: int) -> None:
    model, images = Recorded(conv_classifier()), some_images(count)
    batch = perturbation_batch(model, images, cyclic_targets(count), some_fill("black", images))
    evaluate_order(batch, some_ranks(count), [span_of([(0, m) for m in range(PIXELS)], count)])
    full, rest = divmod(count * PIXELS, rows)
    assert model.rows == [rows] * full + [rest] * (rest > 0)
    model.seen.clear()
    evaluate_masks(batch, 7, lambda image, number: image.new_zeros(len(image), PIXELS).bool())
    full, rest = divmod(count * 7, rows)
    assert model.rows == [rows] * full + [rest] * (rest > 0)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["black", "a picture each"])
def test_the_model_gets_channels_last_images_without_a_graph(channels: int, kind: str) -> None:
    model = Recorded(conv_classifier(channels=channels, dtype=torch.float32))
    images = some_images(3, channels, torch.float32).contiguous().requires_grad_()
    fill = some_fill(kind, images.detach())
    batch = perturbation_batch(model, images, cyclic_targets(3), fill)
    evaluate_order(batch, some_ranks(3), [span_of([(0, 4), (0, 9)], 3)])
    evaluate_masks(batch, 2, lambda image, number: torch.arange(PIXELS) < image[:, None])
    for batch in model.seen:
        assert batch.shape[1:] == (channels, HEIGHT, WIDTH)
        assert batch.dtype == torch.float32
        assert batch.is_contiguous(memory_format=torch.channels_last)
        assert not batch.requires_grad
    assert images.grad is None


def test_a_subset_of_images_gives_the_same_values() -> None:
    model, images, ranks = conv_classifier(), some_images(5), some_ranks(5)
    fill, targets, bounds = (
        some_fill("a picture each", images),
        cyclic_targets(5),
        [(0, 3), (4, 9), (2, PIXELS)],
    )
    whole = evaluate_order(perturbation_batch(model, images, targets, fill), ranks, [span_of(bounds, 5)])[0]
    for part in (slice(0, 2), slice(2, 4), slice(4, 5)):
        count = len(images[part])
        batch = perturbation_batch(model, images[part], targets[part], fill[part])
        found = evaluate_order(batch, ranks[part], [span_of(bounds, count)])[0]
        np.testing.assert_allclose(found, whole[part], rtol=1e-12)


# ------------------------------------------------------------------------------------------------- under


@pytest.mark.parametrize("kind", ["color", "a picture each"])
@pytest.mark.parametrize("output", ["probability", "logit"])
def test_under_equals_a_forward_of_its_own(kind: str, output: str) -> None:
    model, images, targets = conv_classifier(), some_images(5), cyclic_targets(5)
    fill = some_fill(kind, images)
    removed = torch.rand(5, 13, PIXELS, generator=generator(6)) < torch.linspace(0, 1, 13)[:, None]

    def cover(image: Tensor, number: Tensor) -> Tensor:
        return removed[image, number]

    found = evaluate_masks(perturbation_batch(model, images, targets, fill, output=output), 13, cover)
    assert found.dtype == torch.float64
    shaped = removed.reshape(5, 13, HEIGHT, WIDTH).numpy()
    np.testing.assert_allclose(found, plain(model, images, fill, shaped, targets, output), rtol=1e-10)


def test_under_numbers_images_and_passes() -> None:
    asked: list[tuple[list[int], list[int]]] = []

    def cover(image: Tensor, number: Tensor) -> Tensor:
        asked.append((image.tolist(), number.tolist()))
        return torch.zeros(len(image), PIXELS, dtype=torch.bool)

    images = some_images(3)
    evaluate_masks(
        perturbation_batch(conv_classifier(), images, cyclic_targets(3), some_fill("black", images)),
        11,
        cover,
    )
    assert [len(image) for image, _ in asked] == [32, 1]
    pairs = [pair for image, number in asked for pair in zip(image, number, strict=True)]
    assert pairs == [(image, number) for image in range(3) for number in range(11)]


# ------------------------------------------------------------------------------------------ ranks, output


def test_ranks_are_places_in_descending_order_and_ties_in_reading_order() -> None:
    saliency = torch.tensor([[[1.0, 3.0], [3.0, -2.0]], [[0.0, 0.0], [0.0, 0.0]], [[-1.0, 2.0], [5.0, 2.0]]])
    assert ranks_of(saliency).tolist() == [[2, 0, 1, 3], [0, 1, 2, 3], [3, 1, 0, 2]]
    assert ranks_of(saliency).dtype == torch.int64


def test_ranks_are_a_permutation_whatever_the_map() -> None:
    saliency = torch.randn(6, HEIGHT, WIDTH, generator=generator()).round()
    saliency[4, 2, 2], saliency[5] = NAN, NAN
    found = ranks_of(saliency)
    assert found.sort(dim=1).values.tolist() == [list(range(PIXELS))] * 6
    for values, places in zip(saliency[:4].flatten(1).tolist(), found[:4].tolist(), strict=True):
        order = sorted(range(PIXELS), key=lambda pixel: -values[pixel])
        assert [order[place] for place in places] == list(range(PIXELS))


def test_outputs_are_read_in_float64() -> None:
    logits = torch.tensor([[30.0, 0.0, 1.0], [2.0, -1.0, 0.5]])
    targets = torch.tensor([0, 2])
    assert read(logits, targets, "logit").tolist() == [30, 0.5]
    found = read(logits, targets, "probability")
    first = 1 / (1 + np.exp(-30.0) + np.exp(-29.0))
    second = np.exp(0.5) / (np.exp(2.0) + np.exp(-1.0) + np.exp(0.5))
    np.testing.assert_allclose(found, [first, second], rtol=1e-15)
    assert found[0] < 1


# ----------------------------------------------------------------------------------------------- bad input


def examined_with(predict: Callable[[Tensor], Tensor], output: str = "probability") -> PerturbationBatch:
    images = some_images(3)
    return perturbation_batch(predict, images, cyclic_targets(3), some_fill("black", images), output=output)


@pytest.mark.parametrize(
    ("bounds", "found"),
    [([(0, 3), (2, PIXELS + 1)], f"0 to {PIXELS + 1}"), ([(-1, 3), (0, 4)], "-1 to 4")],
)
def test_a_span_beyond_the_image_is_refused(bounds: list[tuple[int, int]], found: str) -> None:
    with pytest.raises(ValueError, match=r"^span: ") as error:
        evaluate_order(examined_with(conv_classifier()), some_ranks(3), [span_of(bounds, 3)])
    assert str(error.value) == f"span: found {found}, expected within 0 to 30, the pixels of an image"


def test_a_span_of_other_images_is_refused() -> None:
    """Of one row for three images, only the first image would be scored."""
    with pytest.raises(ValueError, match=r"^span: ") as error:
        evaluate_order(examined_with(conv_classifier()), some_ranks(3), [span_of([(0, 3), (1, 4)], 1)])
    assert str(error.value) == "span: found [1, 2] and [1, 2], expected [3, S] both"


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (lambda rows: torch.zeros(rows), "float32 [6]"),
        (lambda rows: torch.zeros(rows - 1, 4), "float32 [5, 4]"),
        (lambda rows: torch.zeros(rows, 4, 1, dtype=torch.float64), "float64 [6, 4, 1]"),
    ],
)
def test_a_predict_of_another_shape_is_refused(returned: Callable[[int], Tensor], found: str) -> None:
    batch, message = (
        examined_with(lambda images: returned(len(images))),
        f"model: returned {found}, expected logits [6, K]",
    )
    with pytest.raises(ValueError, match=r"^model: ") as error:
        evaluate_order(batch, some_ranks(3), [span_of([(0, 1), (0, 2)], 3)])
    assert str(error.value) == message
    with pytest.raises(ValueError, match=r"^model: ") as error:
        evaluate_masks(batch, 2, lambda image, number: torch.zeros(len(image), PIXELS, dtype=torch.bool))
    assert str(error.value) == message


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
@pytest.mark.parametrize("output", ["probability", "logit"])
def test_an_output_that_is_not_finite_is_refused(value: float, output: str) -> None:
    """Of the rows with a black first pixel, 3 of 6, the target's logit is not finite."""

    def predict(images: Tensor) -> Tensor:
        black = (images[:, :, 0, 0] == 0).all(1)
        return torch.where(black, value, 1.0)[:, None].repeat(1, CLASSES)

    batch, first = examined_with(predict, output), torch.arange(PIXELS).expand(3, -1)
    message = f"predict: the {output} of 3 of 6 perturbed images is NaN or infinite, expected finite values"
    with pytest.raises(ValueError, match=r"^predict: ") as error:
        evaluate_order(batch, first, [span_of([(0, 1), (1, 2), (0, 1)], 3)])
    assert str(error.value) == message
    with pytest.raises(ValueError, match=r"^predict: ") as error:
        evaluate_masks(batch, 2, lambda image, number: torch.arange(PIXELS) == number[:, None])
    assert str(error.value) == message


def test_an_unknown_output_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^output: found 'margin', valid: probability, logit, accuracy$"):
        examined_with(conv_classifier(), output="margin")


@pytest.mark.parametrize(
    ("images", "targets", "found"),
    [
        (torch.zeros(3, 5, 5), torch.zeros(3).long(), "images [3, 5, 5], targets torch.int64 [3]"),
        (torch.zeros(3, 1, 5, 5), torch.zeros(2).long(), "images [3, 1, 5, 5], targets torch.int64 [2]"),
        (torch.zeros(3, 1, 5, 5), torch.zeros(3), "images [3, 1, 5, 5], targets torch.float32 [3]"),
    ],
)
def test_images_and_targets_that_do_not_fit_are_refused(images: Tensor, targets: Tensor, found: str) -> None:
    with pytest.raises(ValueError, match=r"^images ") as error:
        perturbation_batch(conv_classifier(), images, targets, torch.zeros(1, 1, 1, 1))
    assert str(error.value) == f"{found}: expected [N, C, H, W] and int64 [N]"


@pytest.mark.parametrize(
    "shape", [(2, 3, 1, 1), (3, 1, 1, 1), (1, 3), (1, 1, 6, 5), (1, 3, 5, 6), (3, 3, 1, 5), (1, 3, 30, 1)]
)
def test_a_fill_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^fill: ") as error:
        perturbation_batch(conv_classifier(), some_images(3), cyclic_targets(3), torch.zeros(shape))
    expected = "expected [3, 3, 6, 5] or a shape that broadcasts to it"
    assert str(error.value) == f"fill: found {list(shape)}, {expected}"


def test_long_work_reports_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("saliency_assay.methods.passes.SECONDS_BETWEEN_LINES", -1.0)
    with caplog.at_level(logging.INFO):
        original(examined_with(conv_classifier()))
    assert caplog.messages == ["0 of 3 perturbed images"]


def test_differs_says_which_pixels_show_more_than_their_fill() -> None:
    images = torch.tensor([[[[0.0, 0.5]], [[0.0, 0.0]]], [[[0.0, 0.0]], [[0.0, 0.0]]]])
    batch = perturbation_batch(
        lambda shown: shown.flatten(1),
        images,
        torch.zeros(2, dtype=torch.int64),
        images.new_zeros(1, 2, 1, 1),
    )
    assert differs(batch).tolist() == [[False, True], [False, False]]

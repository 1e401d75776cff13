"""The perturbation engine against one forward for each image and point."""

import logging
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from support import CLASSES, conv_classifier, cyclic_targets, generator, random_images
from torch import Tensor

from saliency_assay.metrics.perturbation import (
    PerturbationBatch,
    Span,
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
    shown, outputs = fill.expand_as(images).numpy(), np.empty(removed.shape[:2])
    for n, s in np.ndindex(*outputs.shape):
        image = images[n].numpy().copy()
        for i, j in np.argwhere(removed[n, s]):
            image[:, i, j] = shown[n, :, i, j]
        with torch.no_grad():
            logits = model(torch.tensor(image)[None])[0].numpy().astype(np.float64)
        values = np.exp(logits) / np.exp(logits).sum() if output == "probability" else logits
        outputs[n, s] = values[targets[n]]
    return outputs


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


# ---------------------------------------------------------------------------------------- ranges of ranks


@pytest.mark.parametrize("kind", ["black", "color", "an image's color", "one picture", "a picture each"])
@pytest.mark.parametrize(("output", "channels"), [("probability", 3), ("logit", 1)])
def test_every_span_equals_a_forward_of_its_own(kind: str, output: str, channels: int) -> None:
    model, images, targets = conv_classifier(channels=channels), some_images(4, channels), cyclic_targets(4)
    fill, ranks = some_fill(kind, images), some_ranks(4)
    batch = perturbation_batch(model, images, targets, fill, output=output)
    bounds = torch.randint(PIXELS + 1, (2, 4, 2), generator=generator(8))
    of_each_image = Span(bounds.amin(0), bounds.amax(0), kept=True)
    spans = [span_of(EVERY, 4), span_of(EVERY, 4, kept=True), of_each_image]
    outputs = evaluate_order(batch, ranks, spans)
    for span, values in zip(spans, outputs, strict=True):
        expected = plain(model, images, fill, plain_removed(ranks, span), targets, output)
        assert values.dtype == torch.float64
        np.testing.assert_allclose(values, expected, rtol=1e-10)


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
    outputs = evaluate_order(batch, ranks, spans)
    shown = torch.cat(model.seen).flatten(1)
    assert len(shown) == len(shown.unique(dim=0)) == 3 * 6  # first 4, none, all, last 10, 6–8 and all but 6–8
    assert torch.equal(outputs[0], outputs[0][:, [0, 1, 0, 3, 4]])
    assert torch.equal(outputs[1], outputs[0][:, [0, 1, 3, 4]])
    assert not torch.equal(outputs[2], outputs[3])


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


# ------------------------------------------------------------------------------------------------- masks


@pytest.mark.parametrize("kind", ["color", "a picture each"])
@pytest.mark.parametrize("output", ["probability", "logit"])
def test_every_mask_equals_a_forward_of_its_own(kind: str, output: str) -> None:
    model, images, targets = conv_classifier(), some_images(5), cyclic_targets(5)
    fill = some_fill(kind, images)
    removed = torch.rand(5, 13, PIXELS, generator=generator(6)) < torch.linspace(0, 1, 13)[:, None]

    def cover(image: Tensor, number: Tensor) -> Tensor:
        return removed[image, number]

    outputs = evaluate_masks(perturbation_batch(model, images, targets, fill, output=output), 13, cover)
    assert outputs.dtype == torch.float64
    shaped = removed.reshape(5, 13, HEIGHT, WIDTH).numpy()
    np.testing.assert_allclose(outputs, plain(model, images, fill, shaped, targets, output), rtol=1e-10)


# ------------------------------------------------------------------------------------------ ranks, output


def test_outputs_are_read_in_float64() -> None:
    logits = torch.tensor([[30.0, 0.0, 1.0], [2.0, -1.0, 0.5]])
    targets = torch.tensor([0, 2])
    assert read(None, logits, targets, "logit").tolist() == [30, 0.5]
    outputs = read(None, logits, targets, "probability")
    first = 1 / (1 + np.exp(-30.0) + np.exp(-29.0))
    second = np.exp(0.5) / (np.exp(2.0) + np.exp(-1.0) + np.exp(0.5))
    np.testing.assert_allclose(outputs, [first, second], rtol=1e-15)
    assert outputs[0] < 1


# ----------------------------------------------------------------------------------------------- bad input


def batch_of(predict: Callable[[Tensor], Tensor], output: str = "probability") -> PerturbationBatch:
    images = some_images(3)
    return perturbation_batch(predict, images, cyclic_targets(3), some_fill("black", images), output=output)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (span_of([(0, 3), (2, PIXELS + 1)], 3), f"0 to {PIXELS + 1}, expected within 0 to 30"),
        (span_of([(-1, 3), (0, 4)], 3), "-1 to 4, expected within 0 to 30"),
        # Of one row for three images, only the first image would be scored.
        (span_of([(0, 3), (1, 4)], 1), r"\[1, 2\] and \[1, 2\], expected \[3, S\]"),
    ],
)
def test_a_span_that_does_not_fit_is_refused(span: Span, message: str) -> None:
    with pytest.raises(ValueError, match=f"^span: found {message}"):
        evaluate_order(batch_of(conv_classifier()), some_ranks(3), [span])


@pytest.mark.parametrize(
    ("returned", "shape"),
    [
        (lambda rows: torch.zeros(rows), r"float32 \[6\]"),
        (lambda rows: torch.zeros(rows - 1, 4), r"float32 \[5, 4\]"),
        (lambda rows: torch.zeros(rows, 4, 1, dtype=torch.float64), r"float64 \[6, 4, 1\]"),
    ],
)
def test_a_predict_of_another_shape_is_refused(returned: Callable[[int], Tensor], shape: str) -> None:
    batch, message = (
        batch_of(lambda images: returned(len(images))),
        rf"^model: returned {shape}, expected logits \[6, K\]",
    )
    with pytest.raises(ValueError, match=message):
        evaluate_order(batch, some_ranks(3), [span_of([(0, 1), (0, 2)], 3)])
    with pytest.raises(ValueError, match=message):
        evaluate_masks(batch, 2, lambda image, number: torch.zeros(len(image), PIXELS, dtype=torch.bool))


@pytest.mark.parametrize(("value", "output"), [(NAN, "probability"), (-float("inf"), "logit")])
def test_an_output_that_is_not_finite_is_refused(value: float, output: str) -> None:
    """Of the rows with a black first pixel, 3 of 6, the target's logit is not finite."""

    def predict(images: Tensor) -> Tensor:
        black = (images[:, :, 0, 0] == 0).all(1)
        return torch.where(black, value, 1.0)[:, None].repeat(1, CLASSES)

    batch, first = batch_of(predict, output), torch.arange(PIXELS).expand(3, -1)
    message = f"^predict: the {output} of 3 of 6 perturbed images is NaN or infinite"
    with pytest.raises(ValueError, match=message):
        evaluate_order(batch, first, [span_of([(0, 1), (1, 2), (0, 1)], 3)])
    with pytest.raises(ValueError, match=message):
        evaluate_masks(batch, 2, lambda image, number: torch.arange(PIXELS) == number[:, None])


@pytest.mark.parametrize(
    ("images", "targets"),
    [
        (torch.zeros(3, 5, 5), torch.zeros(3).long()),
        (torch.zeros(3, 1, 5, 5), torch.zeros(2).long()),
        (torch.zeros(3, 1, 5, 5), torch.zeros(3)),
    ],
)
def test_images_and_targets_that_do_not_fit_are_refused(images: Tensor, targets: Tensor) -> None:
    values = re.escape(f"images {list(images.shape)}, targets {targets.dtype} {list(targets.shape)}")
    with pytest.raises(ValueError, match=rf"^{values}: expected \[N, C, H, W\] and int64 \[N\]"):
        perturbation_batch(conv_classifier(), images, targets, torch.zeros(1, 1, 1, 1))


@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (3, 1, 1, 1), (1, 3), (1, 3, 5, 6), (3, 3, 1, 5)])
def test_a_fill_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    message = rf"^fill: found {re.escape(str(list(shape)))}, expected \[3, 3, 6, 5\]"
    with pytest.raises(ValueError, match=message):
        perturbation_batch(conv_classifier(), some_images(3), cyclic_targets(3), torch.zeros(shape))


def test_long_work_reports_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("saliency_assay.methods.passes.SECONDS_BETWEEN_LINES", -1.0)
    with caplog.at_level(logging.INFO):
        original(batch_of(conv_classifier()))
    assert caplog.messages == ["0 of 3 perturbed images"]

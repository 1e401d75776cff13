"""N-Ord, S-Ord, TPN and TPS against the paper's example, closed forms and plain loops."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from support import generator, output_of, random_images, smooth_network
from torch import Tensor, nn

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.necessity_sufficiency import fewest, necessity_sufficiency, positive_shares, ratio
from saliency_assay.metrics.scored import Scored

SIZE = 6
MEAN = torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
NAMES = ("n_ord", "s_ord", "tpn", "tps")
COUNT = 7
ORDERED, PROPORTIONED = [0, 1, 5, 6], [0, 1, 3, 5, 6]


def some_targets(model: nn.Module, images: Tensor) -> Tensor:
    """The predicted classes, but for the second image, where it is the least likely."""
    with torch.no_grad():
        logits = model(images)
    targets = logits.argmax(1)
    targets[1] = logits[1].argmin()
    return targets


def hard_maps() -> Tensor:
    """Plain, with ties, negative, constant, with a NaN, with three positive pixels, with positive ones only."""
    maps = torch.randn(COUNT, 3, SIZE, SIZE, generator=generator(7), dtype=torch.float64)
    maps[1] = maps[1].round()
    maps[2] = -maps[2].abs()
    maps[3] = 0.3
    maps[4, 1, 2, 2] = torch.nan
    maps[5] = -maps[5].abs()
    maps[5, :, 4, 1], maps[5, :, 0, 2], maps[5, :, 5, 5] = 0.5, 1.0, 0.75
    maps[6] = maps[6].abs()
    return maps


def values_of(scored: Scored, index: int) -> list[float]:
    return [float(scored.scores[name, ""][index]) for name in NAMES]


class Plain:
    """One image and map, in lists and loops: ``R`` and ``R_shown`` of the paper, for its ordering and the reverse."""

    def __init__(self, ask: Callable[[Tensor], float], image: Tensor, fill: Tensor, raw: Tensor) -> None:
        self.ask, self.image, self.fill = ask, image, fill
        values = raw.numpy().sum(0).flatten().tolist()
        self.pixels = sorted((p for p in range(len(values)) if values[p] > 0), key=lambda p: -values[p])
        self.scores = [values[pixel] for pixel in self.pixels]
        self.size = len(self.pixels)

    def mixed(self, ground: Tensor, top: Tensor, pixels: list[int]) -> float:
        shown = ground.clone()
        for pixel in pixels:
            row, column = divmod(pixel, ground.shape[2])
            shown[:, row, column] = top[:, row, column]
        return self.ask(shown)

    def removed(self, count: int, reverse: bool = False) -> float:
        order = self.pixels[::-1] if reverse else self.pixels
        return self.mixed(self.image, self.fill, order[:count])

    def shown(self, count: int, reverse: bool = False) -> float:
        order = self.pixels[::-1] if reverse else self.pixels
        return self.mixed(self.fill, self.image, order[:count])

    def fewest(self, share: float, reverse: bool = False) -> int:
        scores = self.scores[::-1] if reverse else self.scores
        if share == 1:
            return self.size
        count = 0
        while sum(scores[:count]) / sum(self.scores) < share - 1e-9:
            count += 1
        return count

    def counts(self, steps: int | str) -> list[int]:
        blocks = self.size if steps == "exact" else min(int(steps), self.size)
        return [int(np.floor(block * self.size / blocks + 0.5)) for block in range(blocks + 1)]

    def shares(self, steps: int | str) -> list[float]:
        if steps != "exact":
            return [number / int(steps) for number in range(int(steps) + 1)]
        ends = {0.0, 1.0}
        for scores in (self.scores, self.scores[::-1]):
            ends |= {min(sum(scores[:count]) / sum(self.scores), 1.0) for count in range(1, self.size)}
        return sorted(ends)

    def all(self, steps: int | str, protocol: str) -> list[float]:
        y_0, y_b = self.removed(0), self.shown(0)
        left, enough = self.removed(self.size), self.shown(self.size)
        counts = self.counts(steps)
        n_ord = np.mean([max(self.removed(m) - y_b, 0) for m in counts])
        if protocol == "printed":
            s_ord = np.mean([min(self.shown(m), enough) - y_0 for m in counts])
        else:
            s_ord = np.mean([min(self.shown(m), y_0) - y_b for m in counts])
        if y_0 <= 0:
            return [float(n_ord), float(s_ord), np.nan, np.nan]
        r = max(min(y_b / left, 1), 1e-6) if left > 1e-12 else 1
        tpn = self.area(self.removed, steps) / (r * y_0)
        tps = self.area(self.shown, steps) / (max(min(enough / y_0, 1), 1e-6) * y_0)
        return [float(n_ord), float(s_ord), tpn, tps]

    def area(self, output: Callable[[int, bool], float], steps: int | str) -> float:
        shares = self.shares(steps)
        gaps = [
            abs(output(self.fewest(share), False) - output(self.fewest(share, True), True))
            for share in shares
        ]
        return sum((shares[i + 1] - shares[i]) * (gaps[i] + gaps[i + 1]) / 2 for i in range(len(shares) - 1))


# ----------------------------------------------------------------------------------------- the paper's example


class Maximum(nn.Module):
    """M(x) = max(x_1, x_2) of an image of three pixels, as the logit of class 0."""

    def forward(self, images: Tensor) -> Tensor:
        value = images[:, 0, 0, :2].amax(1)
        return torch.stack([value, torch.zeros_like(value)], 1)


@pytest.mark.parametrize("steps", ["exact", 3, 100])
def test_example_1(steps: int | str) -> None:
    """Table 1's A_1, A_2, A_3. By hand, y_0 = 1 and y_b = 0; a pixel of score 0 is not in π⁺.

    A_1 removes x_3, x_2, x_1: 1 1 1 0, and shows 0 0 1 1. A_2 removes x_1, x_3: 1 1 1, and shows 0 1 1. A_3 removes
    x_1, x_2: 1 1 0, and shows 0 1 1. So A_3 has the best necessity order, A_2 and A_3 the best sufficiency order.
    """
    maps = torch.tensor([[1 / 6, 1 / 3, 1 / 2], [2 / 3, 0, 1 / 3], [2 / 3, 1 / 3, 0]], dtype=torch.float64)
    images, targets = torch.ones(3, 1, 1, 3, dtype=torch.float64), torch.zeros(3, dtype=torch.int64)
    inputs = (Maximum(), images, targets, maps[:, None, None])
    scored = necessity_sufficiency(*inputs, generator=generator(), steps=steps, output="logit")
    np.testing.assert_allclose(scored.scores["n_ord", ""], [3 / 4, 1, 2 / 3], rtol=1e-15)
    np.testing.assert_allclose(scored.scores["s_ord", ""], [1 / 2, 2 / 3, 2 / 3], rtol=1e-15)
    printed = necessity_sufficiency(
        *inputs, generator=generator(), steps=steps, output="logit", protocol="printed"
    )
    np.testing.assert_allclose(printed.scores["s_ord", ""], [-1 / 2, -1 / 3, -1 / 3], rtol=1e-15)
    if steps == "exact":
        # A_3: |R_1 − R_1| = 0 at k = 1/3, |R_1 − R_2| = 1 at 2/3, 0 at 1; r = 1. Shown, all outputs are 1 from x_1 on.
        np.testing.assert_allclose(scored.scores["tpn", ""][2], 1 / 3, rtol=1e-12)
        np.testing.assert_allclose(scored.scores["tps", ""][2], 0, atol=1e-12)
        # A_2: nothing falls; all is penalized by r = ε / 1, but 0 stays 0.
        np.testing.assert_allclose(scored.scores["tpn", ""][1], 0, atol=1e-12)
        # A_1 shown: 0 | 0 1 1 of x_3, x_2, x_1 and 1 1 1 of the reverse. Gaps at 1/6 1/2 5/6 1: 1 1 0 0.
        area = (1 / 6 * 1 + 1 / 3 * 2 + 1 / 3 * 1) / 2
        np.testing.assert_allclose(scored.scores["tps", ""][0], area, rtol=1e-12)


# ----------------------------------------------------------------------------------------------- closed forms


# ------------------------------------------------------------------------------------------------ plain loops


@pytest.mark.parametrize("steps", ["exact", 1, 5, 30])
@pytest.mark.parametrize(
    ("fill", "output", "protocol"),
    [
        ("black", "probability", "corrected"),
        ("random", "probability", "printed"),
        ("mean", "logit", "corrected"),
        ("image_mean", "logit", "printed"),
    ],
)
def test_equals_plain_loops(steps: int | str, fill: str, output: str, protocol: str) -> None:
    model, images = smooth_network(), random_images(COUNT, size=SIZE)
    targets = some_targets(model, images)
    options = {"mean": MEAN, "steps": steps, "fill": fill, "output": output, "protocol": protocol}
    scored = necessity_sufficiency(model, images, targets, hard_maps(), generator=generator(4), **options)  # type: ignore[arg-type]
    fills = fill_of(fill, images, mean=MEAN, seeds=sample_seeds(COUNT, 1, generator(4))).expand_as(images)
    defined = []
    for index in range(COUNT):
        plain = Plain(
            partial(output_of, model, target=int(targets[index]), output=output),
            images[index],
            fills[index],
            hard_maps()[index],
        )
        expected = plain.all(steps, protocol) if index in PROPORTIONED else [np.nan] * 4
        if index not in ORDERED:
            expected[:2] = [np.nan] * 2
        np.testing.assert_allclose(values_of(scored, index), expected, rtol=1e-9, atol=1e-12)
        defined += [index] if np.isfinite(expected[2]) else []
    # A logit may be negative, and nothing is proportional to it.
    assert defined == (PROPORTIONED if output == "probability" else [0, 3, 5, 6])
    assert all(scores.dtype == torch.float64 for scores in scored.scores.values())


@pytest.mark.parametrize("steps", ["exact", 30])
def test_curves_are_the_outputs_at_equal_intervals(steps: int | str) -> None:
    model, images = smooth_network(), random_images(COUNT, size=SIZE)
    targets = some_targets(model, images)
    scored = necessity_sufficiency(model, images, targets, hard_maps(), generator=generator(), steps=steps)
    intervals = 100 if steps == "exact" else int(steps)
    assert set(scored.curves) == {"n_ord", "s_ord", "tpn_first", "tpn_last", "tps_first", "tps_last"}
    black = torch.zeros_like(images[0])
    for index in range(COUNT):
        plain = Plain(
            partial(output_of, model, target=int(targets[index]), output="probability"),
            images[index],
            black,
            hard_maps()[index],
        )
        curves: dict[str, list[float]] = {name: [] for name in scored.curves}
        for number in range(intervals + 1):
            if index in ORDERED:
                count = int(np.floor(number * plain.size / intervals + 0.5))
                curves["n_ord"].append(plain.removed(count))
                curves["s_ord"].append(plain.shown(count))
            if index in PROPORTIONED:
                first, last = (plain.fewest(number / intervals, reverse) for reverse in (False, True))
                curves["tpn_first"].append(plain.removed(first))
                curves["tpn_last"].append(plain.removed(last, reverse=True))
                curves["tps_first"].append(plain.shown(first))
                curves["tps_last"].append(plain.shown(last, reverse=True))
        for name, curve in curves.items():
            np.testing.assert_allclose(
                scored.curves[name][index], curve or [np.nan] * (intervals + 1), atol=1e-12
            )


# -------------------------------------------------------------------------------------------------- the parts


def test_all_of_the_share_is_all_pixels_however_small() -> None:
    saliency = torch.tensor([[[1.0, 1e-12, 1e-13, 0.0]]], dtype=torch.float64)
    shares = positive_shares(saliency)
    needed = torch.tensor([[0.5, 1.0]], dtype=torch.float64)
    assert fewest(shares.first, needed, shares.positive).tolist() == [[1, 3]]
    assert fewest(shares.last, needed, shares.positive).tolist() == [[3, 3]]


@pytest.mark.parametrize("size", [10, 49, 60])
def test_rounding_does_not_cost_a_pixel(size: int) -> None:
    """n equal pixels hold the share n/M, though their floating-point sum may fall short of it."""
    saliency = torch.full((1, 1, size), 0.7, dtype=torch.float64)
    shares = positive_shares(saliency)
    needed = (torch.arange(size + 1).double() / size)[None]
    for each in (shares.first, shares.last):
        assert bool((each[0] < needed[0]).any())
        assert fewest(each, needed, shares.positive).tolist() == [list(range(size + 1))]


def test_ratio_is_at_most_1_and_never_0() -> None:
    part = torch.tensor([0.2, 0.8, 0.0, 0.0, -1.0, 0.0], dtype=torch.float64)
    whole = torch.tensor([0.8, 0.2, 0.5, 0.0, -2.0, 1e-17], dtype=torch.float64)
    np.testing.assert_allclose(ratio(part, whole), [0.25, 1, 1e-6, 1, 1, 1], rtol=1e-12)

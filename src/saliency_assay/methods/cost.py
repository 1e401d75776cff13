"""What a map costs: passes of one image through the model, by the method's parameters.

A pass is one forward and one backward, or a forward alone where no gradients are needed. Read by the report; imports
nothing heavy.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Parameters = Mapping[str, Any]
Size = tuple[int, int]


def passes(
    method: str, parameters: Parameters, *, size: Size, batch: int, base: float = 1, background: int = 0
) -> float | None:
    """Passes an image of a registered method; None of one that is not registered.

    Args:
        method: its name in the registry.
        parameters: as the configuration has them.
        size: height and width of an image, in pixels.
        batch: images that go through the model together; what all of them share is shared out.
        base: passes of the method that it smooths.
        background: training images that it is given.
    """
    if method in _ONCE:
        return _ONCE[method]
    if method in ("smoothgrad", "smoothgrad_squared", "vargrad"):
        return float(parameters["samples"] * base)
    if method == "deep_shap":
        return float(background)
    counted = _COUNTED.get(method)
    return None if counted is None else float(counted(parameters, size, batch))


def _windows(parameters: Parameters, size: Size) -> int:
    """Places of an occluding window: see ``occlusion``."""
    places = 1
    for side in size:
        window, stride = (max(1, round(parameters[name] * side)) for name in ("window", "stride"))
        places *= len(range(0, side - window + stride, stride))
    return places


def _squares(parameters: Parameters, size: Size) -> int:
    """Squares that are removed: see ``squares.every_square``."""
    height, width = size
    sides = range(parameters["smallest"], min(parameters["largest"], height, width) + 1)
    every = sum((height - side + 1) * (width - side + 1) for side in sides)
    return min(parameters["squares"] or every, every)


_ONCE: Mapping[str, float] = {
    **dict.fromkeys(("gradient", "sensitivity", "gradient_x_input", "guided_backprop", "cam", "gradcam"), 1),
    **dict.fromkeys(("lrp_alpha_beta", "lrp_epsilon", "deep_taylor", "deeplift"), 1),
    "guided_gradcam": 2,
    "halves": 3,
    **dict.fromkeys(("random", "edge", "constant"), 0),
}
_COUNTED: Mapping[str, Callable[[Parameters, Size, int], float]] = {
    "integrated_gradients": lambda given, size, batch: given["steps"],
    "integrated_gradients_smoothgrad": lambda given, size, batch: given["steps"] * given["samples"],
    "occlusion": lambda given, size, batch: 1 + _windows(given, size),
    # At most all coalitions; and the image whole, and all of it hidden.
    "kernel_shap": lambda given, size, batch: min(given["samples"], 2 ** given["segments"] - 2) + 2,
    "square": lambda given, size, batch: 1 + _squares(given, size),
    "noisy_baseline": lambda given, size, batch: 1 + given["samples"] / batch,
}


class Stopwatch:
    """Seconds that blocks take to come, apart from what is done with them.

    What is imported when the first is asked for counts, too: a method is looked up before.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock

    def over(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """``blocks`` as they are; the time until each has come is added to ``seconds``."""
        while True:
            before = self._clock()
            try:
                block = next(blocks)
            except StopIteration:
                return
            finally:
                self.seconds += self._clock() - before
            yield block

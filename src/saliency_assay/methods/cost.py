"""Cost of a map: passes of one image through the model, which the report shows.

A pass is one forward and one backward, or a forward alone where no gradients are needed. A method's record has their
number, or names a function that counts them; those of the project's methods are here. Imports nothing heavy.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from saliency_assay.registry.records import resolve


@dataclass(frozen=True)
class Map:
    """Sizes that the passes of a map depend on beside its method."""

    parameters: Mapping[str, Any]
    """As the configuration has them."""
    size: tuple[int, int]
    """Height and width of an image, in pixels."""
    batch: int
    """Images that go through the model together; what all of them share is shared out."""
    base: float = 1
    """Passes of the method that is smoothed."""
    background: int = 0
    """Training images that the method is given."""


def passes(record: float | str, of: Map) -> float:
    """Return the passes of one image, by the ``passes`` of a method's record."""
    return float(resolve(record)(of)) if isinstance(record, str) else record


def steps(of: Map) -> int:
    """A pass at each step."""
    return int(of.parameters["steps"])


def samples_of_base(of: Map) -> float:
    """The smoothed method's passes for each sample."""
    return float(of.parameters["samples"] * of.base)


def steps_of_samples(of: Map) -> int:
    """A pass at each step from the baseline to each sample."""
    return steps(of) * int(of.parameters["samples"])


def background_images(of: Map) -> int:
    """A pass for each image of the background."""
    return of.background


def windows(of: Map) -> int:
    """The whole image, and each place of the window: see ``occlusion``."""
    places = 1
    for side in of.size:
        window, stride = (max(1, round(of.parameters[name] * side)) for name in ("window", "stride"))
        places *= len(range(0, side - window + stride, stride))
    return 1 + places


def coalitions(of: Map) -> int:
    """At most all coalitions of segments; the whole image, and all of it hidden."""
    every: int = 2 ** of.parameters["segments"] - 2
    return min(int(of.parameters["samples"]), every) + 2


def squares(of: Map) -> int:
    """The whole image, and each square that is removed: see ``optimal``."""
    height, width = of.size
    sides = range(of.parameters["smallest"], min(of.parameters["largest"], height, width) + 1)
    every = sum((height - side + 1) * (width - side + 1) for side in sides)
    return 1 + min(of.parameters["squares"] or every, every)


def shared_samples(of: Map) -> float:
    """The image, and its part of the samples that all images of the batch share."""
    return 1 + float(of.parameters["samples"]) / of.batch


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

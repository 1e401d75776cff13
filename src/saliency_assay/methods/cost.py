"""Cost of a map: the number of passes of one image through the model, shown in the report.

A pass is one forward and one backward pass, or a forward pass only if no gradients are needed. The record of a method
has this number or names a function that computes it; the functions of the built-in methods are here. A job counts the
rows that go through its classifier, for methods whose record has neither. This module must not import torch.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from saliency_assay.registry.records import resolve


@dataclass(frozen=True)
class Map:
    """Inputs of the cost of a map, in addition to its method."""

    parameters: Mapping[str, Any]
    """Parameters of the method in the configuration."""
    size: tuple[int, int]
    """Height and width of an image, in pixels."""
    batch: int
    """Number of images in a model batch; passes that serve all of them are divided among them."""
    base: float = 1
    """Passes of the smoothed method."""
    background: float = 0
    """Number of background images; NaN if unknown."""


def passes(record: float | str, inputs: Map) -> float:
    """Return the passes of one image, by the ``passes`` of a method's record."""
    return float(resolve(record)(inputs)) if isinstance(record, str) else record


def steps(inputs: Map) -> int:
    """Return one pass for each step."""
    return int(inputs.parameters["steps"])


def steps_from_two_baselines(inputs: Map) -> int:
    """Return one pass for each step from each of two baselines (``xrai``)."""
    return 2 * steps(inputs)


def samples(inputs: Map) -> int:
    """Return one pass for each sample."""
    return int(inputs.parameters["samples"])


def samples_of_base(inputs: Map) -> float:
    """Return the smoothed method's passes for each sample."""
    return float(inputs.parameters["samples"] * inputs.base)


def steps_of_samples(inputs: Map) -> int:
    """Return one pass for each step from the baseline to each sample."""
    return steps(inputs) * int(inputs.parameters["samples"])


def background_images(inputs: Map) -> float:
    """Return one pass for each image of the background."""
    return inputs.background


def windows(inputs: Map) -> int:
    """Return one pass for the whole image, and one for each position of the window (``occlusion``)."""
    positions = 1
    for side in inputs.size:
        window, stride = (max(1, round(inputs.parameters[name] * side)) for name in ("window", "stride"))
        positions *= len(range(0, side - window + stride, stride))
    return 1 + positions


def coalitions(inputs: Map) -> int:
    """Return one pass for each coalition, at most all of them, and one each for the full and the empty coalition."""
    total: int = 2 ** inputs.parameters["segments"] - 2
    return min(int(inputs.parameters["samples"]), total) + 2


def squares(inputs: Map) -> int:
    """Return one pass for the whole image, and one for each removed square (``optimal``)."""
    height, width = inputs.size
    sides = range(inputs.parameters["smallest"], min(inputs.parameters["largest"], height, width) + 1)
    total = sum((height - side + 1) * (width - side + 1) for side in sides)
    return 1 + min(inputs.parameters["squares"] or total, total)


def shared_samples(inputs: Map) -> float:
    """Return one pass for the image, and its share of the samples that all images of the batch have in common."""
    return 1 + float(inputs.parameters["samples"]) / inputs.batch


@contextmanager
def counted_rows(classifier: Any) -> Iterator[list[int]]:
    """Collect the number of images in each batch that goes through a ``Classifier`` while the context is open."""
    rows: list[int] = []
    with watched_rows(classifier, rows.append):
        yield rows


@contextmanager
def watched_rows(classifier: Any, watch: Callable[[int], object]) -> Iterator[None]:
    """Call ``watch`` with the number of images of each batch, before it goes through a ``Classifier``."""

    def count(_: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        watch(len(next(iter((*args, *kwargs.values())))))

    # Not a hook of the network: those belong to the state by which its canonical form is cached.
    handle = classifier.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


class Stopwatch:
    """Seconds that an iterator takes to produce its blocks, without the time of their consumer.

    The time includes imports made while the first block is produced; to exclude a method's imports, resolve it first.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seconds = 0.0
        self._clock = clock

    def over(self, blocks: Iterator[Any]) -> Iterator[Any]:
        """Yield ``blocks`` unchanged, and add the time to produce each of them to ``seconds``."""
        while True:
            start = self._clock()
            try:
                block = next(blocks)
            except StopIteration:
                return
            finally:
                self.seconds += self._clock() - start
            yield block

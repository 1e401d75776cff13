"""Time and memory that trainings request from a scheduler, from their passes and images."""

from saliency_assay.config.configuration import Configuration
from saliency_assay.config.models import Model
from saliency_assay.pipeline.image_sizes import image_counts, one_image_shape

STARTUP = 30  # minutes, also for reading data from a slow file system
LONGEST, LONGEST_OF_LEAKAGE = (
    960,
    1440,
)  # minutes; 1.3 times the longest of the papers (tests/workflow/test_times.py)
TRAINING_PASSES = 3
FEWEST_PIXELS = 64 * 64
"""Pixels as which smaller images count, because they do not fill a GPU."""
PIXELS_PER_MINUTE = 60 * 2470 * TRAINING_PASSES * 224 * 224 / 8
"""An eighth of the pixels in passes that a ResNet-50 has on an A100 (docs/scaling.md): for networks that are four times
as expensive, on a GPU half as fast."""
LEAST_MEMORY, MOST_MEMORY = 8_000, 32_000  # MB


def training_minutes(
    config: Configuration, model: Model, epochs: int, *, trainings: int = 1, longest: int = LONGEST
) -> int:
    """Return the time limit of a job that trains a model, in minutes.

    It is at most ``longest``, which is also the limit for images of unknown number and size.
    """
    try:
        train, test = image_counts(config, model.data)
        _, height, width = one_image_shape(config, model.data)
    except KeyError:
        return longest
    passes = trainings * epochs * (TRAINING_PASSES * train + test)
    return min(longest, STARTUP + round(passes * max(height * width, FEWEST_PIXELS) / PIXELS_PER_MINUTE))


def training_megabytes(config: Configuration, model: Model) -> int:
    """Return the memory of a job that trains a model, in MB: that of a process with CUDA, and all images of the set."""
    try:
        channels, height, width = one_image_shape(config, model.data)
        images = sum(image_counts(config, model.data)) * channels * height * width / 1e6
    except KeyError:
        return MOST_MEMORY
    return min(MOST_MEMORY, LEAST_MEMORY + round(images))

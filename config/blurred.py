"""Methods whose maps are blurred, for roar_and_road.yaml: an evaluation that prefers them rewards smooth maps."""

from saliency_assay.methods import guided, path
from saliency_assay.studies.validity.degrade import degrade

LEVEL = 0.25  # a standard deviation of 2 pixels at 32 × 32


def integrated_gradients(model, images, targets, *, generator, steps):
    """Return maps of Integrated Gradients, blurred, [N, C, H, W]."""
    return blurred(path.integrated_gradients(model, images, targets, generator=generator, steps=steps))


def guided_backprop(model, images, targets, *, generator):
    """Return maps of Guided Backpropagation, blurred, [N, C, H, W]."""
    return blurred(guided.guided_backprop(model, images, targets, generator=generator))


def blurred(maps):
    """Return maps blurred by a Gaussian filter, each channel separately."""
    return degrade(maps, "blur", LEVEL, seed=0)

"""Guided backpropagation and GradCAM, derived again layer by layer as plain matrices."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    ConvNet,
    classifier,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    skip_classifier,
    with_random_state,
)
from test_deeplift import convolution_matrix
from torch import Tensor, nn

from saliency_assay.methods.cam import gradcam
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.guided import guided_backprop, guided_gradcam

IMAGES, TARGETS = random_images(6, size=6), cyclic_targets(6)
PIXELS = IMAGES[0].numel()


def pooling_matrix(features: np.ndarray) -> np.ndarray:
    """The 2 × 2 max pooling of ``features [K, size, size]`` as the matrix that picks each winner."""
    count, size, _ = features.shape
    index = np.arange(features.size).reshape(features.shape)
    picked = []
    for k, row, column in product(range(count), range(0, size, 2), range(0, size, 2)):
        window = (k, slice(row, row + 2), slice(column, column + 2))
        picked.append(index[window].ravel()[features[window].argmax()])
    return np.eye(features.size)[picked]


def linear_parts(network: ConvNet) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weight and bias of each convolution with its BatchNorm folded in, then of the head."""
    layers = list(network.body)
    for convolution, norm in ((layers[0], layers[1]), (layers[4], layers[5])):
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        bias = (convolution.bias - norm.running_mean) * scale + norm.bias
        yield (convolution.weight * scale[:, None, None, None]).detach().numpy(), bias.detach().numpy()
    yield layers[10].weight.detach().numpy(), layers[10].bias.detach().numpy()


def plain_backward(network: ConvNet, image: np.ndarray, target: int, guided: bool) -> tuple[np.ndarray, ...]:
    """(gradient of the target's logit, its last activations, their gradient), each layer written as a matrix."""
    (w1, b1), (w2, b2), (head, _) = linear_parts(network)
    first, second = convolution_matrix(w1, 6), convolution_matrix(w2, 3)
    h1 = first @ image.ravel() + np.repeat(b1, 36)
    pool = pooling_matrix(np.maximum(h1, 0).reshape(5, 6, 6))
    h2 = second @ pool @ np.maximum(h1, 0) + np.repeat(b2, 9)
    top = np.repeat(head[target] / 9, 9)

    def through(h: np.ndarray, slope: np.ndarray) -> np.ndarray:
        return (h > 0) * (np.maximum(slope, 0) if guided else slope)

    lower = through(h1, pool.T @ second.T @ through(h2, top))
    return (first.T @ lower).reshape(3, 6, 6), np.maximum(h2, 0).reshape(6, 3, 3), top.reshape(6, 3, 3)


@pytest.mark.parametrize(("method", "guided"), [(gradient, False), (guided_backprop, True)])
def test_backward_passes_equal_plain_matrices(method: Callable[..., Tensor], guided: bool) -> None:
    network = with_random_state(ConvNet(3), seed=2)
    maps = method(network, IMAGES, TARGETS, generator=generator())
    for image, target, values in zip(IMAGES.numpy(), TARGETS.tolist(), maps, strict=True):
        exact(values, plain_backward(network, image, target, guided)[0])
    assert maps.abs().flatten(1).sum(1).count_nonzero() >= 4


def bilinear(cam: np.ndarray, size: int) -> np.ndarray:
    """Bilinear interpolation between pixel centers, the border repeated, one axis after the other."""
    for axis in (0, 1):
        centers = (np.arange(size) + 0.5) * cam.shape[axis] / size - 0.5
        cam = np.apply_along_axis(
            lambda line, at=centers: np.interp(at, np.arange(len(line)), line), axis, cam
        )
    return cam


@pytest.mark.parametrize("relu", [True, False])
def test_gradcam_equals_plain_numpy(relu: bool) -> None:
    network = with_random_state(ConvNet(3), seed=2)
    model = classifier(network, "body.6")
    maps = gradcam(model, IMAGES, TARGETS, generator=generator(), relu=relu)
    normalized = (IMAGES.numpy() - 0.45) / 0.25
    for image, target, values in zip(normalized, TARGETS.tolist(), maps, strict=True):
        _, activations, slopes = plain_backward(network, image, target, guided=False)
        cam = np.zeros((3, 3))
        for activation, slope in zip(activations, slopes, strict=True):
            cam += slope.mean() * activation
        exact(values[0], bilinear(np.maximum(cam, 0) if relu else cam, 6), 1e-6)
    assert (maps < 0).any() != relu
    assert (maps > 0).any()


def test_guided_backprop_times_input_is_the_map_times_the_image() -> None:
    model = conv_classifier()
    local = guided_backprop(model, IMAGES, TARGETS, generator=generator())
    exact(guided_backprop(model, IMAGES, TARGETS, generator=generator(), times_input=True), local * IMAGES)


def test_guided_backprop_sees_a_relu_that_is_shared_and_whose_input_goes_elsewhere_too() -> None:
    """f = wᵀ (relu(Bh) + h) with h = relu(Ax)."""
    relu = nn.ReLU(inplace=True)
    a, b = torch.randn(2, PIXELS, PIXELS, generator=generator(1), dtype=torch.float64)
    head = torch.randn(CLASSES, PIXELS, generator=generator(2), dtype=torch.float64)

    class Net(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            hidden = relu(images.flatten(1) @ a.T)
            return (relu(hidden @ b.T) + hidden) @ head.T

    maps = guided_backprop(Net(), IMAGES, TARGETS, generator=generator())
    for image, target, values in zip(IMAGES.flatten(1).numpy(), TARGETS.tolist(), maps, strict=True):
        h1 = a.numpy() @ image
        h2 = b.numpy() @ np.maximum(h1, 0)
        top = head[target].numpy()
        middle = b.numpy().T @ ((h2 > 0) * np.maximum(top, 0)) + top
        exact(values.flatten(), a.numpy().T @ ((h1 > 0) * np.maximum(middle, 0)))


def test_guided_gradcam_is_the_product() -> None:
    model = skip_classifier()
    guided = guided_backprop(model, IMAGES, TARGETS, generator=generator())
    cam = gradcam(model, IMAGES, TARGETS, generator=generator())
    product_of_both = guided_gradcam(model, IMAGES, TARGETS, generator=generator())
    exact(product_of_both, guided * cam)
    assert product_of_both.abs().max() > 0

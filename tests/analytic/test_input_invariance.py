"""Input invariance against closed forms, and the shifted classifier."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from support import classifier, conv_classifier, cyclic_targets, exact, generator, random_images, state_of
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient, gradient_x_input
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.metrics.input_invariance import input_invariance, shifted_classifier
from saliency_assay.models.classifier import Classifier

IMAGES, TARGETS = random_images(4), cyclic_targets(4)


def scored(model: Classifier, method: Callable[..., Tensor], shift: float, **parameters: Any) -> Tensor:
    explain = partial(method, generator=generator(), **parameters)

    def explain_shifted(images: Tensor, targets: Tensor, model: nn.Module) -> Tensor:
        return explain(model, images, targets)

    maps = explain(model, IMAGES, TARGETS)
    result = input_invariance(
        model, IMAGES, TARGETS, maps, generator=generator(), explain=explain_shifted, shift=shift
    )
    return result.scores["input_invariance", ""]


@pytest.mark.parametrize("shift", [-1.0, 0.3])
def test_the_shifted_classifier_undoes_the_shift(shift: float) -> None:
    """With zero padding, too, which a convolution with another bias would not account for."""
    model = conv_classifier()
    before = state_of(model)
    shifted = shifted_classifier(model, shift)
    torch.testing.assert_close(shifted(IMAGES + shift), model(IMAGES))
    assert not torch.allclose(shifted(IMAGES), model(IMAGES))
    assert state_of(model) == before
    assert shifted.network is model.network


def test_gradients_are_invariant_and_their_products_with_the_image_are_not() -> None:
    """The product changes by the gradient times the shift."""
    model = conv_classifier()
    assert (scored(model, gradient, -1.0) < 1e-12).all()
    maps = gradient(model, IMAGES, TARGETS, generator=generator())
    expected = 0.3 * maps.flatten(1).norm(dim=1) / (maps * IMAGES).flatten(1).norm(dim=1)
    exact(scored(model, gradient_x_input, 0.3), expected.numpy())


def test_a_reference_image_is_invariant_if_it_is_shifted_with_the_images() -> None:
    """Kindermans et al., section 3: with black as reference, Integrated Gradients is not input invariant."""
    model = conv_classifier()
    parameters = {"steps": 5, "times_input": True}
    assert (scored(model, integrated_gradients, -1.0, baseline="black", **parameters) > 0.1).all()
    assert (scored(model, integrated_gradients, -1.0, baseline="mean", **parameters) < 1e-9).all()


def test_maps_without_a_norm_have_no_score() -> None:
    model, maps = conv_classifier(), torch.ones_like(IMAGES)
    maps[1], maps[2, 0, 0, 0] = 0, torch.nan
    result = input_invariance(
        model, IMAGES, TARGETS, maps, generator=generator(), explain=lambda *_, **__: torch.ones_like(IMAGES)
    )
    exact(result.scores["input_invariance", ""].nan_to_num(-1), torch.tensor([0.0, -1, -1, 0]).numpy())


def test_a_model_without_a_normalization_is_refused() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(432, 4))
    with pytest.raises(ValueError, match=r"^predict: found Sequential, expected a Classifier"):
        shifted_classifier(network, -1.0)
    assert classifier(network, "1").classes == shifted_classifier(classifier(network, "1"), -1.0).classes

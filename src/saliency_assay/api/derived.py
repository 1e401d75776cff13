"""Copies of a network with new random weights, or fine-tuned, for metrics that compare the model with them."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from saliency_assay.api.inputs import Arrays, images_of, integer_of, targets_of
from saliency_assay.api.networks import check_differentiable, classifier_of
from saliency_assay.methods.engine import check_targets
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.state import changed, copy_of
from saliency_assay.runtime.provenance import seed_of

M = TypeVar("M", bound=nn.Module)
REPLACED = {
    "augment_removal": "the argument beta",
    "augment_fill": "the argument fill",
    **dict.fromkeys(("evaluate", "patience", "validation_share"), "none: no images are held out"),
}
"""Training parameters of the workflow that ``finetune`` does not take, and what is expected instead."""


def randomize(model: M, layers: str | Sequence[str] | None = None, *, seed: int = 0) -> M:
    """Return a copy of a network with new random weights, for ``randomized_model`` of ``score``.

    Layers are initialized by their ``reset_parameters``, as when PyTorch creates them, which also resets running
    statistics. Other parameters, such as a class token, are sampled from a normal distribution with the mean and
    standard deviation of their values; parameters whose values are all equal therefore stay the same. Mode, device and
    normalization are those of ``model``.

    If all weights are equal to those of ``model``, such as those of an untrained network that was created after
    ``torch.manual_seed(seed)``, they are sampled again with the next seed.

    Args:
        model: a network or the result of ``wrap``.
        layers: paths of the layers to randomize, with all layers inside them, such as ``layer4``; by default all. A
            negative number counts from the end, as in ``blocks.-1``.
        seed: seed of the weights; they also depend on the kind of device.

    Raises:
        ValueError: the model is not a network with weights, or does not have a layer.

    >>> import torch
    >>> import saliency_assay
    >>> network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 10))
    >>> randomized = saliency_assay.randomize(network, "2")
    >>> [torch.equal(network[n].weight, randomized[n].weight) for n in (0, 2)]
    [True, False]
    """
    _check_network(model)
    with (
        torch.inference_mode(False),
        torch.no_grad(),
    ):  # autograd counts no writes to tensors of inference mode
        copy = copy_of(model)
        network = copy.network if isinstance(copy, Classifier) else copy
        if layers is None:
            modules = list(network.modules())
        else:
            paths = [layers] if isinstance(layers, str) else layers
            modules = [module for path in paths for module in _layer_of(network, path).modules()]
        if not any(True for module in modules for _ in module.parameters(recurse=False)):
            raise ValueError(
                f"model: found no parameters in {layers or type(network).__name__}, expected some"
            )
        devices = {tensor.device for tensor in network.parameters() if tensor.device.type == "cuda"}
        with torch.random.fork_rng(devices):
            for attempt in (seed, seed + 1):
                torch.manual_seed(integer_of(attempt, "seed"))
                for module in dict.fromkeys(modules):
                    _randomize_own(module)
                if changed(dict(model.named_parameters()), dict(copy.named_parameters())):
                    break
    return copy  # type: ignore[return-value]  # a copy has the type of the model


def finetune(
    model: M,
    images: Arrays,
    targets: Any,
    *,
    epochs: int = 10,
    learning_rate: float = 0.01,
    batch_size: int = 64,
    beta: float = 0.1,
    fill: str = "mean",
    seed: int = 0,
    **training: Any,
) -> M:
    """Return a copy of a network trained further on images without random pixels, for ``f_fidelity``.

    With ``beta=0, augment_deletion=4``, it is trained for ``single_deletion``, on images without a cell of 4 × 4.
    The loss is the cross-entropy. Only parameters that require gradients are trained, or all if none do. The training
    is that of the workflow.

    Args:
        model: a network or the result of ``wrap``, on the device for training.
        images: training images, ``[N, C, H, W]``, uint8 or floating point in [0, 1].
        targets: the class of each image, ``[N]``.
        epochs: number of passes over the images.
        learning_rate: largest learning rate: usually a tenth of that of the first training.
        batch_size: number of images in a step; an incomplete batch at the end of an epoch is left out.
        beta: share of the pixels that are removed from each image at random, as in ``f_fidelity``.
        fill: ``mean`` or ``black``, the color of removed pixels, as in ``f_fidelity``.
        seed: seed of the order of images and of their augmentation.
        training: other training parameters (``docs/models.md``), such as ``optimizer`` or ``augment_flip``.

    Raises:
        ValueError: the model is not a network with several exclusive classes, a parameter or its value is not valid,
            images or targets do not fit, there are fewer images than ``batch_size``, or the training diverges.
    """
    from saliency_assay.training.hyperparameters import training_from
    from saliency_assay.training.loop import train

    _check_network(model)
    pixels = images_of(images)
    classes = targets_of(targets, len(pixels))
    copy = copy_of(model)
    classifier = classifier_of(copy, pixels)
    check_differentiable("finetune", classifier)
    check_targets(classes, len(pixels), classifier.classes)
    if classifier.multi_label or classifier.classes == 1:
        raise ValueError(
            "model: found no exclusive classes, expected several, whose cross-entropy is the loss"
        )
    if fill == "mean" and not isinstance(model, Classifier):
        raise ValueError(
            "fill: found 'mean', but the model stores no mean; pass saliency_assay.wrap(…), or fill='black'"
        )
    for key in training.keys() & REPLACED.keys():
        raise ValueError(f"{key}: found a value, expected {REPLACED[key]}")
    named = {"epochs": epochs, "learning_rate": learning_rate, "batch_size": batch_size}
    settings = training_from({**training, **named, "augment_removal": beta, "augment_fill": fill})
    if not any(parameter.requires_grad for parameter in classifier.parameters()):
        classifier.requires_grad_()
    everything, nothing = torch.arange(len(pixels)), torch.empty(0, dtype=torch.int64)
    with TemporaryDirectory() as folder:
        train(
            classifier,
            pixels,
            torch.from_numpy(classes),
            everything,
            nothing,
            settings,
            seed=seed_of(integer_of(seed, "seed"), "train"),  # as in the workflow
            state_path=Path(folder) / "state.pt",
            fingerprint="finetune",
        )
    return copy  # type: ignore[return-value]  # a copy has the type of the model


def _check_network(model: object) -> None:
    """Check that the model is a network and not a function.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(
            f"model: found {type(model).__name__}, which has no weights, expected a torch.nn.Module"
        )


def _layer_of(network: nn.Module, path: str) -> nn.Module:
    """Return the layer at ``path``, see ``Classifier.layer``."""
    if not isinstance(path, str) or not path:
        raise ValueError(f"layers: found {path!r}, expected paths of layers, such as 'layer4'")
    classifier = Classifier(network, classes=1, mean=[0.0], std=[1.0], cam_layer="", concept_layers=())
    return classifier.layer(path)


def _randomize_own(module: nn.Module) -> None:
    """Sample the parameters of a module without those of its children, and reset its running statistics."""
    before = {name: (id(each), each._version) for name, each in module.named_parameters(recurse=False)}
    reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
    if callable(reset):
        reset()
    for name, each in module.named_parameters(recurse=False):
        # A method may leave some as they are; those of parametrized weights have no effect.
        if each.is_floating_point() and before.get(name) == (id(each), each._version):
            each.copy_(_like(each))
    for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
        if isinstance(buffer := getattr(module, name, None), Tensor):
            buffer.fill_(value)


def _like(values: Tensor) -> Tensor:
    """Return a normal sample with the mean and standard deviation of ``values``."""
    exact = values.double()  # in which equal values have no deviation
    return torch.randn_like(exact) * exact.std(correction=0) + exact.mean()

"""TCAV: dependence of a model's logits on a concept, by layer (Kim et al. 2018; BAM, appendix F).

A concept activation vector (CAV) is the direction, in the space of a layer's activations, from images without the
concept to images with it. The TCAV score is the share of images whose logit increases in this direction. A layer is
kept if the scores of concept CAVs differ significantly from those of random CAVs, between two samples without the
concept.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import stats
from sklearn.linear_model import SGDClassifier
from torch import Tensor, nn

from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.methods.differentiate import NO_GRADIENT, describe_tensor
from saliency_assay.methods.engine import check_targets, frozen, pixels_of
from saliency_assay.methods.passes import reported
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32, uncompiled
from saliency_assay.registry.limits import Limits, Share

Floats = npt.NDArray[np.float64]
Scores = dict[str, dict[str, Floats]]

KINDS = ("concept", "random")  # concept CAVs, and random CAVs between two samples without the concept
LOGITS = "logits"
"""Name of the logits as a layer, if no concept layer of the classifier outputs them."""


@dataclass(frozen=True)
class Examples:
    """Training examples of CAVs: two sets of images, aligned by index, the second one without the concept.

    Both sets are indexed by int64 arrays, which select images uint8 ``[n, C, H, W]``.
    """

    concept: str
    having: Any
    lacking: Any
    with_concept: Ints
    """Indices of the images of ``having`` that may be sampled."""
    without: Ints
    """Indices of the images of ``lacking`` that may be sampled, one per scene, since those of one scene are equal."""
    scene: Ints
    """Scene index of every image, ``[N]``."""


def examples_of(
    concept: str, having: Any, lacking: Any, *, has_concept: npt.NDArray[np.bool_], split: Any, scene: Ints
) -> Examples:
    """Return the training examples of two aligned sets; ``has_concept``, ``split`` and ``scene`` are ``[N]``."""
    train = np.flatnonzero(split == TRAIN)
    _, first = np.unique(scene[train], return_index=True)
    return Examples(concept, having, lacking, train[has_concept[train]], train[np.sort(first)], scene)


def images_under_test(
    split: Any, labels: Mapping[str, Ints], where: Mapping[str, int], right: Any, *, limit: int, seed: int
) -> Ints:
    """Return ascending indices of at most ``limit`` test images that match ``where`` and are ``right``.

    ``split``, ``right`` (classified correctly) and each of ``labels`` are ``[N]``. All images are shuffled before the
    correctly classified ones are selected, so that the selections of two models differ only where their errors do.
    """
    eligible = split == TEST
    for name, value in where.items():
        eligible &= labels[name] == value
    order = np.random.default_rng(seed).permutation(len(eligible))
    return np.sort(order[(eligible & right)[order]][:limit])


def tcav(
    classifier: Classifier,
    examples: Examples,
    tested: Any,
    targets: npt.NDArray[np.int64],
    batch_size: int,
    *,
    images: Annotated[int, Limits(minimum=2)] = 100,
    experiments: Annotated[int, Limits(minimum=2)] = 20,
    alpha: Annotated[float, Limits(minimum=1e-12)] = 0.1,
    generator: np.random.Generator,
) -> Scores:
    """Compute TCAV scores of every layer: ``{layer: {"concept": [experiments], "random": [experiments]}}`` in [0, 1].

    TCAV(l, v) is the share of the images ``tested`` with ∂f_t / ∂a_l · v > 0, where a_l is the layer's output, f_t the
    logit of the image's target and v the CAV (Kim et al. 2018, Eqs. 1 and 2). Layers are the classifier's
    ``concept_layers`` and, unless one of these outputs them, the logits. Each experiment samples ``images`` images with
    the concept and as many without it, of other scenes; each random CAV uses two disjoint samples without it.

    Args:
        classifier: the model.
        examples: training images of the CAVs.
        tested: images under test, an object whose slices are uint8 ``[n, C, H, W]``.
        targets: class of each image under test, int64 ``[len(tested)]``.
        batch_size: images per forward pass.
        images: images in each of the two samples of a CAV.
        experiments: number of CAVs of each kind.
        alpha: weight of the L2 penalty of the linear classifier.
        generator: random generator; the examples of experiment i do not depend on the number of experiments.

    Returns:
        The scores, NaN if there is no image under test, and for a CAV of a layer whose activations are equal for all
        examples.

    Raises:
        ValueError: there are fewer training images than a sample needs, or a layer has no activations or ones that
            are not finite.
    """
    _check_examples(examples, images)
    layers = _layers_of(classifier, pixels_of(examples.lacking[examples.without[:1]], classifier.device))
    if not len(targets):
        return {layer: {kind: np.full(experiments, np.nan) for kind in KINDS} for layer in layers}
    check_targets(targets, len(tested), classifier.classes)
    vectors: dict[str, list[Tensor]] = {layer: [] for layer in layers}
    for kind, parent in zip(KINDS, generator.spawn(2), strict=True):
        for child in parent.spawn(experiments):
            positive, negative = _sample_examples(examples, kind, images, child)
            activations = _activations(classifier, [positive, negative], layers, batch_size)
            seed = int(child.integers(2**31))
            for layer in layers:
                # ``pop`` frees the activations of each layer after use, which limits the peak memory.
                vector = _checked_activation_vector(
                    layer, activations.pop(layer), images, alpha=alpha, seed=seed
                )
                vectors[layer].append(vector)
    stacked = {layer: torch.stack(vector) for layer, vector in vectors.items()}
    shares = _positive_shares(classifier, tested, targets, stacked, batch_size)
    return {layer: dict(zip(KINDS, np.split(share, 2), strict=True)) for layer, share in shares.items()}


def rows_of(scores: Scores, images: int) -> pd.DataFrame:
    """Return the scores as columns ``metric``, ``variant``, ``image`` and ``score`` of a score table.

    Variants are ``{layer} concept {i}`` and ``{layer} random {i}``, where i is the experiment, from 0. The number of
    ``images`` under test is a separate metric, ``tcav_images``.
    """
    rows = [
        ("tcav", f"{layer} {kind} {number}", score)
        for layer, kinds in scores.items()
        for kind in KINDS
        for number, score in enumerate(kinds[kind])
    ]
    rows.append(("tcav_images", "", float(images)))
    return pd.DataFrame(rows, columns=["metric", "variant", "score"]).assign(image=-1)


def layer_test(concept: Floats, random: Floats, *, significance: Share = 0.01) -> tuple[float, bool]:
    """Return the p-value of a two-sided t-test between two sets of TCAV scores, and True if the layer is kept.

    This is Student's test with equal variances, as in ``scipy.stats.ttest_ind``. If both sets are constant, p is 1 if
    they are equal, else 0. A layer is kept if p is at most ``significance`` (BAM, appendix F: scores with p > 0.01 are
    rejected). If a score is NaN or a set has fewer than two scores, p is NaN and the layer is not kept.
    """
    if min(len(concept), len(random)) < 2 or np.isnan([*concept, *random]).any():
        return float("nan"), False
    if np.ptp(concept) == np.ptp(random) == 0:
        p = float(concept[0] == random[0])
    else:
        summaries = [(values.mean(), values.std(ddof=1), len(values)) for values in (concept, random)]
        p = float(stats.ttest_ind_from_stats(*summaries[0], *summaries[1]).pvalue)
    return p, p <= significance


def activation_vector(
    activations: Tensor, has_concept: npt.NDArray[np.bool_], *, alpha: float, seed: int
) -> Tensor:
    """Return the CAV ``[F]``: the unit normal of a linear classifier, directed towards the examples with the concept.

    ``activations`` are ``[n, F]``; the result is NaN if they are equal for all examples. The classifier is
    scikit-learn's ``SGDClassifier`` with hinge loss (a linear support vector machine) and L2 penalty ``alpha``, as in
    the TCAV library. It depends on the examples only through inner products and is therefore trained on their
    coordinates in an orthonormal basis of their span, which are n numbers instead of F.
    """
    if bool((activations == activations[0]).all()):
        return torch.full_like(activations[0], torch.nan)
    basis, coordinates = torch.linalg.qr(activations.T)
    linear_classifier = SGDClassifier(loss="hinge", alpha=alpha, random_state=seed)
    linear_classifier.fit(coordinates.T.double().cpu().numpy(), has_concept)
    normal = basis @ torch.tensor(linear_classifier.coef_[0]).to(basis)
    unit: Tensor = normal / normal.norm()
    return unit


def directional_derivatives(
    classifier: Classifier, pixels: Tensor, targets: Tensor, vectors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Compute ∂f_t / ∂a_l · v of each image and CAV, ``[N, V]`` by layer, in one forward and one backward pass.

    ``pixels`` are ``[N, C, H, W]`` in [0, 1], ``targets`` int64 ``[N]``, ``vectors`` ``[V, F]`` for each layer.
    """
    with evaluating(classifier), frozen(classifier), exact_float32(), torch.enable_grad():
        outputs = layer_outputs(classifier, pixels.detach().requires_grad_())
        # The gradient of the sum contains each image's own gradient, because no logit depends on another image.
        score = outputs[LOGITS].gather(1, targets[:, None]).sum()
        activations = [outputs[layer] for layer in vectors]
        if not all(each.requires_grad for each in (score, *activations)):
            raise ValueError(NO_GRADIENT)
        gradients = torch.autograd.grad(score, activations, materialize_grads=True)
        return {
            layer: gradient.flatten(1) @ vectors[layer].T
            for layer, gradient in zip(vectors, gradients, strict=True)
        }


def _check_examples(examples: Examples, images: int) -> None:
    """Check that there are enough images for every sample.

    The sample with the concept may exclude up to ``images`` scenes from the sample without it.
    """
    requirements = {
        "images with it": (examples.with_concept, images),
        "scenes": (examples.without, 2 * images),
    }
    for name, (indices, minimum) in requirements.items():
        if len(indices) < minimum:
            raise ValueError(
                f"concept {examples.concept!r}: found {len(indices)} {name} to train on, "
                f"expected at least {minimum}"
            )


def _sample_examples(
    examples: Examples, kind: str, images: int, generator: np.random.Generator
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Sample the two sets of examples of a CAV, both uint8 ``[images, C, H, W]``, with disjoint scenes."""
    if kind == "random":
        first, second = generator.choice(examples.without, (2, images), replace=False)
        return examples.lacking[first], examples.lacking[second]
    concept_rows = generator.choice(examples.with_concept, images, replace=False)
    candidates = examples.without[~np.isin(examples.scene[examples.without], examples.scene[concept_rows])]
    return examples.having[concept_rows], examples.lacking[
        generator.choice(candidates, images, replace=False)
    ]


def _layers_of(classifier: Classifier, pixels: Tensor) -> list[str]:
    """Return the classifier's concept layers, and the logits if none of these outputs them."""
    with evaluating(classifier), exact_float32(), torch.no_grad():
        outputs = layer_outputs(classifier, pixels)
    logits = outputs.pop(LOGITS)
    has_logits = any(
        output.shape == logits.shape and torch.equal(output, logits) for output in outputs.values()
    )
    return [*outputs] if has_logits else [*outputs, LOGITS]


def _activations(
    classifier: Classifier, samples: list[Any], layers: list[str], batch_size: int
) -> dict[str, Tensor]:
    """Return each layer's output for the images of all ``samples`` in order, ``[n, F]`` on the classifier's device."""
    activations: dict[str, Tensor] = {}
    total, row = sum(map(len, samples)), 0
    for sample in samples:
        for start in range(0, len(sample), batch_size):
            pixels = pixels_of(sample[start : start + batch_size], classifier.device)
            with evaluating(classifier), exact_float32(), torch.no_grad():
                outputs = layer_outputs(classifier, pixels)
            for layer in layers:
                flat = outputs[layer].flatten(1)
                activations.setdefault(layer, flat.new_empty(total, flat.shape[1]))[row : row + len(flat)] = (
                    flat
                )
            row += len(pixels)
    return activations


def _checked_activation_vector(
    layer: str, activations: Tensor, positive: int, *, alpha: float, seed: int
) -> Tensor:
    """Check the activations; return the CAV of examples of which the first ``positive`` have the concept."""
    if not bool(activations.isfinite().all()):
        raise ValueError(f"concept_layers: {layer!r}: found NaN or infinity, expected finite activations")
    return activation_vector(activations, np.arange(len(activations)) < positive, alpha=alpha, seed=seed)


def _positive_shares(
    classifier: Classifier, tested: Any, targets: Ints, vectors: Mapping[str, Tensor], batch_size: int
) -> dict[str, Floats]:
    """Return the share of images with positive derivative in the direction of each CAV, ``[V]``; NaN if any is NaN."""
    counts = {
        layer: torch.zeros(len(layer_vectors), dtype=torch.float64)
        for layer, layer_vectors in vectors.items()
    }
    for start in reported(len(targets), batch_size, "images under test"):
        batch = slice(start, start + batch_size)
        pixels = pixels_of(tested[batch], classifier.device)
        batch_targets = torch.tensor(targets[batch], device=classifier.device)
        for layer, derivatives in directional_derivatives(classifier, pixels, batch_targets, vectors).items():
            counts[layer] += (
                torch.where(derivatives.isnan(), torch.nan, (derivatives > 0).double()).sum(0).cpu()
            )
    return {layer: (count / len(targets)).numpy() for layer, count in counts.items()}


def layer_outputs(classifier: Classifier, pixels: Tensor) -> dict[str, Tensor]:
    """Return the output of each concept layer for ``pixels``, with the logits as ``LOGITS`` in any case.

    Raises:
        ValueError: a layer does not return one tensor of floats ``[N, …]``.
    """
    with _record_outputs(classifier) as outputs_by_layer:
        logits: Tensor = classifier(pixels)
    for layer, outputs in outputs_by_layer.items():
        output = outputs[0] if len(outputs) == 1 else f"{len(outputs)} outputs"
        is_float_tensor = isinstance(output, Tensor) and output.is_floating_point() and output.ndim > 1
        if not is_float_tensor or len(output) != len(pixels):
            output_text = describe_tensor(output) if isinstance(output, Tensor) else output
            raise ValueError(
                f"concept_layers: {layer!r}: found {output_text}, expected one output of floats [{len(pixels)}, …]"
            )
    return {**{layer: outputs[0] for layer, outputs in outputs_by_layer.items()}, LOGITS: logits}


@contextmanager
def _record_outputs(classifier: Classifier) -> Iterator[dict[str, list[Any]]]:
    """Record all outputs of each concept layer within the context; later layers receive copies."""
    outputs_by_layer: dict[str, list[Any]] = {layer: [] for layer in classifier.concept_layers}

    def keep(name: str, layer: nn.Module, inputs: object, output: object) -> Tensor | None:
        outputs_by_layer[name].append(output)
        # A copy: an in-place ReLU after the layer would change the recorded output.
        return output.clone() if isinstance(output, Tensor) else None

    hooks = [classifier.layer(name).register_forward_hook(partial(keep, name)) for name in outputs_by_layer]
    try:
        with uncompiled():
            yield outputs_by_layer
    finally:
        for hook in hooks:
            hook.remove()

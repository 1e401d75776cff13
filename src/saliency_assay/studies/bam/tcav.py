"""TCAV: how far a model's logits depend on a concept, layer by layer (Kim et al. 2018; BAM, appendix F).

A concept activation vector (CAV) is the direction in a layer's activations that leads from images without the concept
to images with it. The TCAV score is the share of images whose logit rises along it, and counts where CAVs of the
concept score otherwise than CAVs between two samples that both lack it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy import stats
from sklearn.linear_model import SGDClassifier
from torch import Tensor, nn

from saliency_assay.data.splits import TEST, TRAIN, Ints
from saliency_assay.methods.differentiate import describe
from saliency_assay.methods.engine import check_targets, frozen, pixels_of
from saliency_assay.methods.passes import reported
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import evaluating, exact_float32

Floats = npt.NDArray[np.float64]
Scores = dict[str, dict[str, Floats]]

KINDS = ("concept", "random")  # CAVs of the concept, and CAVs between two samples without it
LOGITS = "logits"
"""What the logits are called as a layer, where no concept layer of the classifier gives them."""


@dataclass(frozen=True)
class Examples:
    """What CAVs are learned from: two sets of images that are aligned index by index, the second without the concept.

    Images are anything that int64 indices select uint8 ``[n, C, H, W]`` from.
    """

    concept: str
    having: Any
    lacking: Any
    with_concept: Ints
    """Indices of the images of ``having`` that may be drawn."""
    without: Ints
    """Indices of the images of ``lacking`` that may be drawn, one of each scene: there, one scene is one image."""
    scene: Ints
    """The scene of every image, ``[N]``."""


def examples_of(
    concept: str, having: Any, lacking: Any, *, has_concept: npt.NDArray[np.bool_], split: Any, scene: Ints
) -> Examples:
    """The training images of two aligned sets; ``has_concept``, ``split`` and ``scene`` are ``[N]``."""
    train = np.flatnonzero(split == TRAIN)
    _, first = np.unique(scene[train], return_index=True)
    return Examples(concept, having, lacking, train[has_concept[train]], train[np.sort(first)], scene)


def images_under_test(
    split: Any, labels: Mapping[str, Ints], where: Mapping[str, int], right: Any, *, limit: int, seed: int
) -> Ints:
    """Ascending indices of at most ``limit`` test images that fulfil ``where`` and are ``right``.

    ``split``, ``right`` and each of ``labels`` are ``[N]``. All images are shuffled before the right ones are taken,
    so that two models which are right about different images share the rest.
    """
    fitting = split == TEST
    for name, value in where.items():
        fitting &= labels[name] == value
    order = np.random.default_rng(seed).permutation(len(fitting))
    return np.sort(order[(fitting & right)[order]][:limit])


def tcav(
    classifier: Classifier,
    examples: Examples,
    tested: Any,
    targets: npt.NDArray[np.int64],
    batch_size: int,
    *,
    images: int = 100,
    experiments: int = 20,
    alpha: float = 0.1,
    generator: np.random.Generator,
) -> Scores:
    """TCAV scores of every layer: ``{layer: {"concept": [experiments], "random": [experiments]}}`` in [0, 1].

    TCAV(l, v) = share of the images ``tested`` with ∂f_t / ∂a_l · v > 0, where a_l is the layer's output, f_t the
    logit of the image's target and v the CAV (Kim et al. 2018, Eqs. 1 and 2). Layers are the classifier's
    ``concept_layers`` and, unless one of these gives them, the logits. Each experiment draws ``images`` images with the
    concept and as many without it, of other scenes; each random CAV two disjoint samples without it.

    Args:
        tested: anything whose slices are uint8 ``[n, C, H, W]``.
        targets: int64 ``[len(tested)]``.
        batch_size: images that go through the classifier together.
        alpha: weight of the L2 penalty of the linear classifier.
        generator: experiment i draws the same examples however many experiments there are.

    Returns:
        NaN throughout where no image is tested, and for a CAV of a layer that tells no example from another.

    Raises:
        ValueError: fewer training images than a draw needs, a layer that gives no activations, or activations
            that are not finite.
    """
    _check_examples(examples, images)
    layers = _layers_of(classifier, pixels_of(examples.lacking[examples.without[:1]], classifier.device))
    if not len(targets):
        return {layer: {kind: np.full(experiments, np.nan) for kind in KINDS} for layer in layers}
    check_targets(targets, len(tested), classifier.classes)
    vectors: dict[str, list[Tensor]] = {layer: [] for layer in layers}
    for kind, parent in zip(KINDS, generator.spawn(2), strict=True):
        for child in parent.spawn(experiments):
            positive, negative = _drawn(examples, kind, images, child)
            found = _activations(classifier, [positive, negative], layers, batch_size)
            seed = int(child.integers(2**31))
            for layer in layers:
                learned = _activation_vector_of(layer, found.pop(layer), images, alpha=alpha, seed=seed)
                vectors[layer].append(learned)
    stacked = {layer: torch.stack(learned) for layer, learned in vectors.items()}
    shares = _positive_shares(classifier, tested, targets, stacked, batch_size)
    return {layer: dict(zip(KINDS, np.split(share, 2), strict=True)) for layer, share in shares.items()}


def rows_of(scores: Scores, images: int) -> pd.DataFrame:
    """The scores as ``metric``, ``variant``, ``image`` and ``score`` of a score table.

    Variants are ``{layer} concept {i}`` and ``{layer} random {i}`` with i the experiment, from 0. How many ``images``
    were under test is a score of its own, ``tcav_images``.
    """
    rows = [
        ("tcav", f"{layer} {kind} {number}", score)
        for layer, kinds in scores.items()
        for kind in KINDS
        for number, score in enumerate(kinds[kind])
    ]
    rows.append(("tcav_images", "", float(images)))
    return pd.DataFrame(rows, columns=["metric", "variant", "score"]).assign(image=-1)


def layer_test(concept: Floats, random: Floats, *, significance: float = 0.01) -> tuple[float, bool]:
    """The p-value of a two-sided t-test between two sets of TCAV scores, and whether the layer counts.

    Student's test with equal variances, as ``scipy.stats.ttest_ind`` has it. Where neither set varies p is 1 if they
    are equal, else 0. A layer counts when p is at most ``significance`` (BAM, appendix F: scores with p > 0.01 are
    rejected). p is NaN, and the layer does not count, where a score is NaN or a set has fewer than two.
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
    """The CAV: unit normal ``[F]`` of a linear support vector machine, towards the examples with the concept.

    ``activations`` are ``[n, F]``; NaN where they are all alike. The machine is scikit-learn's ``SGDClassifier`` with
    hinge loss and L2 penalty ``alpha``, as in the TCAV library. It reads its examples through inner products only, so
    that it is trained on their coordinates in an orthonormal basis of their span, n numbers instead of F.
    """
    if bool((activations == activations[0]).all()):
        return torch.full_like(activations[0], torch.nan)
    basis, coordinates = torch.linalg.qr(activations.T)
    machine = SGDClassifier(loss="hinge", alpha=alpha, random_state=seed)
    machine.fit(coordinates.T.double().cpu().numpy(), has_concept)
    normal = basis @ torch.tensor(machine.coef_[0]).to(basis)
    unit: Tensor = normal / normal.norm()
    return unit


def directional_derivatives(
    classifier: Classifier, pixels: Tensor, targets: Tensor, vectors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """∂f_t / ∂a_l · v of each image and CAV, ``[N, V]`` for each layer, from one forward and one backward pass.

    ``pixels`` are ``[N, C, H, W]`` in [0, 1], ``targets`` int64 ``[N]``, ``vectors`` ``[V, F]`` for each layer.
    """
    with evaluating(classifier), frozen(classifier), exact_float32(), torch.enable_grad():
        outputs = _outputs(classifier, pixels.detach().requires_grad_())
        # One backward pass of the sum serves all images, because no logit depends on another image.
        score = outputs[LOGITS].gather(1, targets[:, None]).sum()
        asked = [outputs[layer] for layer in vectors]
        gradients = torch.autograd.grad(score, asked, materialize_grads=True)
        return {
            layer: gradient.flatten(1) @ vectors[layer].T
            for layer, gradient in zip(vectors, gradients, strict=True)
        }


def _check_examples(examples: Examples, images: int) -> None:
    """Enough for any draw: a sample with the concept may hold ``images`` of the scenes without."""
    enough = {"images with it": (examples.with_concept, images), "scenes": (examples.without, 2 * images)}
    for what, (indices, wanted) in enough.items():
        if len(indices) < wanted:
            raise ValueError(
                f"concept {examples.concept!r}: found {len(indices)} {what} to train on, "
                f"expected at least {wanted}"
            )


def _drawn(
    examples: Examples, kind: str, images: int, generator: np.random.Generator
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Examples of the two sides of a CAV, uint8 ``[images, C, H, W]`` both, of different scenes."""
    if kind == "random":
        first, second = generator.choice(examples.without, (2, images), replace=False)
        return examples.lacking[first], examples.lacking[second]
    chosen = generator.choice(examples.with_concept, images, replace=False)
    others = examples.without[~np.isin(examples.scene[examples.without], examples.scene[chosen])]
    return examples.having[chosen], examples.lacking[generator.choice(others, images, replace=False)]


def _layers_of(classifier: Classifier, pixels: Tensor) -> list[str]:
    """The classifier's concept layers, and the logits where none of these gives them."""
    with evaluating(classifier), exact_float32(), torch.no_grad():
        outputs = _outputs(classifier, pixels)
    logits = outputs.pop(LOGITS)
    given = any(output.shape == logits.shape and torch.equal(output, logits) for output in outputs.values())
    return [*outputs] if given else [*outputs, LOGITS]


def _activations(
    classifier: Classifier, parts: list[Any], layers: list[str], batch_size: int
) -> dict[str, Tensor]:
    """What each layer gives for the images of all ``parts`` in order, ``[n, F]`` on the classifier's device."""
    found: dict[str, Tensor] = {}
    total, row = sum(map(len, parts)), 0
    for part in parts:
        for start in range(0, len(part), batch_size):
            pixels = pixels_of(part[start : start + batch_size], classifier.device)
            with evaluating(classifier), exact_float32(), torch.no_grad():
                outputs = _outputs(classifier, pixels)
            for layer in layers:
                flat = outputs[layer].flatten(1)
                found.setdefault(layer, flat.new_empty(total, flat.shape[1]))[row : row + len(flat)] = flat
            row += len(pixels)
    return found


def _activation_vector_of(
    layer: str, activations: Tensor, positive: int, *, alpha: float, seed: int
) -> Tensor:
    """The CAV of examples of which the first ``positive`` have the concept, checked before it is learned."""
    if not bool(activations.isfinite().all()):
        raise ValueError(f"concept_layers: {layer!r}: found NaN or infinity, expected finite activations")
    return activation_vector(activations, np.arange(len(activations)) < positive, alpha=alpha, seed=seed)


def _positive_shares(
    classifier: Classifier, tested: Any, targets: Ints, vectors: Mapping[str, Tensor], batch_size: int
) -> dict[str, Floats]:
    """The share of images whose derivative along each CAV is above 0, ``[V]``; NaN where one is not a number."""
    counts = {layer: torch.zeros(len(of_layer), dtype=torch.float64) for layer, of_layer in vectors.items()}
    for start in reported(len(targets), batch_size, "images under test"):
        part = slice(start, start + batch_size)
        pixels = pixels_of(tested[part], classifier.device)
        wanted = torch.tensor(targets[part], device=classifier.device)
        for layer, slopes in directional_derivatives(classifier, pixels, wanted, vectors).items():
            counts[layer] += torch.where(slopes.isnan(), torch.nan, (slopes > 0).double()).sum(0).cpu()
    return {layer: (count / len(targets)).numpy() for layer, count in counts.items()}


def _outputs(classifier: Classifier, pixels: Tensor) -> dict[str, Tensor]:
    """Return each concept layer's output for ``pixels``, then the ``LOGITS``; a layer of that name replaces them."""
    with _listening(classifier) as heard:
        logits: Tensor = classifier(pixels)
    for layer, outputs in heard.items():
        output = outputs[0] if len(outputs) == 1 else f"{len(outputs)} outputs"
        fits = isinstance(output, Tensor) and output.is_floating_point() and output.ndim > 1
        if not fits or len(output) != len(pixels):
            found = describe(output) if isinstance(output, Tensor) else output
            raise ValueError(
                f"concept_layers: {layer!r}: found {found}, expected one output of floats [{len(pixels)}, …]"
            )
    return {**{layer: outputs[0] for layer, outputs in heard.items()}, LOGITS: logits}


@contextmanager
def _listening(classifier: Classifier) -> Iterator[dict[str, list[Any]]]:
    """Within the block, every output of each concept layer; what comes after the layer is given a copy of it."""
    heard: dict[str, list[Any]] = {layer: [] for layer in classifier.concept_layers}

    def keep(name: str, layer: nn.Module, inputs: object, output: object) -> Tensor | None:
        heard[name].append(output)
        # A copy: an in-place ReLU after the layer would change what it gave.
        return output.clone() if isinstance(output, Tensor) else None

    hooks = [classifier.layer(name).register_forward_hook(partial(keep, name)) for name in heard]
    try:
        yield heard
    finally:
        for hook in hooks:
            hook.remove()

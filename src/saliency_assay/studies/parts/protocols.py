"""FunnyBirds' protocols: scores of maps by the importance that they give to the parts of an object.

Hesse, Schaub-Meyer and Roth (2023), "FunnyBirds: A Synthetic Vision Dataset for a Part-Based Analysis of Explainable AI
Methods", ICCV. The silent points follow the published program; docs/parts.md lists them.

Shapes: N images, P parts, O objects in the background, K classes, T thresholds. Regions are the parts, then the
objects; sets of parts are numbers (``classes``).
"""

from collections.abc import Callable

import torch
from numpy import ndarray as Array
from torch import Tensor
from torch.nn.functional import max_pool2d

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, mean_ranks, nan_unless
from saliency_assay.studies.parts.classes import contrasted_classes, intersection_rates
from saliency_assay.studies.parts.thresholds import THRESHOLDS

RELEVANT = 0.05
"""Relative decrease of the target's logit from which a removed part or object is relevant."""


def score_protocols(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[[Tensor, Tensor], Tensor],
    layers: Tensor,
    part_logits: Tensor,
    object_logits: Tensor,
    table: Array,
    dilation: int,
) -> Scored:
    """Score maps by all protocols; NaN for images whose class the model does not predict.

    Args:
        predict: not used; the predictions are in ``part_logits`` and ``object_logits``.
        images: images ``[N, C, H, W]``.
        targets: class of each image ``[N]``.
        maps: raw maps of ``targets``, ``[N, C or 1, H, W]``.
        generator: not used.
        explain: the method, for maps of other classes.
        layers: see ``interventions.evaluate_interventions``, as ``part_logits`` and ``object_logits``.
        part_logits: ``[N, 2^P, K]``.
        object_logits: ``[N, O, K]``.
        table: variants of the parts of each class, int64 ``[K, P]``.
        dilation: pixels by which regions are enlarged.

    Returns:
        The scores ``single_deletion`` and ``target_sensitivity``, and as curves ``[N, T]`` those of
        ``thresholds.OF_THRESHOLDS``.
    """
    parts, objects = table.shape[1], object_logits.shape[1]
    regions = parts + objects

    def importance_of(maps: Tensor) -> tuple[Tensor, Tensor]:
        pixels = reduce(maps.double(), "sum")
        return part_importance(pixels, layers, regions, dilation), pixels.sum((1, 2))

    def importance_for(classes: Tensor) -> Tensor:
        return importance_of(explain(images, classes.clamp(min=0)))[0][:, :parts]

    importance, total = importance_of(maps)
    correct = part_logits[:, -1].argmax(1) == targets
    is_important = importance[:, None] > torch.tensor(THRESHOLDS).to(total)[:, None] * total[:, None, None]
    important = sets_of(is_important[..., :parts])
    decreases = logit_decreases(part_logits, object_logits, targets)
    classes, shared = (torch.from_numpy(values).to(targets)[targets] for values in contrasted_classes(table))
    curves = {
        "csdc": torch.from_numpy(intersection_rates(table)).to(total)[targets[:, None], important],
        "preservation_check": preservation_check(part_logits, important),
        "deletion_check": deletion_check(part_logits, important),
        "distractibility": distractibility(
            is_important, is_irrelevant(decreases, part_logits[:, -1], targets)
        ),
    }
    scores = {
        "single_deletion": single_deletion(decreases[:, :parts], importance[:, :parts]),
        "target_sensitivity": target_sensitivity(
            part_logits, classes, shared, [importance_for(classes[:, column]) for column in (0, 1)]
        ),
    }
    defined = correct & total.isfinite()
    return Scored(
        {(name, ""): nan_unless(defined, values) for name, values in scores.items()},
        {name: nan_unless(defined, values) for name, values in curves.items()},
    )


def part_importance(pixels: Tensor, layers: Tensor, regions: int, dilation: int) -> Tensor:
    """Return the sum of a map ``[N, H, W]`` in each region, enlarged by ``dilation`` pixels, ``[N, R]``.

    ``layers`` ``[N, H, W]`` is 1 + r in region r.
    """
    inside = layers[:, None] == torch.arange(1, regions + 1, device=layers.device)[:, None, None]
    enlarged = max_pool2d(inside.float(), 2 * dilation + 1, stride=1, padding=dilation)
    return torch.einsum("nhw,nrhw->nr", pixels, enlarged.to(pixels))


def sets_of(contained: Tensor) -> Tensor:
    """Return the set of the parts for which ``contained``, bool ``[…, P]``, is True, int64 ``[…]``."""
    bits = 2 ** torch.arange(contained.shape[-1], device=contained.device)
    return (contained * bits).sum(-1)


def logit_decreases(part_logits: Tensor, object_logits: Tensor, targets: Tensor) -> Tensor:
    """Return by how much the target's logit decreases if each part or object is removed, float64 ``[N, P + O]``."""
    last = part_logits.shape[1] - 1
    without_part = last - 2 ** torch.arange(last.bit_length(), device=part_logits.device)
    removed = torch.cat([part_logits[:, without_part], object_logits], dim=1).double()
    images = torch.arange(len(targets), device=targets.device)
    return part_logits[images, -1, targets].double()[:, None] - removed[images, :, targets]


def is_irrelevant(decreases: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
    """Return True for parts and objects without which the target's logit decreases by less than 5 %, ``[N, R]``.

    ``logits`` ``[N, K]`` are those of the complete image.
    """
    original = logits.gather(1, targets[:, None]).double()
    return (decreases.abs() < RELEVANT * original.abs()) | (decreases < 0)


def preservation_check(part_logits: Tensor, important: Tensor) -> Tensor:
    """Return 1 if the prediction is the same with only the parts ``important`` ``[N, T]``, else 0."""
    return _is_predicted(part_logits, important).double()


def deletion_check(part_logits: Tensor, important: Tensor) -> Tensor:
    """Return 1 if the prediction changes without the parts ``important`` ``[N, T]``, else 0."""
    return (~_is_predicted(part_logits, part_logits.shape[1] - 1 - important)).double()


def _is_predicted(part_logits: Tensor, kept: Tensor) -> Tensor:
    """Return True if the prediction with the parts ``kept`` ``[N, T]`` is that for the complete image."""
    predictions = part_logits.argmax(2)
    return predictions.gather(1, kept) == predictions[:, -1:]


def distractibility(is_important: Tensor, irrelevant: Tensor) -> Tensor:
    """Return the share of the irrelevant regions ``[N, R]`` that are not important ``[N, T, R]``; NaN if none is."""
    hits = (is_important & irrelevant[:, None]).sum(2)
    return 1 - hits / irrelevant.sum(1, keepdim=True).double()


def single_deletion(decreases: Tensor, importance: Tensor) -> Tensor:
    """Return (1 + ρ) / 2, with Spearman's ρ of importance and decrease of the logit over parts, both ``[N, P]``.

    NaN if one of both is constant.
    """
    return 0.5 + 0.5 * correlation(mean_ranks(decreases.double()), mean_ranks(importance.double()))


def target_sensitivity(
    part_logits: Tensor, classes: Tensor, shared: Tensor, importance: list[Tensor]
) -> Tensor:
    """Return whether the parts shared with each of two classes are more important in the map of that class.

    Args:
        part_logits: ``[N, 2^P, K]``.
        classes: two classes ``[N, 2]``.
        shared: the sets of parts that the image's class shares with each of them, ``[N, 2]``.
        importance: importance of the parts in the maps of both classes, two ``[N, P]``.

    Returns:
        The mean of two comparisons, 0, 0.5 or 1, ``[N]``. NaN if there are no such classes, or if the logits of both do
        not decrease more without their own shared parts than without those of the other class.
    """
    images = torch.arange(len(classes), device=classes.device)
    # logits[n, a, b] of class b without the parts shared with class a
    without = part_logits[images[:, None], part_logits.shape[1] - 1 - shared]
    logits = without.gather(2, classes.clamp(min=0)[:, None].expand(-1, 2, -1))
    holds = (logits[:, 0, 0] < logits[:, 1, 0]) & (logits[:, 1, 1] < logits[:, 0, 1])
    in_shared = (shared[:, :, None] >> torch.arange(importance[0].shape[1], device=shared.device)) & 1
    # sums[n, a, b] of the importance for class b of the parts shared with class a
    sums = torch.stack([(in_shared * of_class[:, None]).sum(2) for of_class in importance], dim=2)
    both = torch.stack([sums[:, 0, 0] > sums[:, 0, 1], sums[:, 1, 0] < sums[:, 1, 1]], dim=1)
    return nan_unless(holds & (classes >= 0).all(1), both.double().mean(1))


def background_independence(part_logits: Tensor, object_logits: Tensor, targets: Tensor) -> Tensor:
    """Return the share of an image's objects without which the target's logit decreases by less than 5 %, ``[N]``."""
    decreases = logit_decreases(part_logits, object_logits, targets)[:, -object_logits.shape[1] :]
    return is_irrelevant(decreases, part_logits[:, -1], targets).double().mean(1)

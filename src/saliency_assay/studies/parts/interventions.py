"""Predictions of a model for images without some of their parts, or without an object in the background."""

import numpy as np
import torch
from torch import Tensor

from saliency_assay.data.synthetic.birds import PARTS, Scene, scene_of
from saliency_assay.methods.engine import pixels_of
from saliency_assay.metrics.perturbation import Predict


def evaluate_interventions(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    scene_seed: Tensor,
    variants: Tensor,
    objects: int,
) -> dict[str, Tensor]:
    """Render images again without parts or objects, and return the logits of the model.

    Args:
        predict: model, ``[N, 3, S, S]`` → logits ``[N, K]``.
        images: complete images in [0, 1], ``[N, 3, S, S]``.
        targets: not used.
        generator: not used.
        scene_seed: seed of each scene, int64 ``[N]``.
        variants: variant of each part, int64 ``[N, P]``.
        objects: number of objects in the background.

    Returns:
        ``layers``: visible layer of each pixel, uint8 ``[N, S, S]``; ``part_logits``: float32 ``[N, 2^P, K]`` for the
        image with each set of parts (``classes``); ``object_logits``: float32 ``[N, objects, K]`` for the image without
        each object.

    Raises:
        ValueError: an image differs from its rendering.
    """
    scenes = [
        scene_of(of_image, seed, size=images.shape[-1], objects=objects)
        for of_image, seed in zip(variants.cpu().numpy(), scene_seed.tolist(), strict=True)
    ]

    def render(removed: tuple[int, ...]) -> Tensor:
        return pixels_of(np.stack([each.image(removed) for each in scenes]), images.device)

    if not torch.equal(render(()), images):
        raise ValueError(
            "images: found other pixels than those rendered from their scenes, expected the same"
        )
    sets = range(2 ** len(PARTS))
    with torch.no_grad():
        part_logits = [predict(render(_layers_without(number))) for number in sets]
        object_logits = [predict(render((1 + len(PARTS) + number,))) for number in range(objects)]
    return {
        "layers": torch.from_numpy(_layers(scenes)),
        "part_logits": torch.stack(part_logits, dim=1),
        "object_logits": torch.stack(object_logits, dim=1),
    }


def _layers(scenes: list[Scene]) -> np.ndarray:
    return np.stack([scene.layers() for scene in scenes])


def _layers_without(kept: int) -> tuple[int, ...]:
    """Return the layers of the parts that are not in the set ``kept``."""
    return tuple(1 + part for part in range(len(PARTS)) if not kept >> part & 1)

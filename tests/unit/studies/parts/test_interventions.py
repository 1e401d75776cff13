"""Predictions for images without parts and objects."""

import numpy as np
import pytest
import torch
from torch import Tensor

from saliency_assay.data.splits import TEST
from saliency_assay.data.synthetic.birds import PARTS, birds, scene_of
from saliency_assay.studies.parts.interventions import evaluate_interventions

OBJECTS = 2


@pytest.fixture(scope="module")
def images() -> dict[str, Tensor]:
    _, blocks = birds(
        size=32, class_count=3, images_per_class=4, object_count=OBJECTS, generator=np.random.default_rng(1)
    )
    block = next(blocks)
    rows = block["split"] == TEST
    return {name: torch.from_numpy(block[name][rows]) for name in ("image", "scene_seed", "variants")}


def evaluate(images: dict[str, Tensor], pixels: Tensor) -> dict[str, Tensor]:
    """Return the responses of a model whose logits are the means of the channels."""
    return evaluate_interventions(
        lambda batch: batch.mean((2, 3)),
        pixels,
        torch.zeros(len(pixels), dtype=torch.int64),
        generator=torch.Generator(),
        scene_seed=images["scene_seed"],
        variants=images["variants"],
        objects=OBJECTS,
    )


def test_each_set_of_parts_is_rendered(images: dict[str, Tensor]) -> None:
    responses = evaluate(images, images["image"].float() / 255)
    assert responses["part_logits"].shape == (3, 32, 3)
    assert responses["object_logits"].shape == (3, OBJECTS, 3)
    for number, (seed, variants) in enumerate(
        zip(images["scene_seed"].tolist(), images["variants"].numpy(), strict=True)
    ):
        scene = scene_of(variants, seed, size=32, objects=OBJECTS)
        assert (responses["layers"][number].numpy() == scene.layers()).all()
        for kept, removed in ((0, (1, 2, 3, 4, 5)), (31, ()), (0b00101, (2, 4, 5))):
            means = (scene.image(removed).astype(np.float32) / 255).mean((1, 2))
            torch.testing.assert_close(responses["part_logits"][number, kept], torch.from_numpy(means))
        for thing in range(OBJECTS):
            means = (scene.image((1 + len(PARTS) + thing,)).astype(np.float32) / 255).mean((1, 2))
            torch.testing.assert_close(responses["object_logits"][number, thing], torch.from_numpy(means))


def test_images_that_their_scenes_do_not_give_are_refused(images: dict[str, Tensor]) -> None:
    with pytest.raises(ValueError, match="found other pixels than those rendered"):
        evaluate(images, images["image"].float() / 255 * 0.5)

"""A folder of images with masks, from files to localization scores, file names and the gallery."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import Checkout
from PIL import Image

from saliency_assay.storage.text import decode
from saliency_assay.storage.zarr_store import open_store

SIZE = 12
STUDY = {
    "device": "cpu",
    "data": {"shapes": {"kind": "folder", "path": "shapes/images", "masks": "shapes/masks", "size": SIZE}},
    "models": {
        "m": {
            "architecture": "resnet8",
            "width": 4,
            "data": "shapes",
            "trained_on": "class",
            "batch_size": 4,
            "training": {"epochs": 1, "batch_size": 4},
        }
    },
    "methods": {"edge": {}, "gradient": {}},
    "metrics": {"pointing_game": {}, "mask_attribution": {}},
    "studies": {"s": {"kind": "fidelity", "model": "m"}},
}


def write_images(root: Path) -> None:
    """Write images of a bright square on the left or on the right, and masks of the squares."""
    for split, count in (("train", 4), ("test", 2)):
        for label, left in (("left", 2), ("right", 14)):
            for number in range(count):
                pixels = np.zeros((24, 24, 3), dtype=np.uint8)
                pixels[8 + 2 * number : 16 + 2 * number, left : left + 8] = 255
                name = f"{split}/{label}/no {number}.png"
                for folder, values in (("images", pixels), ("masks", pixels[..., 0])):
                    (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(values).save(root / folder / name)


@pytest.mark.slow
def test_images_with_masks_are_scored_by_localization_metrics(fresh: Checkout) -> None:
    write_images(fresh.root / "shapes")
    (fresh.root / fresh.configuration).write_text(yaml.safe_dump(STUDY))
    results = fresh.root / "results"
    gallery = "results/figures/s/gallery.html"
    fresh.make("results/tables/s/scores.parquet", gallery)
    with open_store(results / "data/shapes.zarr.zip", kind="data") as data:
        files, images, masks = decode(data["file"][:]), data["image"][:], data["mask"][:]
    np.testing.assert_array_equal(masks, images[:, 0] > 127)
    table = pd.read_parquet(results / "tables/s/scores.parquet")
    assert set(table["metric"]) == {"pointing_game", "relevance_mass_accuracy", "relevance_rank_accuracy"}
    assert [files[image] for image in table["image"]] == table["file"].tolist()
    names = {f"test/{label}/no {number}.png" for label in ("left", "right") for number in range(2)}
    assert set(table["file"]) == names
    with open_store(results / "maps/m/seed0/shapes/edge.zarr.zip", kind="maps") as maps:
        saliency, rows = maps["map"][:].sum(axis=1).clip(min=0), maps["image"][:]
    expected = (saliency * masks[rows]).sum(axis=(1, 2)) / saliency.sum(axis=(1, 2))
    scores = table[(table["metric"] == "relevance_mass_accuracy") & (table["method"] == "edge")]
    np.testing.assert_allclose(scores.set_index("image").loc[rows, "score"], expected, rtol=1e-5)
    page = (fresh.root / gallery).read_text()
    details = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    assert {image["id"] for image in details["images"]} == names
    assert fresh.planned("results/tables/s/scores.parquet") == set()


def test_a_test_image_without_a_mask_is_one_line(fresh: Checkout) -> None:
    write_images(fresh.root / "shapes")
    (fresh.root / "shapes/masks/test/right/no 1.png").unlink()
    (fresh.root / fresh.configuration).write_text(yaml.safe_dump(STUDY))
    status, output = fresh.snakemake("results/data/shapes.zarr.zip")
    assert status == 1
    line = "shapes/masks: found no mask of 1 of 4 test images, first test/right/no 1.png; expected test/right/no 1.png"
    assert line in output

"""Readers held against the publishers' own readers on real files."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO

from saliency_assay.data.bam.classes import OBJECTS
from saliency_assay.data.bam.coco import Source, cut_out, find_instances
from saliency_assay.data.readers.mnist import mnist


# pycocotools does not know NumPy 2's copy keyword.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("half", ["train2017", "val2017"])
def test_cocos_masks_are_those_of_its_api(real_data: Path, half: str) -> None:
    """COCO's API decodes each annotation; a cut-out's alpha is that mask, cropped, and its pixels the photograph's."""
    file = real_data / f"coco/annotations/instances_{half}.json"
    assert {"info", "licenses", "images", "annotations", "categories"} <= set(json.loads(file.read_text()))
    instances, _ = find_instances([Source(file, real_data / "coco" / half)], OBJECTS, min_area=100, limit=12)
    assert len(instances) > 65
    api = COCO(str(file))
    for instance in instances:
        (annotation,) = api.loadAnns(instance.annotation)
        mask = api.annToMask(annotation).astype(bool)
        assert instance.area == mask.sum()
        assert api.loadImgs(annotation["image_id"])[0]["file_name"] == instance.coco_image.name
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        cropped = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        np.testing.assert_array_equal(cut_out(instance)[..., 3] > 0, cropped)


def test_mnist_is_read_as_torchvision_reads_it(real_data: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("torchvision.datasets")
    (tmp_path / "MNIST/raw").mkdir(parents=True)
    for file in (real_data / "mnist").glob("*.gz"):
        (tmp_path / "MNIST/raw" / re.sub(r"\.gz$", "", file.name)).write_bytes(
            gzip.decompress(file.read_bytes())
        )
    _, blocks = mnist(
        path=str(real_data / "mnist"), size=28, images_per_class=0, generator=np.random.default_rng(0)
    )
    parts = list(blocks)
    images = np.concatenate([part["image"][:, 0] for part in parts])
    labels = np.concatenate([part["label_class"] for part in parts])
    theirs = [datasets.MNIST(tmp_path, train=half) for half in (True, False)]
    np.testing.assert_array_equal(images, np.concatenate([half.data.numpy() for half in theirs]))
    np.testing.assert_array_equal(labels, np.concatenate([half.targets.numpy() for half in theirs]))

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saliency_assay.data.readers.digits import CLASSES, digits
from saliency_assay.data.splits import TEST


def whole(size: int, seed: int = 0) -> dict[str, np.ndarray]:
    classes, parts = digits(size=size, test_share=0.1, generator=np.random.default_rng(seed), block=500)
    assert classes == {"class": CLASSES}
    blocks = list(parts)
    assert [len(block["image"]) for block in blocks] == [500, 500, 500, 297]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def test_eight_pixels_are_the_source() -> None:
    arrays, source = whole(8), load_digits()
    assert arrays["image"].dtype == arrays["split"].dtype == np.uint8
    assert (arrays["image"][:, 0] == np.round(source.images * 255 / 16)).all()
    assert arrays["image"].max() == 255
    assert (arrays["label_class"] == source.target).all()
    assert arrays["label_class"].dtype == np.int64
    assert [int(name) for name in CLASSES] == source.target_names.tolist()


@pytest.mark.parametrize("size", [16, 28])
def test_enlarged(size: int) -> None:
    arrays, source = whole(size)["image"], whole(8)["image"]
    assert arrays.shape == (1797, 1, size, size)
    assert np.abs(arrays.mean(axis=(1, 2, 3)) - source.mean(axis=(1, 2, 3))).max() < 4


def test_the_split_follows_the_seed() -> None:
    one, same, other = whole(8, 1), whole(8, 1), whole(8, 2)
    assert (one["split"] == TEST).sum() == 180
    assert (one["split"] == same["split"]).all()
    assert (one["split"] != other["split"]).any()

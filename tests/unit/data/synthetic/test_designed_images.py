"""Images for designed networks."""

import numpy as np
import pytest

from saliency_assay.data.synthetic.designed import CLASSES, designed, evidences, valid_layouts


def test_squares_of_pure_colors_on_gray_noise() -> None:
    classes, blocks = designed(
        size=24, images=50, test_share=0.2, generator=np.random.default_rng(0), block=20
    )
    assert classes == CLASSES
    parts = list(blocks)
    assert [len(part["image"]) for part in parts] == [20, 20, 10]
    images, masks = (np.concatenate([part[name] for part in parts]) for name in ("image", "mask"))
    assert (images.shape, images.dtype, masks.dtype) == ((50, 3, 24, 24), np.uint8, np.bool_)
    pixels = images.transpose(0, 2, 3, 1)
    assert {tuple(pixel) for pixel in np.unique(pixels[masks], axis=0).tolist()} == {
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
    }
    gray = pixels[~masks]
    assert (gray == gray[:, :1]).all()
    assert 64 <= gray.min() < gray.max() < 224
    assert np.concatenate([part["split"] for part in parts]).sum() == 10


def test_one_seed_one_data_set() -> None:
    first, again, other = (
        next(designed(images=9, generator=np.random.default_rng(seed))[1])["image"] for seed in (4, 4, 5)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_layouts_have_evidence_for_both_classes_of_each_network() -> None:
    layouts = valid_layouts()
    for evidence in evidences(layouts).values():
        assert (evidence != 0).all()
        assert 0.3 < (evidence > 0).mean() < 0.7
    with pytest.raises(ValueError, match="size: found 33, expected an even number"):
        designed(size=33, generator=np.random.default_rng(0))

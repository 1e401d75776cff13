"""How a study differs from the setting of Yang & Kim (2019)."""

from typing import Any

import pytest
from pipelines import TINY, params

from saliency_assay.config.data import DataEntry
from saliency_assay.studies.bam.paper_setting import compare_setting


def changed(data: DataEntry, **values: Any) -> DataEntry:
    return data.model_copy(update=values)


def entry(**parameters: int) -> DataEntry:
    """Data of the paper's size, with other parameters."""
    data = params(TINY).descriptions.config.data["bam"]
    values = {"size": 128, "images_per_pair": 1000, "leak_free": False, **parameters}
    return changed(data, kind="bam", parameters={**data.parameters, **values})


def test_the_setting_of_the_paper_does_not_differ() -> None:
    assert compare_setting(entry(size=224), ["ResNet-50"] * 3) == {"phrase": "", "differences": []}


@pytest.mark.parametrize(
    ("data", "difference"),
    [
        (entry(size=64), "64 pixels per side, not 128"),
        (entry(images_per_pair=100), "100 images per pair of classes, not 1,000"),
        (changed(entry(), objects=("dog", "kite")), "2 object classes, not 10"),
        (changed(entry(), scenes=("track",) * 4), "4 scene classes, not 10"),
        (changed(entry(), kind="synthetic"), "synthetic images"),
    ],
)
def test_a_small_setting_is_called_small(data: DataEntry, difference: str) -> None:
    expected = {"phrase": "in this small setting", "differences": [difference]}
    assert compare_setting(data, ["ResNet-50"]) == expected


def test_other_models_and_splits_are_another_setting() -> None:
    differences = [
        "no cut-out or scene in both training and test images",
        "ResNet-8, not ResNet-50",
        "training from random weights",
    ]
    data = entry(leak_free=True)
    setting = compare_setting(data, ["ResNet-8", "ResNet-50", "ResNet-8"], starts_from_weights=False)
    assert setting == {"phrase": "in this setting", "differences": differences}


def test_claims_are_checked_in_the_setting_of_the_configuration() -> None:
    setting = params(TINY).of_kind("bam").check_claims({"study": "bam"})["setting"]
    assert setting["phrase"] == "in this small setting"
    assert len(setting["differences"]) == 5

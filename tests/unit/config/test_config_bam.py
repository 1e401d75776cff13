"""Data of kind bam in the configuration: its folders, its names, and the line that each mistake gets."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from configurations import agrees, base, cases, changed, fault, reading, replaced, with_bam

from saliency_assay.data.bam.classes import OBJECTS, SCENES

# Each line is a change to data of kind bam in ROOT and what its message says.
WRONG_BAM = """
coco: ROOT/no => data.bam.coco: found 'ROOT/no' … a folder that exists
coco: ROOT/miniplaces => data.bam.coco: found 'ROOT/miniplaces' … annotations/instances_NAME.json in it
coco: [{annotations: ROOT/no.json, images: ROOT}]
    => data.bam.coco.0.annotations: found 'ROOT/no.json' … a file that exists
coco: [{annotations: ROOT, images: ROOT}] => data.bam.coco.0.annotations: found 'ROOT' … a file that exists
coco: [{annotations: ROOT/coco/annotations/instances_val2017.json, images: ROOT/no}]
    => data.bam.coco.0.images: found 'ROOT/no' … a folder that exists
miniplaces: ROOT/no => data.bam.miniplaces: found 'ROOT/no' … a folder that exists
coco: [{annotations: a.json, images: a}, {images: a}] => data.bam.coco.1: key 'annotations' is missing
objects: [dog] => data.bam.objects: found ['dog'] … 2 or more entries
scenes: [attic, yes] => data.bam.scenes.1: found true … a string
"""


def test_cocos_folder_gives_pairs_and_names_their_defaults(tmp_path: Path) -> None:
    entry = reading(with_bam(tmp_path)).data["bam"]
    coco = tmp_path / "coco"
    assert entry.coco_sources == (
        (f"{coco}/annotations/instances_train2017.json", f"{coco}/train2017"),
        (f"{coco}/annotations/instances_val2017.json", f"{coco}/val2017"),
    )
    assert entry.miniplaces == f"{tmp_path}/miniplaces"
    assert entry.objects == OBJECTS
    assert entry.scenes == SCENES


def test_pairs_and_names_can_be_configured(tmp_path: Path) -> None:
    pair = {
        "annotations": f"{tmp_path}/coco/annotations/instances_val2017.json",
        "images": f"{tmp_path}/coco/train2017",
    }
    raw = with_bam(tmp_path, coco=[pair], objects=["dog", "cat"], scenes=["attic", "zoo"], size=48)
    entry = reading(raw).data["bam"]
    assert entry.coco_sources == ((pair["annotations"], pair["images"]),)
    assert (entry.objects, entry.scenes, entry.parameters["size"]) == (("dog", "cat"), ("attic", "zoo"), 48)


@pytest.mark.parametrize(("change", "expected"), cases(WRONG_BAM))
def test_what_is_wrong_with_bam(tmp_path: Path, change: str, expected: str) -> None:
    key, _, value = change.replace("ROOT", str(tmp_path)).partition(": ")
    raw = with_bam(tmp_path, **{key: yaml.safe_load(value)})
    assert agrees(fault(raw), expected.replace("ROOT", str(tmp_path)))


def test_annotations_without_their_images_are_named(tmp_path: Path) -> None:
    raw = with_bam(tmp_path)
    (tmp_path / "coco/val2017").rmdir()
    assert agrees(
        fault(raw), f"data.bam.coco.1.images: found '{tmp_path}/coco/val2017' … a folder that exists"
    )


def test_bam_needs_its_folders() -> None:
    message = fault(changed("data.bam", {"kind": "bam"}))
    assert agrees(message, "data.bam: key 'coco' is missing; required: coco, kind, miniplaces")
    message = fault(changed("data.bam", {"kind": "bam", "coco": "a", "miniplace": "b"}))
    assert agrees(message, "data.bam: key 'miniplaces' is missing … 'miniplace'")


# --- studies of what matters to models --------------------------------------------------------------------------

# Each line is a change to the configuration of ``whole`` and what its message says.
WRONG_STUDY = """
studies.bam.series: [f_k05] => studies.bam.series: found ['f_k05'] … 2 or more entries
studies.bam.series: [f_k03, f_k10] => studies.bam.series.0: unknown model 'f_k03' … 'f_k10'
studies.bam.series: [f_s, f_k10]
    => studies.bam.series.0: f_s is trained on bam_os with the scene label … one of bam_os_k01
studies.bam.series: [f_k05, f_k01, f_k10]
    => studies.bam.series.1: found f_k01 on bam_os_k01 after bam_os_k05 … k to increase
studies.bam.series: [f_k01, f_k05]
    => studies.bam.series.1: found f_k05 on bam_os_k05 … k = 1, on bam_os_k10
data.bam.commonality: [0.1, 1.5] => data.bam.commonality: found 1.5 … more than 0 and at most 1
data.bam.commonality: [0, 1] => data.bam.commonality: found 0 … more than 0 and at most 1
data.bam.commonality: [0.25, 1]
    => data.bam.commonality: found 0.25 … 2.5 of 10 scene classes … a multiple of 0.1
data.bam.commonality: [0.5, 1] => models.f_k01.data: unknown set 'bam_os_k01' … 'bam_os_k10'
data.bam.common_object: horse => data.bam.common_object: unknown object 'horse' … valid: backpack
models.f_k01.trained_on: object => models.f_k01.trained_on: unknown label 'object' … valid: scene
studies.bam.independence: {model: d}
    => studies.bam.independence.model: found d, which is trained on digits … one of bam_os, bam_0s
studies.bam.independence: {images: 10} => studies.bam.independence: key 'model' is missing
studies.bam.methods: [gradient, tcav]
    => studies.bam.methods: found 'tcav' … the name of concepts
studies.bam.methods: [gradient, shap]
    => studies.bam.methods: shap … background … independence
data.bam.objects: [dog, bird] => data.bam: unknown key 'objects' … 'common_object'
studies.bam.robustness: [color] => studies.bam.robustness.0: found 'color' … valid: scale
"""


def whole() -> Any:
    """A configuration with everything that a BAM study may have."""
    raw = base()
    raw["data"]["bam"]["commonality"] = [0.1, 0.5, 1.0]
    trained = {"f_0s": "bam_0s", "f_k01": "bam_os_k01", "f_k05": "bam_os_k05", "f_k10": "bam_os_k10"}
    for name, data in trained.items():
        raw["models"][name] = {"architecture": "resnet", "data": data, "trained_on": "scene"}
    raw["methods"] |= {"tcav": {"method": "gradient"}, "shap": {}}
    raw["studies"]["bam"] |= {
        "methods": ["gradient"],
        "robustness": ["location"],
        "series": ["f_k01", "f_k05", "f_k10"],
        "independence": {"model": "f_0s", "images": 7},
        "concepts": True,
    }
    return raw


def test_all_that_a_study_compares() -> None:
    configuration = reading(whole())
    study = configuration.studies["bam"]
    assert study.options == ("series", "concepts", "independence")
    assert study.series == ("f_k01", "f_k05", "f_k10")
    assert study.evaluated["f_o"] == ("bam_os", "bam_0s", "bam_og", "bam_os_location")
    assert study.evaluated["f_k05"] == ("bam_0s_k",)
    assert study.evaluated["f_0s"] == ("bam_0s",)
    assert study.pair_sets == {"bam_delta_seed0": 7}
    assert study.models == ("f_o", "f_s")
    assert study.all_models == ("f_o", "f_s", "f_k01", "f_k05", "f_k10", "f_0s")
    bam = configuration.data["bam"]
    assert [name for name in bam.sets if bam.is_common(name)] == [
        "bam_os_k01", "bam_os_k05", "bam_os_k10", "bam_0s_k",
    ]  # fmt: skip
    assert bam.labels_of("bam_os_k05") == ("scene",)
    assert bam.labels_of("bam_os") == ("object", "scene")
    assert not configuration.data["digits"].is_common("digits")


def test_sets_of_one_commonality_are_never_split() -> None:
    """Of them one scene class is explained, which may be less than a block."""
    raw = whole()
    raw["data"]["bam"]["shards"] = 3
    data = reading(raw).data
    bam = data["bam"]
    assert {name: bam.shards_of(name) for name in bam.sets if "_k" in name} == {
        "bam_os_k01": 1, "bam_os_k05": 1, "bam_os_k10": 1, "bam_0s_k": 1,
    }  # fmt: skip
    assert {bam.shards_of(name) for name in bam.sets if "_k" not in name} == {3}
    assert data["digits"].shards_of("digits") == 1


@pytest.mark.parametrize(("change", "expected"), cases(WRONG_STUDY))
def test_what_is_wrong_with_a_study(change: str, expected: str) -> None:
    place, _, value = change.partition(": ")
    assert agrees(fault(replaced(whole(), place, yaml.safe_load(value))), expected)


def test_fewer_scenes_than_the_series_needs(tmp_path: Path) -> None:
    raw = with_bam(tmp_path, scenes=["attic", "zoo"], commonality=[0.1, 1])
    assert agrees(fault(raw), "data.bam.commonality: found 0.1 … 0.2 of 2 scene classes … a multiple of 0.5")


def test_an_object_is_looked_for_where_it_is_needed() -> None:
    raw = base()
    raw["data"]["bam"]["common_object"] = "dgo"
    reading(raw)
    raw["studies"]["bam"]["concepts"] = True
    assert agrees(fault(raw), "data.bam.common_object: unknown object 'dgo' … 'dog'")


def test_commonality_is_bams() -> None:
    assert "data.digits: unknown key 'commonality'" in fault(changed("data.digits.commonality", [1]))

"""Data of kind bam in the configuration: its folders, its names, and the line that each mistake gets."""

from pathlib import Path

import pytest
import yaml
from configurations import cases, changed, fault, reading, with_bam

from saliency_assay.data.classes import OBJECTS, SCENES

# Each mistake is a change to data of kind bam in ROOT, and below it the message.
WRONG_BAM = """
coco: ROOT/no
    data.bam.coco: found 'ROOT/no', expected a folder that exists

coco: ROOT/miniplaces
    data.bam.coco: found 'ROOT/miniplaces', expected annotations/instances_NAME.json in it

coco: [{annotations: ROOT/no.json, images: ROOT}]
    data.bam.coco.0.annotations: found 'ROOT/no.json', expected a file that exists

coco: [{annotations: ROOT, images: ROOT}]
    data.bam.coco.0.annotations: found 'ROOT', expected a file that exists

coco: [{annotations: ROOT/coco/annotations/instances_val2017.json, images: ROOT/no}]
    data.bam.coco.0.images: found 'ROOT/no', expected a folder that exists

miniplaces: ROOT/no
    data.bam.miniplaces: found 'ROOT/no', expected a folder that exists

coco: 5
    data.bam.coco: found 5, expected a string or a list

coco: null
    data.bam.coco: found null, expected a string or a list

coco: ''
    data.bam.coco: found '', expected 1 or more characters

coco: []
    data.bam.coco: found [], expected 1 or more entries

coco: [a.json]
    data.bam.coco.0: found 'a.json', expected a mapping

coco: [{annotations: a.json, images: a}, {images: a}]
    data.bam.coco.1: key 'annotations' is missing; required: annotations, images

coco: [{annotations: a.json, images: a, image: a}]
    data.bam.coco.0: unknown key 'image'; did you mean 'images'? valid: annotations, images

coco: [{annotations: a.json, images: 3}]
    data.bam.coco.0.images: found 3, expected a string

miniplaces: ''
    data.bam.miniplaces: found '', expected 1 or more characters

miniplaces: [a]
    data.bam.miniplaces: found ['a'], expected a string

objects: dog
    data.bam.objects: found 'dog', expected a list

objects: [dog]
    data.bam.objects: found ['dog'], expected 2 or more entries

objects: [dog, dog]
    data.bam.objects: found ['dog', 'dog'], expected no entry twice

scenes: [attic, yes]
    data.bam.scenes.1: found true, expected a string

objetcs: [dog, cat]
    data.bam: unknown key 'objetcs'; did you mean 'objects'? valid: coco, explain, explain_order,
    kind, largest, miniplaces, objects, resident_limit, scenes, size, smallest

size: [64]
    data.bam.size: found [64], expected an integer
"""


def test_cocos_folder_gives_pairs_and_names_their_defaults(tmp_path: Path) -> None:
    entry = reading(with_bam(tmp_path)).data["bam"]
    coco = tmp_path / "coco"
    assert entry.coco == (
        (f"{coco}/annotations/instances_train2017.json", f"{coco}/train2017"),
        (f"{coco}/annotations/instances_val2017.json", f"{coco}/val2017"),
    )
    assert entry.miniplaces == f"{tmp_path}/miniplaces"
    assert entry.objects == OBJECTS
    assert entry.scenes == SCENES


def test_pairs_and_names_can_be_given(tmp_path: Path) -> None:
    pair = {
        "annotations": f"{tmp_path}/coco/annotations/instances_val2017.json",
        "images": f"{tmp_path}/coco/train2017",
    }
    raw = with_bam(tmp_path, coco=[pair], objects=["dog", "cat"], scenes=["attic", "zoo"], size=48)
    entry = reading(raw).data["bam"]
    assert entry.coco == ((pair["annotations"], pair["images"]),)
    assert (entry.objects, entry.scenes, entry.parameters["size"]) == (("dog", "cat"), ("attic", "zoo"), 48)


@pytest.mark.parametrize(("change", "message"), cases(WRONG_BAM))
def test_what_is_wrong_with_bam(tmp_path: Path, change: str, message: str) -> None:
    key, _, value = change.replace("ROOT", str(tmp_path)).partition(": ")
    raw = with_bam(tmp_path, **{key: yaml.safe_load(value)})
    assert fault(raw) == message.replace("ROOT", str(tmp_path))


def test_annotations_without_their_images_are_named(tmp_path: Path) -> None:
    raw = with_bam(tmp_path)
    (tmp_path / "coco/val2017").rmdir()
    assert fault(raw) == (
        f"data.bam.coco.1.images: found '{tmp_path}/coco/val2017', expected a folder that exists"
    )


def test_bam_needs_its_folders() -> None:
    needed = "required: coco, miniplaces"
    assert fault(changed("data.bam", {"kind": "bam"})) == f"data.bam: key 'coco' is missing; {needed}"
    assert fault(changed("data.bam", {"kind": "bam", "coco": "a", "miniplace": "b"})) == (
        f"data.bam: key 'miniplaces' is missing; did you mean it by 'miniplace'? {needed}"
    )

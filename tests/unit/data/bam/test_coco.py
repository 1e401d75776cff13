import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as rle

from saliency_assay.data.bam.coco import Source, annotated_images, cut_out, find_instances

HEIGHT, WIDTH = 60, 80
CATEGORIES = [{"id": 7, "name": "dog"}, {"id": 9, "name": "stop sign"}]


def box(left: int, top: int, right: int, bottom: int) -> list[int]:
    return [left, top, right, top, right, bottom, left, bottom]


def annotation(identity: int, image: int, polygons: Any, category: int = 7, **more: Any) -> dict[str, Any]:
    entry = {
        "id": identity,
        "image_id": image,
        "category_id": category,
        "iscrowd": 0,
        "segmentation": polygons,
    }
    return {**entry, **more}


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def write(root: Path, entries: list[dict[str, Any]], **changes: Any) -> Source:
    """A COCO folder of three random photographs, with any section replaced."""
    (root / "photos").mkdir(parents=True, exist_ok=True)
    for number in (1, 2, 3):
        Image.fromarray(pixels(number)).save(root / "photos" / f"{number}.png")
    images = [{"id": n, "file_name": f"{n}.png", "height": HEIGHT, "width": WIDTH} for n in (1, 2, 3)]
    content = {"images": images, "annotations": entries, "categories": CATEGORIES, **changes}
    (root / "instances.json").write_text(json.dumps(content))
    return Source(root / "instances.json", root / "photos")


def find(
    *sources: Source, categories: tuple[str, ...] = ("dog",), min_area: int = 10, limit: int = 99
) -> Any:
    return find_instances(sources, categories, min_area=min_area, limit=limit)


def test_the_largest_instance_of_each_photograph(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        [
            annotation(1, 2, [box(0, 0, 10, 10)]),
            annotation(2, 2, [box(20, 10, 50, 40)]),
            annotation(3, 2, [box(0, 0, 20, 20)]),
            annotation(4, 1, [box(5, 5, 15, 10)]),
            annotation(5, 1, {"size": [HEIGHT, WIDTH], "counts": [0, HEIGHT * WIDTH]}, iscrowd=1),
            annotation(6, 3, [box(0, 0, 30, 30)], category=9),
            annotation(7, 3, [box(0, 0, 2, 2)]),
        ],
    )
    instances, skipped = find(source)
    assert [(i.annotation, i.coco_image.name, i.area) for i in instances] == [
        (4, "1.png", 50),
        (2, "2.png", 900),
    ]
    assert skipped == {"dog": {"not the largest in its image": 2, "crowd": 1, "smaller than 10 px²": 1}}


def test_cut_out_holds_the_photographs_pixels(tmp_path: Path) -> None:
    source = write(tmp_path, [annotation(1, 1, [box(20, 10, 30, 40), box(30, 30, 50, 40)])])
    (instance,), skipped = find(source)
    rgba = cut_out(instance)
    expected = np.zeros((HEIGHT, WIDTH), bool)
    expected[10:40, 20:30] = expected[30:40, 30:50] = True
    assert rgba.dtype == np.uint8
    assert (rgba[..., 3] == expected[10:40, 20:50] * 255).all()
    assert (rgba[..., :3] == pixels(1)[10:40, 20:50]).all()
    assert skipped == {"dog": {}}


@pytest.mark.parametrize("compressed", [False, True])
def test_run_lengths_make_the_mask(tmp_path: Path, compressed: bool) -> None:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[10:40, 20:50] = 1
    mask[20:30, 25:30] = mask[12, 21::2] = 0  # so that some lengths shrink from run to run
    if compressed:
        counts: Any = rle.encode(np.asfortranarray(mask))["counts"].decode()
    else:
        edges = np.flatnonzero(np.diff(mask.ravel(order="F"), prepend=0, append=0))
        counts = np.diff([0, *edges.tolist(), mask.size]).tolist()
    source = write(tmp_path, [annotation(1, 1, {"size": [HEIGHT, WIDTH], "counts": counts})])
    (instance,), _ = find(source)
    assert instance.area == mask.sum()
    assert (cut_out(instance) == np.dstack([pixels(1), mask * np.uint8(255)])[10:40, 20:50]).all()


@pytest.mark.parametrize(
    "polygons",
    [
        [],
        [[0, 0, 30, 30]],  # pycocotools would read a box of 30 × 30
        [[0, 0, 30, 0, 30, 30, 5]],
        [[0, 0, 20, 0, 40, 0]],
        [box(100, 70, 120, 90)],
    ],
)
def test_degenerate_polygons_are_skipped_and_counted(tmp_path: Path, polygons: list[list[int]]) -> None:
    source = write(tmp_path, [annotation(1, 1, polygons), annotation(2, 1, [box(0, 0, 5, 5)])])
    instances, skipped = find(source)
    assert [i.annotation for i in instances] == [2]
    assert skipped == {"dog": {"degenerate polygon": 1}}


def test_a_degenerate_part_is_dropped_and_counted(tmp_path: Path) -> None:
    source = write(tmp_path, [annotation(1, 1, [[1, 2, 3, 4], box(0, 0, 5, 5)])])
    (instance,), skipped = find(source)
    assert instance.area == 25
    assert skipped == {"dog": {"degenerate part of a polygon": 1}}


def test_sources_are_pooled_in_order_and_limited(tmp_path: Path) -> None:
    first = write(tmp_path / "a", [annotation(1, 3, [box(0, 0, 9, 9)]), annotation(2, 1, [box(0, 0, 8, 8)])])
    second = write(
        tmp_path / "b", [annotation(3, 2, [box(0, 0, 9, 9)]), annotation(4, 1, [box(0, 0, 9, 9)], category=9)]
    )
    instances, skipped = find(first, second, categories=("stop sign", "dog"), limit=2)
    assert [(i.category, i.annotation) for i in instances] == [("stop sign", 4), ("dog", 2), ("dog", 1)]
    assert instances[1].coco_image == tmp_path / "a" / "photos" / "1.png"
    assert skipped == {"stop sign": {}, "dog": {"beyond the limit": 1}}


def test_a_photograph_in_two_folders_is_one(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a",
        [
            annotation(1, 1, [box(0, 0, 9, 9)]),
            annotation(2, 2, [box(0, 0, 9, 9)]),
            annotation(3, 1, [box(20, 0, 29, 9)], category=9),
        ],
    )
    # The same three photographs, two of them under other names, and another one of the same size.
    (tmp_path / "b/photos/x").mkdir(parents=True)
    other = Image.fromarray(pixels(4))
    other.save(tmp_path / "b/photos/4.png")
    for number in (1, 2):
        (tmp_path / f"b/photos/x/{number}.png").write_bytes((first.images / f"{number}.png").read_bytes())
    files = {1: "x/1.png", 2: "x/2.png", 3: "3.png", 4: "4.png", 5: "gone.png"}
    images = [{"id": n, "file_name": name, "height": HEIGHT, "width": WIDTH} for n, name in files.items()]
    second = write(
        tmp_path / "b",
        [
            annotation(4, 1, [box(0, 0, 8, 8)]),
            annotation(5, 2, [box(0, 0, 10, 10)]),
            annotation(6, 3, [box(0, 0, 8, 8)]),
            annotation(7, 4, [box(0, 0, 8, 8)]),
            annotation(8, 5, [box(0, 0, 8, 8)]),
        ],
        images=images,
    )
    instances, skipped = find(first, second, categories=("dog", "stop sign"), limit=4)
    chosen = [(i.category, i.annotation, i.source) for i in instances]
    assert chosen == [("dog", 1, 0), ("dog", 5, 1), ("dog", 6, 1), ("dog", 7, 1), ("stop sign", 3, 0)]
    assert skipped == {"dog": {"duplicate of another image": 2, "beyond the limit": 1}, "stop sign": {}}


def test_an_id_belongs_to_one_image_and_one_category(tmp_path: Path) -> None:
    images = [{"id": 4, "file_name": f"{n}.png", "height": HEIGHT, "width": WIDTH} for n in (1, 1, 2)]
    source = write(tmp_path, [annotation(1, 4, [box(0, 0, 9, 9)])], images=images[:2])
    assert [i.coco_image.name for i in find(source)[0]] == ["1.png"]
    write(tmp_path, [annotation(1, 4, [box(0, 0, 9, 9)])], images=images)
    message = f"{source.annotations}: images[2]: id is 4, the same as in images[0]"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        find(source)
    write(tmp_path, [GOOD], categories=[*CATEGORIES, {"id": 7, "name": "cat"}])
    with pytest.raises(ValueError, match=re.escape("categories[2]: id is 7, the same as in categories[0]")):
        find(source)


@pytest.mark.parametrize("mode", ["P", "CMYK", "LA"])
def test_photographs_of_other_modes_become_rgb(tmp_path: Path, mode: str) -> None:
    source = write(tmp_path, [annotation(1, 1, [box(0, 0, WIDTH, HEIGHT)])])
    (instance,), _ = find(source)
    coco_image = (
        Image.fromarray(pixels(1)).convert("RGB").convert("L" if mode == "LA" else mode).convert(mode)
    )
    coco_image.save(instance.coco_image, format="JPEG" if mode == "CMYK" else "PNG")
    with Image.open(instance.coco_image) as stored:
        assert stored.mode == mode
        expected = np.asarray(stored.convert("RGB"))
    assert (cut_out(instance)[..., :3] == expected).all()


def test_palette_with_transparency_in_bytes(tmp_path: Path) -> None:
    source = write(tmp_path, [annotation(1, 1, [box(0, 0, WIDTH, HEIGHT)])])
    (instance,), _ = find(source)
    coco_image = Image.fromarray(pixels(1)).quantize(8)
    coco_image.save(instance.coco_image, transparency=bytes([0, 128, 255, 255, 255, 255, 255, 255]))
    assert (cut_out(instance)[..., :3] == np.asarray(coco_image.convert("RGB"))).all()


def test_not_json(tmp_path: Path) -> None:
    source = write(tmp_path, [])
    source.annotations.write_text('{"images": [],\n "annotations": [}')
    with pytest.raises(ValueError, match=re.escape(f"{source.annotations}: not JSON: Expecting value at")):
        find(source)
    source.annotations.write_bytes(b'{"images": "\xff"}')
    with pytest.raises(ValueError, match="not JSON: invalid start byte at byte 12"):
        find(source)


@pytest.mark.parametrize("section", ["images", "annotations", "categories"])
def test_a_section_is_missing(tmp_path: Path, section: str) -> None:
    source = write(tmp_path, [], **{section: None})
    with pytest.raises(ValueError, match=rf"instances\.json: no list '{section}'"):
        find(source)


GOOD = annotation(1, 1, [box(0, 0, 9, 9)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category_id": "7"}, "category_id is '7', expected int"),
        ({"category_id": True}, "category_id is True, expected int"),
        ({"image_id": None}, "image_id is None, expected int"),
        ({"image_id": 1.0}, "image_id is 1.0, expected int"),
        ({"image_id": 44}, "image_id is 44, expected the id of one of the file's images"),
        ({"iscrowd": "0"}, "iscrowd is '0', expected 0 or 1"),
        ({"iscrowd": 2}, "iscrowd is 2, expected 0 or 1"),
        ({"segmentation": "x"}, "segmentation is 'x', expected list or dict"),
        ({"segmentation": [3, 4]}, "segmentation contains 3, expected lists of numbers"),
        ({"segmentation": [["5", 0, 9, 0, 9, 9]]}, "segmentation contains ['5', 0, 9, 0, 9, 9]"),
        ({"segmentation": [[True, 0, 9, 0, 9, 9]]}, "segmentation contains [True, 0, 9, 0, 9, 9]"),
        ({"segmentation": [[0, 0, float("nan"), 1, 1, 1]]}, "segmentation contains [0, 0, nan, 1, 1, 1]"),
        ({"segmentation": [[0, 0, 1e9, 0, 9, 9]]}, "segmentation has a coordinate 1000000000.0"),
        ({"segmentation": {"size": [60, 80], "counts": [5, 6]}}, "segmentation is {'counts': [5, 6]"),
        ({"segmentation": {"size": [60, 80], "counts": [True, 4799]}}, "segmentation is {'counts': [True"),
        ({"segmentation": {"size": [60, 81], "counts": []}}, "segmentation is {'counts': []"),
        ({"segmentation": {"size": [60, 80], "counts": "12"}}, "segmentation is {'counts': '12'"),
    ],
)
def test_a_broken_annotation_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    source = write(tmp_path, [GOOD, {**GOOD, "id": 2, **change}])
    place = f"{source.annotations}: annotations[1]: {message}"
    with pytest.raises(ValueError, match=rf"^{re.escape(place)}[^\n]*$"):
        find(source)


@pytest.mark.parametrize("name", ["/etc/1.png", "a/../../1.png", "..\\1.png", ""])
def test_file_names_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    images = [{"id": 1, "file_name": name, "height": HEIGHT, "width": WIDTH}]
    source = write(tmp_path, [GOOD], images=images)
    expected = f"instances.json: images[0]: file_name is {name!r}, expected a path"
    with pytest.raises(ValueError, match=re.escape(expected)):
        find(source)


def test_an_unknown_category(tmp_path: Path) -> None:
    source = write(tmp_path, [GOOD])
    with pytest.raises(ValueError, match="unknown category 'stop_sign'"):
        find(source, categories=("stop_sign",))


def test_a_category_without_instances(tmp_path: Path) -> None:
    crowd = annotation(2, 1, {"size": [HEIGHT, WIDTH], "counts": [0, HEIGHT * WIDTH]}, iscrowd=1)
    source = write(tmp_path, [GOOD, crowd])
    with pytest.raises(ValueError, match="'dog'; found: smaller than 1000 px² 1, crowd 1"):
        find(source, min_area=1000)
    with pytest.raises(ValueError, match="no usable instance of 'stop sign'; found: none"):
        find(source, categories=("dog", "stop sign"))


def test_files_that_are_missing(tmp_path: Path) -> None:
    source = write(tmp_path, [annotation(1, 2, [box(0, 0, 9, 9)])])
    (source.images / "2.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"2\.png: no such image file"):
        find(source)
    source.annotations.unlink()
    with pytest.raises(FileNotFoundError, match=r"instances\.json: no such annotation file"):
        find(source)


def test_a_photograph_of_another_size(tmp_path: Path) -> None:
    source = write(tmp_path, [GOOD])
    (instance,), _ = find(source)
    Image.fromarray(pixels(1)[:, :50]).save(instance.coco_image)
    with pytest.raises(ValueError, match=r"1\.png: found 50 × 60 pixels, expected 80 × 60"):
        cut_out(instance)


def test_chosen_images_have_all_objects_of_their_category(tmp_path: Path) -> None:
    source = write(
        tmp_path,
        [
            annotation(1, 2, [box(0, 0, 10, 10)]),
            annotation(2, 2, [box(20, 10, 50, 40)]),
            annotation(3, 2, [box(0, 50, 10, 60)], category=9),
            annotation(4, 1, [box(5, 5, 15, 10)], category=9),
        ],
    )
    (source.images / "3.png").unlink()  # of an image that is not chosen
    second, first = annotated_images(source, {"2.png": "dog", "1.png": "stop sign"})
    assert [second.file.name, first.file.name] == ["2.png", "1.png"]
    assert second.decoded_mask().sum() == 10 * 10 + 30 * 30
    assert first.decoded_mask().sum() == 10 * 5


@pytest.mark.parametrize("name", ["1.png", "4.png"])
def test_a_chosen_image_without_an_object(tmp_path: Path, name: str) -> None:
    source = write(tmp_path, [annotation(1, 2, [box(0, 0, 10, 10)])])
    with pytest.raises(ValueError, match=re.escape(f"found no object of 'dog' in {name}")):
        annotated_images(source, {name: "dog"})

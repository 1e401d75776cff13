import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data import DATA_KINDS
from saliency_assay.data.images import SUFFIXES
from saliency_assay.data.readers.folder import count_classes, folder, square
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.registry.records import record_of
from saliency_assay.storage.text import decode

DEFAULTS = {
    name: parameter.default
    for name, parameter in record_of(DATA_KINDS, "folder", "data").parameters.items()
    if name != "seed"
}
MISSING = f"expected {', '.join(SUFFIXES)}"


def write(path: Path, gray: int = 0, size: tuple[int, int] = (12, 10)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (gray, gray, gray)).save(path)


def split_tree(root: Path, test: str = "test") -> Path:
    """Three classes; the gray level of an image says where it lies: 100 · half + 10 · class + number."""
    for half, name in enumerate(("train", test)):
        for label, wnid in enumerate(("n03", "n01", "n02")):
            for number in range(4 - half):
                write(root / name / wnid / f"{wnid}_{number}.png", 100 * half + 10 * label + number)
    return root


def built(
    path: Path, seed: int = 0, block: int = 4, **changes: Any
) -> tuple[tuple[str, ...], dict[str, Any]]:
    parameters = {**DEFAULTS, "size": 8, **changes}
    generator = np.random.default_rng(seed)
    classes, parts = folder(path=str(path), generator=generator, block=block, **parameters)
    blocks = list(parts)
    assert [len(part["image"]) for part in blocks[:-1]] == [block] * (len(blocks) - 1)
    assert set(classes) == {"class"}
    return classes["class"], {key: np.concatenate([part[key] for part in blocks]) for key in blocks[0]}


def grays(found: dict[str, Any]) -> list[int]:
    """The gray level of each image, which must be one."""
    flat = found["image"].reshape(len(found["image"]), -1)
    assert (flat == flat[:, :1]).all()
    return flat[:, 0].tolist()


def fault(path: Path, kind: type[Exception] = ValueError, **changes: Any) -> str:
    with pytest.raises(kind) as error:
        built(path, **changes)
    message = str(error.value)
    assert message.splitlines() == [message]
    return message.replace(str(path), "ROOT")


# --- what is read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["test", "val"])
def test_training_and_test_folders(tmp_path: Path, test: str) -> None:
    classes, found = built(split_tree(tmp_path, test))
    assert classes == ("n01", "n02", "n03")
    assert found["image"].shape == (21, 3, 8, 8)
    assert (found["image"].dtype, found["split"].dtype, found["label_class"].dtype) == (
        np.uint8,
        np.uint8,
        np.int64,
    )
    trained = [10, 11, 12, 13, 20, 21, 22, 23, 0, 1, 2, 3]
    assert grays(found) == [*trained, 110, 111, 112, 120, 121, 122, 100, 101, 102]
    assert found["split"].tolist() == [TRAIN] * 12 + [TEST] * 9
    assert found["label_class"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [0] * 3 + [1] * 3 + [2] * 3


def test_blocks_and_the_order_on_disk_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split_tree(tmp_path)
    _, expected = built(tmp_path)
    listing, walk = Path.iterdir, os.walk
    monkeypatch.setattr(Path, "iterdir", lambda path: sorted(listing(path), reverse=True))
    monkeypatch.setattr(
        os, "walk", lambda *given, **more: ((a, b, c[::-1]) for a, b, c in walk(*given, **more))
    )
    _, found = built(tmp_path, block=100)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def test_no_more_than_a_block_is_read_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    reading = Image.open

    def watched(path: Path, formats: Sequence[str]) -> Image.Image:
        opened.append(path)
        return reading(path, formats=formats)

    monkeypatch.setattr(Image, "open", watched)
    parameters = {**DEFAULTS, "size": 8}
    _, blocks = folder(
        path=str(split_tree(tmp_path)), generator=np.random.default_rng(0), block=4, **parameters
    )
    assert opened == []
    for number, _ in enumerate(blocks, 1):
        assert len(opened) == min(4 * number, 21)


def test_classes_alone_are_split_class_by_class(tmp_path: Path) -> None:
    for label, name in enumerate(("zebra", "ape")):
        for number in range(10):
            write(tmp_path / name / f"{number}.png", 100 * label + number)
    classes, found = built(tmp_path, test_share=0.3, seed=1)
    assert classes == ("ape", "zebra")
    assert grays(found) == [*range(100, 110), *range(10)]
    for label in range(2):
        assert np.count_nonzero(found["split"][found["label_class"] == label] == TEST) == 3
    same, other = (built(tmp_path, test_share=0.3, seed=seed)[1]["split"] for seed in (1, 2))
    np.testing.assert_array_equal(same, found["split"])
    assert (other != found["split"]).any()


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    for name in ("train", "bus"):
        for number in range(2):
            write(tmp_path / name / f"{number}.png")
    assert built(tmp_path)[0] == ("bus", "train")


def test_the_number_of_images_can_be_limited(tmp_path: Path) -> None:
    split_tree(tmp_path)
    _, found = built(tmp_path, images_per_class=3)
    assert found["label_class"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [0] * 3 + [1] * 3 + [2] * 3
    chosen = grays(found)
    assert chosen[9:] == [110, 111, 112, 120, 121, 122, 100, 101, 102]  # as many as there are: all
    for start, tens in ((0, 10), (3, 20), (6, 0)):
        three = chosen[start : start + 3]
        assert sorted(set(three)) == three
        assert set(three) < set(range(tens, tens + 4))
    assert grays(built(tmp_path, images_per_class=3)[1]) == chosen
    drawn = {tuple(grays(built(tmp_path, images_per_class=1, seed=seed)[1])) for seed in range(8)}
    assert len(drawn) > 4


def test_test_images_can_have_a_limit_of_their_own(tmp_path: Path) -> None:
    split_tree(tmp_path)

    def counts(**limits: int) -> list[list[int]]:
        found = built(tmp_path, **limits)[1]
        return [np.bincount(found["label_class"][found["split"] == part]).tolist() for part in (TRAIN, TEST)]

    assert counts(test_images_per_class=1) == [[4] * 3, [1] * 3]
    assert counts(test_images_per_class=9) == [[4] * 3, [3] * 3]  # as many as there are
    assert counts(images_per_class=1, test_images_per_class=2) == [[1] * 3, [2] * 3]
    assert counts(images_per_class=2, test_images_per_class=0) == [[2] * 3, [2] * 3]


def test_a_limit_for_test_images_needs_images_that_are_test_images(tmp_path: Path) -> None:
    """With a random split it would have no effect."""
    for name in ("a", "b"):
        for number in range(10):
            write(tmp_path / name / f"{number}.png")
    assert fault(tmp_path, test_images_per_class=1) == (
        "test_images_per_class: found 1, but ROOT has no folder or split of test images; use images_per_class and "
        "test_share"
    )


@pytest.mark.parametrize("names", [("Testing", "Training"), ("train", "validation"), ("test", "training")])
def test_folders_of_splits_are_not_taken_for_classes(names: Sequence[str], tmp_path: Path) -> None:
    for name in names:
        for number in range(4):
            write(tmp_path / name / f"cat/{number}.png")
    assert fault(tmp_path) == (
        f"ROOT: found the folders {', '.join(names)}, which would be classes; for a split, name them train and "
        "test or val"
    )


def test_a_test_folder_can_be_named(tmp_path: Path) -> None:
    split_tree(tmp_path, "test")
    for wnid in ("n01", "n02", "n03"):
        write(tmp_path / "val" / wnid / "0.png", 200)
    assert fault(tmp_path) == "ROOT: found test and val next to train; set test_folder to one of them"
    assert grays(built(tmp_path, test_folder="val")[1])[12:] == [200, 200, 200]
    assert 200 not in grays(built(tmp_path, test_folder="test")[1])


def test_images_may_lie_deeper_and_other_files_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a/images/1.JPEG", "a/0.png", "b/1.jpg", "b/x/y/2.bmp", ".cache/0.png", "b/.git/0.png"):
        write(tmp_path / name)
    for name in ("a/a_boxes.txt", "b/notes.txt", "b/Thumbs.db", "b/.DS_Store", "b/._1.jpg", "readme.md"):
        (tmp_path / name).write_text("no image")
    with caplog.at_level(logging.INFO):
        classes, found = built(tmp_path)
    assert classes == ("a", "b")
    assert found["label_class"].tolist() == [0, 0, 1, 1]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: left out 8 files and folders: .db 1, .md 1, .txt 2, hidden 4",
        f"{tmp_path}: 2 images to train on, 2 to test",
    ]


def test_a_folder_that_macos_adds_is_no_class(tmp_path: Path) -> None:
    for name in ("a/0.gif", "a/1.jfif", "b/0.png", "b/1.pnm", "__MACOSX/a/._0.gif"):
        write(tmp_path / name)
    classes, found = built(tmp_path)
    assert classes == ("a", "b")
    assert found["label_class"].tolist() == [0, 0, 1, 1]


def test_folders_may_be_links(tmp_path: Path) -> None:
    for name in ("0", "1"):
        write(tmp_path / f"all/n01/{name}.png", 50)
        write(tmp_path / f"some/n02/{name}.png", 60)
    (tmp_path / "some/n01").symlink_to(tmp_path / "all/n01")
    assert grays(built(tmp_path / "some")[1]) == [50, 50, 60, 60]


def test_tiny_imagenets_list_of_test_images(tmp_path: Path) -> None:
    split_tree(tmp_path, "other")
    lines = []
    for number, wnid in enumerate(("n02", "n01", "n03", "n02")):
        write(tmp_path / f"val/images/val_{number}.JPEG", 40 * number)
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62")
    file = tmp_path / "val/val_annotations.txt"
    file.write_text("\n".join([*lines, lines[0]]) + "\n")
    classes, found = built(tmp_path)
    assert classes == ("n01", "n02", "n03")
    tested = found["split"] == TEST
    assert found["label_class"][tested].tolist() == [0, 1, 1, 2]
    assert np.array(grays(found))[tested].tolist() == [40, 0, 120, 80]
    for line in ("val_9.JPEG", "val_9.JPEG n01", "../val_9.JPEG\tn01", "\tn01", "val_9.JPEG\t", ""):
        file.write_text("\n".join([*lines, line, lines[0]]))
        expected = f"line 5 is {line!r}, expected an image's file name, a tab and its class"
        assert fault(tmp_path) == f"ROOT/val/val_annotations.txt: {expected}"
    file.write_text("\n".join([*lines, "val_9.JPEG\tn01"]))
    assert fault(tmp_path, FileNotFoundError) == "ROOT/val/images/val_9.JPEG: no such image file"


# --- the square ---------------------------------------------------------------------------------------------


def plain_square(pixels: np.ndarray, size: int, crop_share: float) -> np.ndarray:
    """Resize and crop by the triangle filter's own definition, in float64, one output pixel at a time."""
    height, width = pixels.shape[:2]
    scaled = round(size / crop_share)

    def matrix(length: int) -> np.ndarray:
        after = int(scaled * length / min(height, width))
        scale = length / after
        reach = max(1.0, scale)
        first = round((after - size) / 2)
        weights = np.zeros((size, length))
        for target in range(size):
            center = (first + target + 0.5) * scale
            for source in range(length):
                weights[target, source] = max(0.0, 1 - abs(source + 0.5 - center) / reach)
            weights[target] /= weights[target].sum()
        return weights

    return np.einsum("yh,xw,hwc->cyx", matrix(height), matrix(width), pixels.astype(np.float64))


@pytest.mark.parametrize("width_height", [(50, 37), (31, 90), (24, 24), (7, 9), (200, 11)])
@pytest.mark.parametrize(("size", "crop_share"), [(24, 1.0), (21, 0.875), (8, 0.5)])
def test_the_square_is_the_resized_images_center(
    width_height: tuple[int, int], size: int, crop_share: float
) -> None:
    width, height = width_height
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    found = square(Image.fromarray(pixels), size, crop_share)
    assert (found.shape, found.dtype) == ((3, size, size), np.uint8)
    assert found.flags.c_contiguous
    # Pillow rounds after each of the two directions.
    assert np.abs(found - plain_square(pixels, size, crop_share)).max() < 1.6


@pytest.mark.parametrize("width_height", [(500, 375), (375, 500), (333, 257), (100, 64)])
def test_it_is_what_imagenets_networks_were_trained_on(width_height: tuple[int, int]) -> None:
    transforms = pytest.importorskip("torchvision.transforms")
    coarse = np.random.default_rng(1).integers(0, 256, (13, 17, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize(width_height, Image.Resampling.BICUBIC)
    expected = transforms.CenterCrop(224)(transforms.Resize(256)(image))
    found = square(image, 224, 0.875)
    assert np.abs(found - np.asarray(expected).transpose(2, 0, 1).astype(int)).max() <= 1


def test_gray_and_palette_images_become_rgb(tmp_path: Path) -> None:
    ramp = np.tile(np.arange(16, dtype=np.uint8) * 15, (16, 1))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.fromarray(ramp).save(tmp_path / name / "0.png")
        Image.fromarray(ramp).convert("P").save(tmp_path / name / "1.png")
    _, found = built(tmp_path, size=16)
    np.testing.assert_array_equal(found["image"], np.broadcast_to(ramp, (4, 3, 16, 16)))


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert fault(tmp_path / "no", FileNotFoundError) == "ROOT: no such folder of images"
    write(tmp_path / "train/a/0.png")
    expected = "ROOT/val: no such folder of images, expected one as test_folder is 'val'"
    assert fault(tmp_path, FileNotFoundError, test_folder="val") == expected
    (tmp_path / "train").rename(tmp_path / "test")
    expected = "ROOT/train: no such folder of images, expected one as test_folder is 'test'"
    assert fault(tmp_path, FileNotFoundError, test_folder="test") == expected


def test_too_few_classes(tmp_path: Path) -> None:
    wanted = "expected a folder for each of two or more classes"
    assert fault(tmp_path) == f"ROOT: found none, {wanted}"
    write(tmp_path / "0.png")
    assert fault(tmp_path) == f"ROOT: found none, {wanted}"
    write(tmp_path / "cat/0.png")
    assert fault(tmp_path) == f"ROOT: found cat, {wanted}"


def test_a_class_without_images(tmp_path: Path) -> None:
    split_tree(tmp_path)
    for image in (tmp_path / "test/n02").iterdir():
        image.rename(image.with_suffix(".txt"))
    assert fault(tmp_path) == f"ROOT/test/n02: found no image of this class, {MISSING}"


def test_a_class_that_is_too_small_to_be_split(tmp_path: Path) -> None:
    for name in ("a/0.png", "a/1.png", "b/0.png"):
        write(tmp_path / name)
    assert fault(tmp_path) == "ROOT/b: found 1 image of this class, expected 2 or more to split"
    write(tmp_path / "b/1.png")
    assert fault(tmp_path, images_per_class=1).startswith(
        "images_per_class: found 1, expected 0, or 2 or more"
    )


def test_classes_that_differ(tmp_path: Path) -> None:
    split_tree(tmp_path)
    write(tmp_path / "test/n00/0.png")
    assert fault(tmp_path) == "ROOT/train: missing classes of ROOT/test: n00"
    for number in range(5):
        write(tmp_path / f"train/n0{number}/0.png")
        write(tmp_path / f"train/n1{number}/0.png")
    assert fault(tmp_path) == "ROOT/test: missing classes of ROOT/train: n04, n10, n11 and 3 more"


@pytest.mark.parametrize("content", [b"", b"GIF no image", None])
def test_a_file_that_is_no_image_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = split_tree(tmp_path) / "test/n02/n02_1.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(file)
    file.write_bytes(file.read_bytes()[:150] if content is None else content)
    with pytest.raises(ValueError, match=rf"^{re.escape(str(file))}: truncated, or not an image \(.*\)$"):
        built(tmp_path)


# --- names, lists and masks ---------------------------------------------------------------------------------


def listed(root: Path, header: str, rows: Sequence[str]) -> Path:
    file = root / "list.csv"
    file.write_text("\n".join([header, *rows]))
    return file


def test_the_names_of_the_files_are_kept(tmp_path: Path) -> None:
    for name in ("ape/0.png", "ape/x/1.png", "zebra/0.png", "zebra/1.png"):
        write(tmp_path / name)
    assert decode(built(tmp_path)[1]["file"]) == ["ape/0.png", "ape/x/1.png", "zebra/0.png", "zebra/1.png"]
    split_tree(tmp_path / "halves")
    names = decode(built(tmp_path / "halves")[1]["file"])
    assert (names[0], names[-1], len(names)) == ("train/n01/n01_0.png", "test/n03/n03_2.png", 21)


def test_a_list_gives_the_same_data_as_folders(tmp_path: Path) -> None:
    split_tree(tmp_path)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png"))
    rows = [f"{name.split('/')[1]},{name},{name.split('/')[0]}" for name in names[::-1]]
    classes, expected = built(tmp_path, images_per_class=2)
    assert built(listed(tmp_path, "label,image,split", rows), images_per_class=2)[0] == classes
    found = built(listed(tmp_path, "label,image,split", rows), images_per_class=2)[1]
    assert count_classes(path=str(tmp_path / "list.csv")) == count_classes(path=str(tmp_path)) == 3
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])


def test_a_list_without_splits_is_split_class_by_class(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(20)]
    for name in names:
        write(tmp_path / name)
    rows = [f"{name},{'ab'[number % 2]}" for number, name in enumerate(names)]
    classes, found = built(listed(tmp_path, "image,label", rows), test_share=0.3)
    assert classes == ("a", "b")
    for label in range(2):
        assert np.count_nonzero(found["split"][found["label_class"] == label] == TEST) == 3
    assert "mask" not in found


def test_faults_of_lists(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.png")
    rows = ["a.png,x,train", "b.png,y,train"]
    file = listed(tmp_path, "image,label,split", rows)
    assert fault(file) == "ROOT, split test: found classes 'none', expected two or more"
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x"])
    assert fault(file) == "ROOT: found classes 'x', expected two or more"
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x", "c.png,y"])
    assert fault(file) == "ROOT, class y: found 1 image of this class, expected 2 or more to split"
    tests = ["a.png,x,test", "b.png,z,test"]
    file = listed(tmp_path, "image,label,split", ["c.png,x,train", "d.png,y,train", *tests])
    assert fault(file) == "ROOT, split train: missing classes of ROOT, split test: z"
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x", "gone.png,y", "c.png,y"])
    assert fault(file, FileNotFoundError) == f"{tmp_path}/gone.png: no such image file"


def masked(root: Path) -> Path:
    """Two classes of three images and one test image each, whose upper half is the object."""
    for half, count in (("train", 3), ("test", 1)):
        for label in "ab":
            for number in range(count):
                write(root / f"images/{half}/{label}/{number}.jpg")
                if half == "test" or number:
                    pixels = np.zeros((10, 12), dtype=np.uint8)
                    pixels[:5] = 255
                    (root / f"masks/{half}/{label}").mkdir(parents=True, exist_ok=True)
                    Image.fromarray(pixels).save(root / f"masks/{half}/{label}/{number}.png")
    return root / "images"


def test_masks_from_a_folder_boxes_and_a_list_are_the_same(tmp_path: Path, caplog: Any) -> None:
    images = masked(tmp_path)
    _, found = built(images, masks=str(tmp_path / "masks"))
    assert (found["mask"].dtype, found["mask"].shape) == (bool, (8, 8, 8))
    upper = np.arange(8)[:, None] < 4
    empty = [0, 3]  # training images without a mask
    for number, mask in enumerate(found["mask"]):
        np.testing.assert_array_equal(mask, np.broadcast_to(upper & (number not in empty), (8, 8)))
    names = decode(found["file"])
    rows = [f"{name},0,0,12,5" for number, name in enumerate(names) if number not in empty]
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("\n".join(["image,x,y,width,height", *rows]))
    np.testing.assert_array_equal(built(images, masks=str(boxes))[1]["mask"], found["mask"])
    rows = [
        f"images/{name},{name.split('/')[1]},{name.split('/')[0]},"
        + ("" if number in empty else f"masks/{name.replace('jpg', 'png')}")
        for number, name in enumerate(names)
    ]
    file = listed(tmp_path, "image,label,split,mask", rows)
    np.testing.assert_array_equal(built(file)[1]["mask"], found["mask"])
    assert "empty" not in caplog.text


def test_a_test_image_needs_a_mask(tmp_path: Path) -> None:
    images = masked(tmp_path)
    (tmp_path / "masks/test/b/0.png").unlink()
    message = fault(images, masks=str(tmp_path / "masks"))
    line = "found no mask of 1 of 2 test images, first test/b/0.jpg; expected test/b/0.png in it"
    assert message == f"{tmp_path}/masks: {line}"
    rows = ["a.png,x,train,", "b.png,y,train,", "c.png,x,test,", "d.png,y,test,m.png"]
    line = "found no mask of 1 of 2 test images, first c.png; expected its path in the column mask"
    assert fault(listed(tmp_path, "image,label,split,mask", rows)) == f"ROOT: {line}"


def test_objects_outside_the_square_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for label in "ab":
        for number in range(2):
            write(tmp_path / f"images/{label}/{number}.png", size=(40, 10))
    boxes = tmp_path / "boxes.csv"
    rows = [f"{label}/{number}.png,0,0,8,10" for label in "ab" for number in range(2)]
    boxes.write_text("\n".join(["image,x,y,width,height", *rows]))
    built(tmp_path / "images", masks=str(boxes), test_share=0.5)
    assert "masks of 2 test images are empty after resizing and cropping" in caplog.text

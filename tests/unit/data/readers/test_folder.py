import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data import DATA_KINDS
from saliency_assay.data.geometry import Geometry
from saliency_assay.data.image_folders import class_names, has_training_images
from saliency_assay.data.readers.folder import folder
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.registry.records import record_of
from saliency_assay.storage.text import decode

DEFAULTS = {
    name: parameter.default
    for name, parameter in record_of(DATA_KINDS, "folder", "data").parameters.items()
    if name != "seed"
}


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


def grays(arrays: dict[str, Any]) -> list[int]:
    """The gray level of each image, which must be one."""
    flat = arrays["image"].reshape(len(arrays["image"]), -1)
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
    classes, arrays = built(split_tree(tmp_path, test))
    assert classes == ("n01", "n02", "n03")
    assert arrays["image"].shape == (21, 3, 8, 8)
    assert [arrays[name].dtype for name in ("image", "split", "label_class")] == [
        np.uint8,
        np.uint8,
        np.int64,
    ]
    trained = [10, 11, 12, 13, 20, 21, 22, 23, 0, 1, 2, 3]
    assert grays(arrays) == [*trained, 110, 111, 112, 120, 121, 122, 100, 101, 102]
    assert arrays["split"].tolist() == [TRAIN] * 12 + [TEST] * 9
    assert arrays["label_class"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [0] * 3 + [1] * 3 + [2] * 3


def test_blocks_and_the_order_on_disk_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split_tree(tmp_path)
    _, expected = built(tmp_path)
    listing, walk = Path.iterdir, os.walk
    monkeypatch.setattr(Path, "iterdir", lambda path: sorted(listing(path), reverse=True))
    monkeypatch.setattr(
        os, "walk", lambda *top, **options: ((a, b, c[::-1]) for a, b, c in walk(*top, **options))
    )
    _, arrays = built(tmp_path, block=100)
    for name in expected:
        np.testing.assert_array_equal(arrays[name], expected[name])


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
    classes, arrays = built(tmp_path, test_share=0.3, seed=1)
    assert classes == ("ape", "zebra")
    assert grays(arrays) == [*range(100, 110), *range(10)]
    for label in range(2):
        assert np.count_nonzero(arrays["split"][arrays["label_class"] == label] == TEST) == 3
    same, other = (built(tmp_path, test_share=0.3, seed=seed)[1]["split"] for seed in (1, 2))
    np.testing.assert_array_equal(same, arrays["split"])
    assert (other != arrays["split"]).any()


def test_the_number_of_images_can_be_limited(tmp_path: Path) -> None:
    split_tree(tmp_path)
    _, arrays = built(tmp_path, images_per_class=3)
    assert arrays["label_class"].tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [0] * 3 + [1] * 3 + [2] * 3
    chosen = grays(arrays)
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
        arrays = built(tmp_path, **limits)[1]
        return [
            np.bincount(arrays["label_class"][arrays["split"] == part]).tolist() for part in (TRAIN, TEST)
        ]

    assert counts(test_images_per_class=1) == [[4] * 3, [1] * 3]
    assert counts(test_images_per_class=9) == [[4] * 3, [3] * 3]  # as many as there are
    assert counts(images_per_class=1, test_images_per_class=2) == [[1] * 3, [2] * 3]
    assert counts(images_per_class=2, test_images_per_class=0) == [[2] * 3, [2] * 3]


def test_a_limit_for_test_images_needs_images_that_are_test_images(tmp_path: Path) -> None:
    """With a random split it would have no effect."""
    for name in ("a", "b"):
        for number in range(10):
            write(tmp_path / name / f"{number}.png")
    message = fault(tmp_path, test_images_per_class=1)
    assert message.startswith(
        "test_images_per_class: found 1, but ROOT has no folder or split of test images"
    )


@pytest.mark.parametrize("names", [("Testing", "Training"), ("train", "validation")])
def test_folders_of_splits_are_not_taken_for_classes(names: Sequence[str], tmp_path: Path) -> None:
    for name in names:
        for number in range(4):
            write(tmp_path / name / f"cat/{number}.png")
    assert fault(tmp_path).startswith(f"ROOT: found the folders {', '.join(names)}, which would be classes")


def test_a_test_folder_can_be_named(tmp_path: Path) -> None:
    split_tree(tmp_path, "test")
    for wnid in ("n01", "n02", "n03"):
        write(tmp_path / "val" / wnid / "0.png", 200)
    assert fault(tmp_path) == "ROOT: found test and val next to train; set test_folder to one of them"
    assert grays(built(tmp_path, test_folder="val")[1])[12:] == [200, 200, 200]
    assert 200 not in grays(built(tmp_path, test_folder="test")[1])


def test_tiny_imagenets_list_of_test_images(tmp_path: Path) -> None:
    split_tree(tmp_path, "other")
    lines = []
    for number, wnid in enumerate(("n02", "n01", "n03", "n02")):
        write(tmp_path / f"val/images/val_{number}.JPEG", 40 * number)
        lines.append(f"val_{number}.JPEG\t{wnid}\t0\t32\t44\t62")
    file = tmp_path / "val/val_annotations.txt"
    file.write_text("\n".join([*lines, lines[0]]) + "\n")
    classes, arrays = built(tmp_path)
    assert classes == ("n01", "n02", "n03")
    tested = arrays["split"] == TEST
    assert arrays["label_class"][tested].tolist() == [0, 1, 1, 2]
    assert np.array(grays(arrays))[tested].tolist() == [40, 0, 120, 80]
    for line in ("val_9.JPEG n01", "../val_9.JPEG\tn01", "\tn01", "val_9.JPEG\t"):
        file.write_text("\n".join([*lines, line, lines[0]]))
        assert fault(tmp_path).startswith(f"ROOT/val/val_annotations.txt: line 5 is {line!r}, ")
    file.write_text("\n".join([*lines, "val_9.JPEG\tn01"]))
    assert fault(tmp_path, FileNotFoundError) == "ROOT/val/images/val_9.JPEG: no such image file"


# --- the square ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width_height", [(500, 375), (257, 333), (100, 64), (31, 90), (7, 9)])
@pytest.mark.parametrize(("size", "resized", "crop_share"), [(224, 256, 0.875), (24, 24, 1.0)])
def test_the_square_is_that_of_torchvisions_resize_and_center_crop(
    width_height: tuple[int, int], size: int, resized: int, crop_share: float
) -> None:
    transforms = pytest.importorskip("torchvision.transforms")
    coarse = np.random.default_rng(1).integers(0, 256, (13, 17, 3), dtype=np.uint8)
    image = Image.fromarray(coarse).resize(width_height, Image.Resampling.BICUBIC)
    expected = transforms.CenterCrop(size)(transforms.Resize(resized)(image))
    result = Geometry(size, size, crop_share=crop_share).resized(image)
    assert (result.shape, result.dtype) == ((3, size, size), np.uint8)
    assert result.flags.c_contiguous
    assert np.abs(result - np.asarray(expected).transpose(2, 0, 1).astype(int)).max() <= 1


def test_a_window_stores_floats(tmp_path: Path) -> None:
    """Resized in floats: with 8 bits, these images would have three levels at most."""
    values = np.linspace(1000, 1600, 120).reshape(10, 12).astype(np.uint16)
    for label in "ab":
        for number in range(2):
            (tmp_path / label).mkdir(exist_ok=True)
            Image.fromarray(values).save(tmp_path / label / f"{number}.png")
    _, arrays = built(tmp_path, gray=True, window=[0, 65_535], size=[8, 10])
    assert (arrays["image"].dtype, arrays["image"].shape) == (np.float32, (4, 1, 8, 10))
    assert len(np.unique(arrays["image"][0])) > 70
    floats = Image.fromarray((values / 65_535).astype(np.float32))
    np.testing.assert_array_equal(arrays["image"][0], Geometry(8, 10).resized(floats))
    message = fault(tmp_path, gray=True)
    assert "found 16 bits, expected 8 bits per channel; set gray: true and window: [low, high]" in message


@pytest.mark.parametrize(
    ("window", "limit"), [([700, 900], "below 900"), ([10, 99.5], "below 99.5"), ([2000, 4000], "above 2000")]
)
def test_a_window_that_contains_no_value_of_any_image_is_refused(
    tmp_path: Path, window: list[float], limit: str
) -> None:
    for name, value in (("a/0", 1000), ("a/1", 2000)):
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.fromarray(np.full((4, 4), value, np.uint16)).save(tmp_path / f"{name}.png")
    options: dict[str, Any] = {"gray": True, "size": 8, "split": "test"}
    message = fault(tmp_path, window=window, **options)
    assert message.startswith(
        f"window: found [{window[0]:g}, {window[1]:g}], but no value of 2 images is {limit};"
    )
    # Images of black and white alone have a window, too.
    _, arrays = built(tmp_path, window=[1000, 2000], **options)
    assert np.unique(arrays["image"]).tolist() == [0, 1]


# --- what is refused ----------------------------------------------------------------------------------------


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    assert fault(tmp_path / "no", FileNotFoundError) == "ROOT: no such folder of images"
    write(tmp_path / "train/a/0.png")
    message = fault(tmp_path, FileNotFoundError, test_folder="val")
    assert message.startswith("ROOT/val: no such folder of images, ")
    (tmp_path / "train").rename(tmp_path / "test")
    message = fault(tmp_path, FileNotFoundError, test_folder="test")
    assert message.startswith("ROOT/train: no such folder of images, ")


def test_too_few_classes(tmp_path: Path) -> None:
    write(tmp_path / "0.png")
    assert fault(tmp_path).startswith("ROOT: found classes 'none', expected two or more, each")
    write(tmp_path / "cat/0.png")
    assert fault(tmp_path).startswith("ROOT: found classes 'cat', expected")


def test_a_class_without_images(tmp_path: Path) -> None:
    split_tree(tmp_path)
    for image in (tmp_path / "test/n02").iterdir():
        image.rename(image.with_suffix(".txt"))
    assert fault(tmp_path).startswith("ROOT/test/n02: found no image of this class, expected .apng, ")


def test_a_class_that_is_too_small_to_be_split(tmp_path: Path) -> None:
    for name in ("a/0.png", "a/1.png", "b/0.png"):
        write(tmp_path / name)
    assert fault(tmp_path).startswith("ROOT/b: found 1 image of this class, expected 2")
    write(tmp_path / "b/1.png")
    assert fault(tmp_path, images_per_class=1).startswith("images_per_class: found 1, expected 0")


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
    assert fault(tmp_path).startswith("ROOT/test/n02/n02_1.png: truncated, or not an image ")


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
    listed_classes, arrays = built(listed(tmp_path, "label,image,split", rows), images_per_class=2)
    assert listed_classes == classes
    assert "mask" not in arrays
    assert class_names(path=str(tmp_path / "list.csv")) == class_names(path=str(tmp_path)) == classes
    for name in expected:
        np.testing.assert_array_equal(arrays[name], expected[name])


@pytest.mark.parametrize("layout", ["classes", "test", "val", "list", "list with split", "list of tests"])
def test_all_images_are_test_images(tmp_path: Path, layout: str) -> None:
    names = ["n01/a.png", "n02/b.png"]
    folder_name = layout if layout in ("test", "val") else ""
    for name in names:
        write(tmp_path / folder_name / name)
    path, changes = tmp_path, {"split": "test"}
    if layout in ("test", "val", "list of tests"):
        changes = {}
    if "list" in layout:
        column = "split" in layout or "tests" in layout
        rows = [f"{name},{name[:3]}" + ",test" * column for name in names]
        path = listed(tmp_path, "image,label" + ",split" * column, rows)
    classes, arrays = built(path, **changes)
    assert classes == class_names(path=str(path), **changes) == ("n01", "n02")
    assert arrays["split"].tolist() == [TEST, TEST]
    assert arrays["label_class"].tolist() == [0, 1]
    assert not has_training_images(str(path), "auto", changes.get("split", "auto"))


def test_one_class_of_test_images_is_enough(tmp_path: Path) -> None:
    write(tmp_path / "n01/a.png")
    classes, arrays = built(tmp_path, split="test", images_per_class=1)
    assert (classes, arrays["split"].tolist()) == (("n01",), [TEST])
    assert fault(tmp_path).startswith("ROOT: found classes 'n01', expected two or more")
    assert has_training_images(str(tmp_path), "auto", "auto")


def test_faults_of_test_images_alone(tmp_path: Path) -> None:
    rows = ["a.png,x,train", "b.png,x,test"]
    message = fault(listed(tmp_path, "image,label,split", rows), split="test")
    assert message == "ROOT: found images of split train, expected only test, because split is test"
    split_tree(tmp_path)
    message = fault(tmp_path, split="test")
    assert message.endswith(
        "the folders test, train, which would be classes; set path to the one of the test images"
    )
    assert fault(tmp_path / "train/n01", split="test").endswith(
        "found classes 'none', expected one or more, each in its own folder, or a list of images"
    )


def test_faults_of_lists(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.png")
    rows = ["a.png,x,train", "b.png,y,train"]
    file = listed(tmp_path, "image,label,split", rows)
    assert fault(file).startswith("ROOT, split test: found classes 'none', expected")
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x"])
    assert fault(file).startswith("ROOT: found classes 'x', expected")
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x", "c.png,y"])
    assert fault(file).startswith("ROOT, class y: found 1 image of this class, expected 2")
    tests = ["a.png,x,test", "b.png,z,test"]
    file = listed(tmp_path, "image,label,split", ["c.png,x,train", "d.png,y,train", *tests])
    assert fault(file) == "ROOT, split train: missing classes of ROOT, split test: z"
    file = listed(tmp_path, "image,label", ["a.png,x", "b.png,x", "gone.png,y", "c.png,y"])
    assert fault(file, FileNotFoundError) == f"{tmp_path}/gone.png: no such image file"


def test_groups_of_a_list_are_stored_and_stay_together(tmp_path: Path) -> None:
    rows = []
    for number in range(24):
        write(tmp_path / f"{number}.png", number)
        rows.append(f"{number}.png,{'xy'[number % 2]},p{number // 4}")
    file = listed(tmp_path, "image,label,group", rows)
    _, arrays = built(file, test_share=0.3)
    groups = decode(arrays["group"])
    assert groups == [f"p{gray // 4}" for gray in grays(arrays)]
    tested = {group for group, split in zip(groups, arrays["split"], strict=True) if split == TEST}
    assert len(tested) == 2
    assert all(
        (split == TEST) == (group in tested) for group, split in zip(groups, arrays["split"], strict=True)
    )
    rows = [f"{number}.png,{'xy'[number % 2]},p{number % 2}" for number in range(24)]
    message = fault(listed(tmp_path, "image,label,group", rows))
    assert message.startswith("ROOT, class x: found too few groups of images, expected some to train on")


def test_an_image_may_have_several_labels(tmp_path: Path) -> None:
    """Its rows are in one group, so that they are on one side of the split, and each has its own mask."""
    rows = []
    for number in range(10):
        write(tmp_path / f"{number}.png", number)
        rows += [f"{number}.png,{label},{label}.png" for label in ("yx" if number % 2 else "x")]
    for label, left in (("x", 0), ("y", 6)):
        pixels = np.zeros((10, 12), dtype=np.uint8)
        pixels[:, left : left + 6] = 1
        Image.fromarray(pixels).save(tmp_path / f"{label}.png")
    names, arrays = built(listed(tmp_path, "image,label,mask", rows), fit="stretch")
    assert names == ("x", "y")
    assert grays(arrays) == [*range(10), 1, 3, 5, 7, 9]
    assert decode(arrays["group"]) == decode(arrays["file"])
    split = dict(zip(grays(arrays), arrays["split"].tolist(), strict=True))
    assert [split[gray] for gray in grays(arrays)] == arrays["split"].tolist()
    assert {TRAIN, TEST} == set(arrays["split"][10:].tolist())
    np.testing.assert_array_equal(arrays["mask"][10], ~arrays["mask"][0])
    single = listed(tmp_path, "image,label", [f"{number}.png,{'xy'[number % 2]}" for number in range(10)])
    assert "group" not in built(single)[1]


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
    _, arrays = built(images, masks=str(tmp_path / "masks"))
    assert (arrays["mask"].dtype, arrays["mask"].shape) == (bool, (8, 8, 8))
    upper = np.arange(8)[:, None] < 4
    empty = [0, 3]  # training images without a mask
    for number, mask in enumerate(arrays["mask"]):
        np.testing.assert_array_equal(mask, np.broadcast_to(upper & (number not in empty), (8, 8)))
    names = decode(arrays["file"])
    rows = [f"{name},0,0,12,5" for number, name in enumerate(names) if number not in empty]
    boxes = tmp_path / "boxes.csv"
    boxes.write_text("\n".join(["image,x,y,width,height", *rows]))
    np.testing.assert_array_equal(built(images, masks=str(boxes))[1]["mask"], arrays["mask"])
    rows = [
        f"images/{name},{name.split('/')[1]},{name.split('/')[0]},"
        + ("" if number in empty else f"masks/{name.replace('jpg', 'png')}")
        for number, name in enumerate(names)
    ]
    file = listed(tmp_path, "image,label,split,mask", rows)
    np.testing.assert_array_equal(built(file)[1]["mask"], arrays["mask"])
    assert "empty" not in caplog.text


def test_a_test_image_needs_a_mask(tmp_path: Path) -> None:
    images = masked(tmp_path)
    (tmp_path / "masks/test/b/0.png").unlink()
    message = fault(images, masks=str(tmp_path / "masks"))
    missing = "found no mask of 1 of 2 test images, first"
    assert message.startswith(f"{tmp_path}/masks: {missing} test/b/0.jpg; expected test/b/0.png")
    _, arrays = built(images, masks=str(tmp_path / "masks"), explained_classes=["a"])
    assert arrays["mask"].any((1, 2)).tolist() == [False, True, True, False, True, True, True, False]
    rows = ["a.png,x,train,", "b.png,y,train,", "c.png,x,test,", "d.png,y,test,"]
    message = fault(listed(tmp_path, "image,label,split,mask", rows))
    assert message.startswith("ROOT: found no mask of 2 of 2 test images, first c.png; ")


def test_an_empty_mask_is_an_image_without_an_object(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a folder of masks as a file of zeros, in lists as an image without a box or mask."""
    images = masked(tmp_path)
    file = tmp_path / "masks/test/b/0.png"
    Image.new("L", (12, 10)).save(file)
    _, arrays = built(images, masks=str(tmp_path / "masks"))
    assert arrays["mask"][6:].any((1, 2)).tolist() == [True, False]
    assert "masks of 1 of 2 test images are empty" in caplog.text
    names = decode(arrays["file"])
    boxes = tmp_path / "boxes.csv"
    boxes.write_text(
        "\n".join(["image,x,y,width,height", *(f"{names[index]},0,0,12,5" for index in (1, 2, 4, 5, 6))])
    )
    np.testing.assert_array_equal(built(images, masks=str(boxes))[1]["mask"], arrays["mask"])
    rows = [
        f"images/{name},{name.split('/')[1]},{name.split('/')[0]},"
        + (f"masks/{name.replace('jpg', 'png')}" if arrays["mask"][index].any() else "")
        for index, name in enumerate(names)
    ]
    listed_arrays = built(listed(tmp_path, "image,label,split,mask", rows))[1]
    np.testing.assert_array_equal(listed_arrays["mask"], arrays["mask"])
    Image.new("L", (12, 10)).save(tmp_path / "masks/test/a/0.png")
    message = fault(images, masks=str(tmp_path / "masks"))
    assert message.startswith(f"{tmp_path}/masks: found an empty mask of each of 2 test images")


def test_objects_outside_the_square_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for label in "ab":
        for number in range(2):
            write(tmp_path / f"images/{label}/{number}.png", size=(40, 10))
    boxes = tmp_path / "boxes.csv"
    for b_left in (15, 0):
        rows = [
            f"{label}/{number}.png,{b_left * (label == 'b')},0,8,10" for label in "ab" for number in range(2)
        ]
        boxes.write_text("\n".join(["image,x,y,width,height", *rows]))
        if b_left:
            built(tmp_path / "images", masks=str(boxes), test_share=0.5)
    assert "masks of 1 of 2 test images are empty after resizing and cropping" in caplog.text
    message = fault(tmp_path / "images", masks=str(boxes), test_share=0.5)
    assert message.startswith(
        f"{boxes}: found an empty mask of each of 2 test images after resizing and cropping"
    )

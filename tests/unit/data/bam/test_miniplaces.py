import io
import logging
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saliency_assay.data.bam.miniplaces import Scene, find_scenes, read_scene


def touch_image(path: Path) -> None:
    """An image of its own; all are of one size in bytes, so that only their contents tell them apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    Image.new("RGB", (4, 4)).save(content, format="BMP")
    path.write_bytes(content.getvalue() + sha256(str(path).encode()).digest())


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """MiniPlaces' own layout, with its development kit's lists."""
    train = [
        "train/b/bedroom/00000001.jpg 0",
        "train/b/bedroom/00000002.jpg 0",
        "train/t/track/outdoor/00000001.jpg 1",
    ]
    val = ["val/00000001.jpg 1", "val/00000002.jpg 0"]
    for line in train + val:
        touch_image(tmp_path / "images" / line.split()[0])
    (tmp_path / "train.txt").write_text("\n".join(train) + "\n")
    (tmp_path / "val.txt").write_text("\n".join(val) + "\n")
    (tmp_path / "categories.txt").write_text("/b/bedroom 0\n/t/track/outdoor 1\n")
    return tmp_path


def names(folder: Path, scenes: list[Scene]) -> list[tuple[str, str]]:
    return [(scene.category, scene.path.relative_to(folder).as_posix()) for scene in scenes]


@pytest.mark.parametrize("kit", ["/b/bedroom 0\n/t/track/outdoor 1\n", "0 bedroom\n1 track/outdoor\n\n"])
@pytest.mark.parametrize("track", ["track", "track_outdoor"])
def test_original_layout(original: Path, kit: str, track: str) -> None:
    (original / "categories.txt").write_text(kit)
    scenes, skipped, _ = find_scenes(original, [track, "bedroom"], limit=9)
    assert names(original, scenes) == [
        (track, "images/train/t/track/outdoor/00000001.jpg"),
        (track, "images/val/00000001.jpg"),
        ("bedroom", "images/train/b/bedroom/00000001.jpg"),
        ("bedroom", "images/train/b/bedroom/00000002.jpg"),
        ("bedroom", "images/val/00000002.jpg"),
    ]
    assert skipped == {track: {}, "bedroom": {}}


def test_one_list_is_enough_and_the_first_are_kept(original: Path) -> None:
    (original / "val.txt").unlink()
    scenes, skipped, _ = find_scenes(original, ["bedroom"], limit=1)
    assert names(original, scenes) == [("bedroom", "images/train/b/bedroom/00000001.jpg")]
    assert skipped == {"bedroom": {"beyond the limit": 1}}


def test_a_folder_per_scene_reads_every_format_and_no_hidden_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    images = ("bedroom/1.webp", "bedroom/2.tif", "bedroom/3.GIF", "track/outdoor/x.jpeg")
    for name in (*images, "bedroom/.hidden.jpg", ".git/4.png"):
        touch_image(tmp_path / name)
    (tmp_path / "bedroom/._1.jpg").write_bytes(b"Mac OS X")
    (tmp_path / "bedroom/notes.txt").write_text("")
    with caplog.at_level(logging.INFO):
        scenes, *_ = find_scenes(tmp_path, ["bedroom", "track"], limit=9)
    assert names(tmp_path, scenes) == [(name.partition("/")[0], name) for name in images]
    assert [read_scene(scene, 4).shape for scene in scenes] == [(3, 4, 4)] * 4
    assert caplog.messages == [f"{tmp_path}: left out 4 files and folders: .txt 1, hidden 3"]


def annotate(root: Path, image: str, *numbers: int | str) -> Path:
    """Write an annotation as the publishers do: several root elements, objects as numbers."""
    file = root / "objects" / image.replace(".jpg", ".xml")
    file.parent.mkdir(parents=True, exist_ok=True)
    point = "\t\t<pt>\n\t\t\t<x>1</x>\n\t\t\t<y>96</y>\n\t\t</pt>\n"
    box = "".join(f"\t\t<{side}>1</{side}>\n" for side in ("xmin", "xmax", "ymin", "ymax"))
    objects = (
        f"<objects>\n\t<class>{number}</class>\n\t<polygon>\n{point * 5}\t</polygon>\n"
        f"\t<bndbox>\n{box}\t</bndbox>\n</objects>\n"
        for number in numbers
    )
    # The number of the scene is that of no object that is looked for.
    head = "<filename>34260187.jpg</filename>\n<folder>/b/bedroom</folder>\n<class>5</class>\n"
    file.write_text(head + "".join(objects))
    return file


OBJECTS = ["truck", "toilet", "wall", "fire_truck", "tow_truck_part", "struck", "trucks", "stop_sign", "sign"]
IMAGE = "train/b/bedroom/00000002.jpg"


def name_objects(root: Path) -> None:
    lines = [f"{name} {number}" for number, name in enumerate(OBJECTS)]
    (root / "object_categories.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("objects", "held"),
    [
        (["truck"], ["truck", "fire_truck", "tow_truck_part", "trucks"]),
        (["dog", "Toilet"], ["toilet"]),
        (["stop sign"], ["stop_sign"]),
        (["sign"], ["stop_sign", "sign"]),
        (["dog", "truc"], []),
    ],
)
def test_scenes_that_hold_an_object_are_left_out(original: Path, objects: list[str], held: list[str]) -> None:
    name_objects(original)
    matches = []
    for number, name in enumerate(OBJECTS):
        annotate(original, IMAGE, 2, number, number)
        scenes, skipped, left_out = find_scenes(original, ["bedroom"], objects=objects, limit=9)
        out = f"images/{IMAGE}" not in [path for _, path in names(original, scenes)]
        assert len(scenes) == 3 - out
        assert skipped == {"bedroom": {"contains one of the objects": 1} if out else {}}
        assert left_out == ({f"images/{IMAGE}": f"contains {name}"} if out else {})
        matches += [name] * out
    assert matches == held


def test_annotations_of_validation_images_are_flat(original: Path) -> None:
    name_objects(original)
    annotate(original, "val/00000002.jpg", 2, 1, 0)
    _, _, left_out = find_scenes(original, ["bedroom", "track"], objects=["truck", "toilet"], limit=9)
    assert left_out == {"images/val/00000002.jpg": "contains truck, toilet"}
    (original / "train.txt").unlink()
    message = "no usable image of scene 'bedroom'; found: contains one of the objects 1"
    with pytest.raises(ValueError, match=message):
        find_scenes(original, ["bedroom"], objects=["truck"], limit=9)


LAUGHS = "<!DOCTYPE x [<!ENTITY a 'aa'>]><filename>&a;</filename>"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text[: text.index("</polygon>")], "line 28: mismatched tag"),
        (lambda text: LAUGHS + text, "line 1: not well-formed"),
        (lambda text: "", "found 'no element'"),
        (lambda text: f"<annotation>{text}</annotation>", "found 'annotation'"),
        (lambda text: text + " " * (1 << 20), "of at most 1048576"),
        (lambda text: text.replace("<class>1<", "<class>9<"), "class of objects 2 is '9'"),
        (lambda text: text.replace("<class>1</class>", "<name>toilet</name>"), "class of objects 2 is ''"),
    ],
)
def test_damaged_annotations(original: Path, change: Callable[[str], str], expected: str) -> None:
    name_objects(original)
    file = annotate(original, IMAGE, 2, 1)
    file.write_text(change(file.read_text()))
    with pytest.raises(ValueError, match=rf"^{re.escape(str(file))}: [^\n]*{re.escape(expected)}[^\n]*$"):
        find_scenes(original, ["bedroom"], objects=["truck"], limit=9)


@pytest.mark.parametrize("line", ["truck", "165 truck", "truck 1"])
def test_a_damaged_list_of_objects(original: Path, line: str) -> None:
    name_objects(original)
    annotate(original, IMAGE, 2)
    with (original / "object_categories.txt").open("a") as file:
        file.write(f"{line}\n")
    message = rf"object_categories\.txt: line {len(OBJECTS) + 1} is '{line}', expected a name"
    with pytest.raises(ValueError, match=message):
        find_scenes(original, ["bedroom"], objects=["truck"], limit=9)


def test_annotations_without_the_list_of_objects(original: Path) -> None:
    annotate(original, IMAGE, 2)
    with pytest.raises(ValueError, match=r"object_categories\.txt: no such file"):
        find_scenes(original, ["bedroom"], objects=["truck"], limit=9)
    assert len(find_scenes(original, ["bedroom"], limit=9)[0]) == 3


def test_an_image_that_lies_in_two_places_is_one_scene(original: Path) -> None:
    images = original / "images"
    (images / "val/00000001.jpg").write_bytes((images / IMAGE).read_bytes())  # of another category
    (images / "val/00000002.jpg").write_bytes((images / "train/b/bedroom/00000001.jpg").read_bytes())
    scenes, skipped, left_out = find_scenes(original, ["bedroom", "track"], limit=2)
    assert names(original, scenes) == [
        ("bedroom", "images/train/b/bedroom/00000001.jpg"),
        ("bedroom", "images/train/b/bedroom/00000002.jpg"),
        ("track", "images/train/t/track/outdoor/00000001.jpg"),
    ]
    assert skipped == {"bedroom": {"beyond the limit": 1}, "track": {"same image as another": 1}}
    assert left_out == {"images/val/00000001.jpg": f"same image as images/{IMAGE}"}


def test_category_names(original: Path) -> None:
    with pytest.raises(ValueError, match="unknown scene 'bedrom'"):
        find_scenes(original, ["bedrom"], limit=9)
    (original / "categories.txt").write_text("0 church/indoor\n1 church/outdoor\n")
    with pytest.raises(ValueError, match="scene 'church' is ambiguous: church/indoor, church/outdoor"):
        find_scenes(original, ["church"], limit=9)


@pytest.mark.parametrize(
    ("file", "line", "expected"),
    [
        ("categories.txt", "bedroom", "a path and a number"),
        ("train.txt", "train/b/bedroom/1.jpg", "an image's path and its category"),
        ("train.txt", "train/b/bedroom/1.jpg 7", "an image's path and its category"),
        ("val.txt", "../secret.jpg 0", "an image's path and its category"),
    ],
)
def test_broken_lists(original: Path, file: str, line: str, expected: str) -> None:
    with (original / file).open("a") as text:
        text.write(line + "\n")
    number = len((original / file).read_text().splitlines())
    message = f"{original / file}: line {number} is {line!r}, expected {expected}"
    with pytest.raises(ValueError, match=re.escape(message)):
        find_scenes(original, ["bedroom"], limit=9)


def test_files_that_are_missing(original: Path) -> None:
    (original / "images" / "val" / "00000002.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"val/00000002\.jpg: no such image file"):
        find_scenes(original, ["bedroom"], limit=9)
    with pytest.raises(FileNotFoundError, match="nowhere: no such folder of scenes"):
        find_scenes(original / "nowhere", ["bedroom"], limit=9)
    (original / "train.txt").unlink()
    (original / "val.txt").unlink()
    with pytest.raises(ValueError, match=r"found categories\.txt"):
        find_scenes(original, ["bedroom"], limit=9)


def test_read_scene_takes_the_centered_square(tmp_path: Path) -> None:
    image = np.zeros((10, 30, 3), np.uint8)
    image[:, 10:20] = [200, 100, 50]
    Image.fromarray(image).save(tmp_path / "x.png")
    scene = read_scene(Scene("bedroom", tmp_path / "x.png"), 5)
    assert scene.shape == (3, 5, 5)
    assert scene.flags.c_contiguous
    assert (scene == np.array([200, 100, 50])[:, None, None]).all()


def test_read_scene_is_antialiased(tmp_path: Path) -> None:
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    Image.fromarray(stripes).save(tmp_path / "x.png")
    inner = read_scene(Scene("bedroom", tmp_path / "x.png"), 16)[:, 1:-1, 1:-1].astype(int)
    assert abs(inner - 128).max() <= 8

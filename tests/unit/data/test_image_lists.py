import json
import re
from pathlib import Path
from typing import Any

import pytest

from saliency_assay.data.image_lists import Box, ListedImage, columns_of, is_list, read_boxes, read_images
from saliency_assay.registry.records import short_repr


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def fault(path: Path, read: Any) -> str:
    with pytest.raises(ValueError, match=re.escape(str(path))) as error:
        read(path)
    message = str(error.value)
    assert message.splitlines() == [message]
    return message.replace(str(path), "FILE")


def test_images_with_any_order_of_columns(tmp_path: Path) -> None:
    text = '\ufefflabel,image,split,mask\r\ncat,a.jpg,train,\r\n\r\n"dog, big",./b/c.png,test,masks/c.png\r\n'
    file = written(tmp_path / "list.CSV", text)
    assert columns_of(file) == ["label", "image", "split", "mask"]
    assert read_images(file) == [
        ListedImage("a.jpg", "cat", "", "train", ""),
        ListedImage("b/c.png", "dog, big", "masks/c.png", "test", ""),
    ]
    assert is_list(file)
    assert not is_list(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: found columns '', expected image, label and optionally mask, split"),
        ("image,class\n", "line 1: found columns 'image, class'"),
        ("image,label,label\n", "line 1: found columns 'image, label, label'"),
        ("image,label\n", "found no image, expected one in each line after the first"),
        ("image,label\na.jpg\n", "line 2: found 1 values, expected 2 (image, label)"),
        ("image,label\na.jpg,\n", "line 2: found label '', expected the name of a class"),
        (
            "image,label\na.jpg,x\na.jpg,y\n./a.jpg,x\n",
            "line 4: found 'a.jpg' with label 'x' again, expected each image once, or once with each of its labels",
        ),
        ("image,label,group\na.jpg,x,\n", "line 2: found group '', expected the name of a group"),
        (
            "image,label,group\na.jpg,x,p\na.jpg,y,q\n",
            "line 3: found group 'q' of 'a.jpg', expected 'p' as before",
        ),
        (
            "image,label,split\na.jpg,x,train\na.jpg,y,test\n",
            "line 3: found split 'test' of 'a.jpg', expected 'train' as before",
        ),
        (
            "image,label,split,group\na.jpg,x,train,p\nb.jpg,y,test,p\n",
            "line 3: found split 'test' of 'p', expected 'train' as before",
        ),
        ("image,label,split\na.jpg,x,val\n", "line 2: found split 'val'; valid: train, test"),
        *(
            (f"image,label\nb.jpg,x\n{name},x\n", f"line 3: found image {short_repr(name)}")
            for name in ("/a.jpg", "a\x1b.jpg", "b/../../a.jpg", "", "a" * 1001)
        ),
        ("image,label,mask\na.jpg,x,../m.png\n", "line 2: found mask '../m.png'"),
    ],
)
def test_faults_of_a_list_of_images(tmp_path: Path, content: str, message: str) -> None:
    assert fault(written(tmp_path / "list.csv", content), read_images).startswith(f"FILE: {message}")


def test_a_list_that_is_not_text_is_refused(tmp_path: Path) -> None:
    message = fault(written(tmp_path / "list.csv", b"image,label\n\xff,cat\n"), read_images)
    assert re.fullmatch("FILE: line .*expected CSV in UTF-8", message)


ROWS = [("a.png", 1, 2.5, 3, 4), ("b/c.png", 0, 0, 1, 1), ("a.png", 5, 6, 7, 8)]
KEYS = ("image", "x", "y", "width", "height")


def test_boxes_of_both_formats(tmp_path: Path) -> None:
    table = written(
        tmp_path / "boxes.csv", "\n".join([",".join(KEYS), *(",".join(map(str, row)) for row in ROWS)])
    )
    entries = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
    for file, unit, first in (
        (table, "line", 2),
        (written(tmp_path / "boxes.json", json.dumps(entries)), "entry", 1),
    ):
        places = [f"{file}: {unit} {number}" for number in range(first, first + 3)]
        assert read_boxes(file) == {
            "a.png": [Box(places[0], 1, 2.5, 3, 4), Box(places[2], 5, 6, 7, 8)],
            "b/c.png": [Box(places[1], 0, 0, 1, 1)],
        }


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["a.png", 1, 1, 0, 2], "found a box of 0 × 2 pixels, expected above 0"),
        (["a.png", "x", 1, 1, 2], "found x 'x', expected a number of pixels"),
        (["a.png", 1, "nan", 1, 2], "found y 'nan', expected a number of pixels"),
        (["/a.png", 1, 1, 1, 2], "found image '/a.png'"),
    ],
)
def test_faults_of_boxes(tmp_path: Path, row: list[Any], message: str) -> None:
    table = written(tmp_path / "boxes.csv", f"{','.join(KEYS)}\n{','.join(map(str, row))}\n")
    assert fault(table, read_boxes).startswith(f"FILE: line 2: {message}")
    entries = written(tmp_path / "boxes.json", json.dumps([dict(zip(KEYS, row, strict=True))]))
    assert fault(entries, read_boxes).startswith(f"FILE: entry 1: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "not JSON ("),
        ("{}", "found {}, expected a list of mappings with image, x, y, width, height"),
        ("[3]", "entry 1: found 3, expected a mapping with image, x, y, width, height"),
        ('[{"image": "a", "x": true, "y": 1, "width": 1, "height": 1}]', "entry 1: found x true"),
    ],
)
def test_faults_of_json(tmp_path: Path, content: str, message: str) -> None:
    assert fault(written(tmp_path / "boxes.json", content), read_boxes).startswith(f"FILE: {message}")

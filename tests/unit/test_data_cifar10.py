import logging
import os
import pickle
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from publishers import CIFAR10, CIFAR10_NAMES, cifar10_batch, cifar10_meta, cifar10_records

from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.splits import TEST, TRAIN

BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
COUNT = 7
VERSIONS = ("python2", "python3", "binary")


def content(batch: str, count: int = COUNT) -> tuple[np.ndarray, list[int]]:
    """Rows ``[count, 3072]`` and labels of a batch."""
    generator = np.random.default_rng(BATCHES.index(batch))
    rows = generator.integers(0, 256, (count, 3072), dtype=np.uint8)
    return rows, generator.choice([0, 4, 9], count).tolist()


def python3(rows: object, labels: object) -> bytes:
    """As Python 3 and the numpy that is installed write a batch for Python 2 to read."""
    names = [f"{number}.png".encode() for number in range(3)]
    batch = {b"batch_label": b"training batch 1 of 5", b"labels": labels, b"data": rows, b"filenames": names}
    return pickle.dumps(batch, protocol=2)


WRITERS = {"python2": cifar10_batch, "python3": python3, "binary": cifar10_records}


def meta(names: tuple[str, ...] = CIFAR10, **changes: Any) -> bytes:
    described = {
        b"num_cases_per_batch": COUNT,
        b"label_names": [name.encode() for name in names],
        b"num_vis": 3072,
    }
    return pickle.dumps({**described, **{key.encode(): value for key, value in changes.items()}}, protocol=2)


def original(folder: Path, version: str, changes: dict[str, bytes] | None = None, count: int = COUNT) -> Path:
    """The files of a version; ``changes`` are bytes that stand for one, by its name."""
    suffix = ".bin" if version == "binary" else ""
    files = {f"{batch}{suffix}": WRITERS[version](*content(batch, count)) for batch in BATCHES}
    if version == "binary":
        files["batches.meta.txt"] = CIFAR10_NAMES
    else:
        files["batches.meta"] = cifar10_meta(count)
    folder.mkdir(exist_ok=True, parents=True)
    for name, written in {**files, **(changes or {})}.items():
        (folder / name).write_bytes(written)
    return folder


def built(
    path: Path, seed: int = 0, size: int = 32, images_per_class: int = 0, block: int = 3
) -> dict[str, Any]:
    classes, parts = cifar10(
        path=str(path),
        size=size,
        images_per_class=images_per_class,
        generator=np.random.default_rng(seed),
        block=block,
    )
    assert classes == {"class": CIFAR10}
    blocks = list(parts)
    assert max(len(part["image"]) for part in blocks) <= block
    return {key: np.concatenate([part[key] for part in blocks]) for key in blocks[0]}


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """All images, pixel by pixel as the data set's page describes a row, and their labels."""
    rows = np.concatenate([content(batch)[0] for batch in BATCHES])
    images = np.empty((len(rows), 3, 32, 32), dtype=np.uint8)
    for channel in range(3):
        for y in range(32):
            for x in range(32):
                images[:, channel, y, x] = rows[:, 1024 * channel + 32 * y + x]
    return images, np.concatenate([content(batch)[1] for batch in BATCHES])


def named(value: object) -> str:
    """What a case is called, instead of all bytes of a file."""
    return value[:50] if isinstance(value, str) else "file"


def fault(path: Path, kind: type[Exception] = ValueError) -> str:
    with pytest.raises(kind) as error:
        built(path)
    message = str(error.value)
    assert message.splitlines() == [message]
    return message.replace(str(path), "ROOT")


# --- what is read -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [3, 100])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_as_they_are(tmp_path: Path, version: str, block: int) -> None:
    found = built(original(tmp_path, version), block=block)
    images, labels = pictures()
    np.testing.assert_array_equal(found["image"], images)
    np.testing.assert_array_equal(found["label_class"], labels)
    assert found["split"].tolist() == [TRAIN] * 5 * COUNT + [TEST] * COUNT
    assert (found["image"].dtype, found["split"].dtype, found["label_class"].dtype) == (
        np.uint8,
        np.uint8,
        np.int64,
    )


@pytest.mark.parametrize(
    ("version", "folder"),
    [("python2", "cifar-10-batches-py"), ("binary", "cifar-10-batches-bin")],
)
def test_the_files_in_their_archives_folder(tmp_path: Path, version: str, folder: str) -> None:
    original(tmp_path / folder, version)
    np.testing.assert_array_equal(built(tmp_path)["image"], pictures()[0])


def test_the_python_version_comes_before_the_binary_one(tmp_path: Path) -> None:
    original(tmp_path, "binary", {f"{batch}.bin": b"" for batch in BATCHES})
    original(tmp_path / "cifar-10-batches-py", "python3")
    np.testing.assert_array_equal(built(tmp_path)["image"], pictures()[0])


@pytest.mark.parametrize("size", [8, 31, 70])
def test_another_size(tmp_path: Path, size: int) -> None:
    found = built(original(tmp_path, "binary"), size=size)
    expected = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0))).resize(
                (size, size), Image.Resampling.BILINEAR
            )
        )
        for image in pictures()[0]
    ]
    np.testing.assert_array_equal(found["image"], np.stack(expected).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_number_of_images_can_be_limited(tmp_path: Path, version: str) -> None:
    images, labels = pictures()
    found = built(original(tmp_path, version), images_per_class=2)
    halves = {TRAIN: labels[: 5 * COUNT], TEST: labels[5 * COUNT :]}
    for half, there in halves.items():
        counts = np.bincount(found["label_class"][found["split"] == half], minlength=10)
        np.testing.assert_array_equal(counts, np.minimum(np.bincount(there, minlength=10), 2))
        assert np.bincount(there).max() > 2
    # Every image is one of the source's with its label, each at most once, and they keep the source's order.
    places = [
        int(np.flatnonzero((images == image).all(axis=(1, 2, 3)) & (labels == label))[0])
        for image, label in zip(found["image"], found["label_class"], strict=True)
    ]
    assert places == sorted(set(places))
    assert [place >= 5 * COUNT for place in places] == (found["split"] == TEST).tolist()
    np.testing.assert_array_equal(built(tmp_path, images_per_class=2)["image"], found["image"])
    drawn = {built(tmp_path, images_per_class=1, seed=seed)["image"].tobytes() for seed in range(8)}
    assert len(drawn) > 4
    np.testing.assert_array_equal(built(tmp_path, images_per_class=100)["image"], images)


def test_what_the_log_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        built(original(tmp_path / "cifar-10-batches-py", "python2").parent)
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/cifar-10-batches-py: 35 images to train on, 7 to test"
    ]


@pytest.mark.parametrize(("version", "files"), [("python2", 2.3), ("binary", 1.3)])
def test_one_file_is_in_memory_at_a_time(tmp_path: Path, version: str, files: float) -> None:
    """A file's bytes and a block, and what the unpickler has read ahead."""
    count = 500
    original(tmp_path, version, count=count)
    tracemalloc.start()
    try:
        _, blocks = cifar10(
            path=str(tmp_path), size=32, images_per_class=0, generator=np.random.default_rng(0), block=16
        )
        seen = sum(len(block["image"]) for block in blocks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == 6 * count
    assert peak < files * count * 3072


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["python2", "binary"])
def test_a_file_that_is_missing(tmp_path: Path, version: str) -> None:
    original(tmp_path, version)
    for file in sorted(tmp_path.iterdir()):
        kept = file.read_bytes()
        file.unlink()
        assert fault(tmp_path, FileNotFoundError) == f"ROOT/{file.name}: no such file"
        file.write_bytes(kept)


def test_a_folder_without_the_files(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    wanted = "data_batch_1 or data_batch_1.bin, nor in cifar-10-batches-py or cifar-10-batches-bin"
    assert fault(tmp_path, FileNotFoundError) == f"ROOT: found no {wanted}"


ROWS, LABELS = content("data_batch_3")
RECORDS = cifar10_records(ROWS, LABELS)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (b"", "found 0 bytes, expected 3073 for each image, a label and 3072 pixels"),
        (RECORDS[:-1], "found 21510 bytes, expected 3073 for each image, a label and 3072 pixels"),
        (RECORDS + b"\x00", "found 21512 bytes, expected 3073 for each image, a label and 3072 pixels"),
        (RECORDS[3073:], "found 6 images, expected 7 as ROOT/data_batch_1.bin has"),
        (RECORDS + RECORDS[:3073], "found 8 images, expected 7 as ROOT/data_batch_1.bin has"),
        (cifar10_records(ROWS, [0, 9, 10, 11, 0, 0, 0]), "label 2 (from 0) is 10, expected 0 to 9"),
    ],
    ids=named,
)
def test_what_is_wrong_with_a_binary_file(tmp_path: Path, found: bytes, message: str) -> None:
    original(tmp_path, "binary", {"data_batch_3.bin": found})
    assert fault(tmp_path) == f"ROOT/data_batch_3.bin: {message}"


def test_a_first_binary_file_that_is_empty(tmp_path: Path) -> None:
    original(tmp_path, "binary", {"data_batch_1.bin": b""})
    assert fault(tmp_path).startswith("ROOT/data_batch_1.bin: found 0 bytes, expected 3073 for each image")


ARRAY = "data: expected an array in C order, as numpy pickles it"


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (python3(ROWS, LABELS) + b"\x00", "found 1 bytes after the pickle's end, expected none"),
        (pickle.dumps([1, 2], protocol=2), "found a list, expected a dictionary"),
        (pickle.dumps({b"labels": LABELS}, protocol=2), ARRAY),
        (python3(b"pixels", LABELS), ARRAY),
        (python3(np.asfortranarray(ROWS), LABELS), ARRAY),
        (
            python3(ROWS[:, 1:].copy(), LABELS),
            "data: found 7 × 3071 of type u1, expected N × 3072 of type u1",
        ),
        (
            python3(ROWS.reshape(7, 3, 1024), LABELS),
            "data: found 7 × 3 × 1024 of type u1, expected N × 3072 of type u1",
        ),
        (
            python3(ROWS.view(np.int8), LABELS),
            "data: found 7 × 3072 of type i1, expected N × 3072 of type u1",
        ),
        (
            cifar10_batch(ROWS, LABELS).replace(b"K\x01M\x07\x00", b"K\x01M\x08\x00"),
            "data: found 21504 bytes, expected 24576 for 8 × 3072 of type u1",
        ),
        (python3(ROWS, None), "labels: expected a list of int"),
        (python3(ROWS, [*LABELS[:6], True]), "labels: expected a list of int"),
        (python3(ROWS, LABELS[:6]), "found 6 labels, expected 7 as it has images"),
        (python3(ROWS[:6], LABELS[:6]), "found 6 images, expected 7 as ROOT/batches.meta has"),
        (python3(ROWS, [*LABELS[:6], 10]), "label 6 (from 0) is 10, expected 0 to 9"),
        (python3(ROWS, [0, -1, *LABELS[2:]]), "label 1 (from 0) is -1, expected 0 to 9"),
        (python3(ROWS, [*LABELS[:6], 2**70]), "label 6 (from 0) is 1180591620717411303424, expected 0 to 9"),
    ],
    ids=named,
)
def test_what_is_wrong_with_a_pickle(tmp_path: Path, found: bytes, message: str) -> None:
    original(tmp_path, "python3", {"data_batch_3": found})
    assert fault(tmp_path) == f"ROOT/data_batch_3: {message}"


@pytest.mark.parametrize("kept", [0, 1, 9, 100, 300, -1000, -3, -1])
def test_a_pickle_that_is_cut(tmp_path: Path, kept: int) -> None:
    whole = cifar10_batch(ROWS, LABELS)
    original(tmp_path, "python2", {"test_batch": whole[: kept % len(whole)]})
    reasons = "pickle exhausted.*|not enough data.*|no newline.*|expected \\d+ bytes .*, but only \\d+ remain"
    assert re.fullmatch(rf"ROOT/test_batch: truncated, or not a pickle \(({reasons})\)", fault(tmp_path))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (meta(num_cases_per_batch=0), "num_cases_per_batch: found 0, expected an integer of 1 or more"),
        (meta(num_cases_per_batch="7"), "num_cases_per_batch: found '7', expected an integer of 1 or more"),
        (meta(label_names=b"airplane"), "label_names: expected a list of str"),
        (meta(label_names=[b"airplane", 3]), "label_names: expected a list of str"),
        (meta(CIFAR10[:9]), "found 9 class names, 9 different, expected 10 different"),
        (meta((*CIFAR10[:9], "ship")), "found 10 class names, 9 different, expected 10 different"),
    ],
    ids=named,
)
def test_what_is_wrong_with_the_description(tmp_path: Path, found: bytes, message: str) -> None:
    original(tmp_path, "python3", {"batches.meta": found})
    assert fault(tmp_path) == f"ROOT/batches.meta: {message}"


def test_what_is_wrong_with_the_binary_versions_names(tmp_path: Path) -> None:
    original(tmp_path, "binary", {"batches.meta.txt": "\n".join((*CIFAR10, "frigate")).encode()})
    expected = "found 11 class names, 11 different, expected 10 different"
    assert fault(tmp_path) == f"ROOT/batches.meta.txt: {expected}"


# --- what a pickle may not do -------------------------------------------------------------------------------


class Call:
    """Pickles as a call of ``function``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("file", ["data_batch_1", "test_batch", "batches.meta"])
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_runs_a_command(tmp_path: Path, file: str, protocol: int) -> None:
    mark = tmp_path / "it ran"
    evil = pickle.dumps(Call(os.system, f"touch '{mark}'"), protocol=protocol)
    original(tmp_path, "python2", {file: evil})
    refused = f"refused to load '{os.system.__module__}.system', expected only what makes up a numpy array"
    assert fault(tmp_path) == f"ROOT/{file}: {refused}"
    assert not mark.exists()
    pickle.loads(evil)
    assert mark.exists()


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (b"(S'touch x'\nios\nsystem\n.", "os.system"),  # the opcode of old instances
        (b"cos\nsystem\n.", "os.system"),  # named and not called
        (b"\x80\x02c__builtin__\neval\nU\x011\x85R.", "__builtin__.eval"),
        (b"\x80\x02cnumpy\nload\n.", "numpy.load"),
        (b"\x80\x02cnumpy.core.multiarray\nscalar\n.", "numpy.core.multiarray.scalar"),
        (b"\x80\x02c_codecs\ndecode\n.", "_codecs.decode"),
        (b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__dict__\x93.", "numpy.ndarray.__dict__"),
        (b"\x80\x04\x8c\x03a\nb\x8c\x01c\x93.", r"a\nb.c"),
        (pickle.dumps(ROWS, protocol=5), "numpy._core.numeric._frombuffer"),
    ],
    ids=named,
)
def test_whatever_else_is_named(tmp_path: Path, found: bytes, name: str) -> None:
    original(tmp_path, "python2", {"data_batch_2": found})
    refused = f"refused to load '{name}', expected only what makes up a numpy array"
    assert fault(tmp_path) == f"ROOT/data_batch_2: {refused}"


def test_bytes_that_would_be_taken_for_pointers(tmp_path: Path) -> None:
    """numpy itself would make an array of objects of these bytes: the type's flags say that it has none."""
    array = cifar10_batch(ROWS, LABELS).replace(b"U\x02u1", b"U\x02O8")
    original(tmp_path, "python2", {"data_batch_2": array})
    expected = "data: found 7 × 3072 of type O8, expected N × 3072 of type u1"
    assert fault(tmp_path) == f"ROOT/data_batch_2: {expected}"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (
            python3(ROWS, LABELS).replace(b"X\x06\x00\x00\x00latin1", b"X\x06\x00\x00\x00utf_16", 1),
            "found bytes encoded as 'utf_16', expected latin1",
        ),
        (
            b"\x80\x02c_codecs\nencode\nN}X\x08\x00\x00\x00__call__K\x01s\x86b.",
            "'_Encode' object attribute '__call__' is read-only",
        ),
        (b"\x80\x02cnumpy\ndtype\n)\x81.", "NEWOBJ class argument must be a type, not _Piece"),
        (b"\x80\x02U\x01xQ.", "A load persistent id instruction was encountered"),
        (b"\x80\x02\x82\x01.", "unregistered extension code 1"),
    ],
    ids=["codec", "attribute", "instance", "persistent", "extension"],
)
def test_other_ways_to_call_or_to_change_something(tmp_path: Path, found: bytes, reason: str) -> None:
    original(tmp_path, "python3", {"data_batch_2": found})
    assert fault(tmp_path).startswith(f"ROOT/data_batch_2: truncated, or not a pickle ({reason}")
    np.testing.assert_array_equal(built(original(tmp_path, "python3"))["image"], pictures()[0])

"""CIFAR-10's original files, python or binary version, with every byte accounted for and nothing executed."""

import logging
import pickle
import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from saliency_assay.data.images import (
    Block,
    Pixels,
    blocks_of,
    check_class_names,
    draw_per_class,
    read_class_names,
)
from saliency_assay.data.splits import TEST, TRAIN, Ints

logger = logging.getLogger(__name__)

SIDE = 32
CLASS_COUNT = 10
PIXELS = 3 * SIDE * SIDE
_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_FOLDERS = {False: "cifar-10-batches-py", True: "cifar-10-batches-bin"}

# Python 2's numpy, numpy 1 and numpy 2 call the same things by these names.
_ARRAY_GLOBALS = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}
_ENCODE = ("_codecs", "encode")

# A file of CIFAR-10 has about ten.
MOST_TUPLES = 1000
NESTED = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "FROZENSET"}


def cifar10(
    *, path: str, size: int = 32, images_per_class: int = 0, generator: np.random.Generator, block: int = 512
) -> tuple[dict[str, tuple[str, ...]], Iterator[Block]]:
    """The images in ``path``: ``data_batch_1`` to ``_5``, ``test_batch`` and ``batches.meta``, or the binary version.

    The binary version has ``data_batch_1.bin`` and so on, and ``batches.meta.txt``; it is read where there is no file
    of the python one. Both may lie in the folder that their archive makes, below ``path``. Classes are in the data
    set's own order. Training images come first, in the files' order, and the split is the files'. No more than
    one file is in memory.

    Args:
        path: the folder.
        size: side of the images in pixels; other than 32, they are resized (``images.resize_squares``).
        images_per_class: at most so many of a class in each half are drawn; 0 for all.
        generator: draws them.
        block: images at a time, fewer at the end of each file.

    Returns:
        The classes of label ``class``, and blocks of ``image`` uint8 ``[n, 3, size, size]``, ``split`` uint8 and
        ``label_class`` int64 ``[n]``.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: a file that is truncated or too long, a pickle that holds anything else than the arrays, texts
            and numbers of a batch (none of it is run), a label above 9, files with different numbers of images,
            not ten different class names.
    """
    root, binary = _version(Path(path))
    files = _files(root, binary)
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file")
    classes, count, source = _described_binary(root) if binary else _described(root)
    if binary:
        _check_sizes(files, count, source)
    labels = np.stack([_labels(file, count, source) for file in files])
    drawn = [
        draw_per_class(part.reshape(-1), images_per_class, generator) for part in (labels[:-1], labels[-1:])
    ]
    logger.info("%s: %d images to train on, %d to test", root, *map(len, drawn))
    rows = np.concatenate([drawn[0], drawn[1] + labels[:-1].size])
    blocks = (
        found
        for number, (file, split) in enumerate(zip(files, [TRAIN] * (len(files) - 1) + [TEST], strict=True))
        for found in _blocks(file, rows[rows // count == number] % count, split, size, block)
    )
    return {"class": classes}, blocks


def _files(root: Path, binary: bool) -> list[Path]:
    return [root / (f"{name}.bin" if binary else name) for name in _BATCHES]


def _version(path: Path) -> tuple[Path, bool]:
    """The folder that the files are in, and whether they are the binary version."""
    for binary, folder in _FOLDERS.items():
        for root in (path, path / folder):
            if any(file.is_file() for file in _files(root, binary)):
                return root, binary
    wanted = f"{_BATCHES[0]} or {_BATCHES[0]}.bin, nor in {' or '.join(_FOLDERS.values())}"
    raise FileNotFoundError(f"{path}: found no {wanted}")


def _blocks(file: Path, rows: Ints, split: int, size: int, block: int) -> Iterator[Block]:
    """The ``rows`` of one file, which is read when the first is asked for and forgotten after the last."""
    if len(rows):
        images, labels = _batch(file)
        yield from blocks_of(images, labels, rows, split=split, size=size, block=block)


def _check_sizes(files: list[Path], count: int, source: Path) -> None:
    """That all files of the binary version are as long as the first, before any is read."""
    for file in files:
        if (found := _records_in(file)) != count:
            raise ValueError(f"{file}: found {found} images, expected {count} as {source} has")


def _labels(file: Path, count: int, source: Path) -> Ints:
    labels = _batch(file)[1]
    if len(labels) != count:
        raise ValueError(f"{file}: found {len(labels)} images, expected {count} as {source} has")
    return labels


def _batch(file: Path) -> tuple[Pixels, Ints]:
    """Images ``[n, 3, 32, 32]`` and labels ``[n]`` of one file, of either version."""
    pixels, labels = _binary_batch(file) if file.suffix == ".bin" else _python_batch(file)
    if len(labels) != len(pixels):
        raise ValueError(f"{file}: found {len(labels)} labels, expected {len(pixels)} as it has images")
    for index, label in enumerate(labels):
        if not 0 <= label < CLASS_COUNT:
            raise ValueError(f"{file}: label {index} (from 0) is {label}, expected 0 to {CLASS_COUNT - 1}")
    return pixels.reshape(-1, 3, SIDE, SIDE), np.array(labels, dtype=np.int64)


# --- the binary version -------------------------------------------------------------------------------------


def _described_binary(root: Path) -> tuple[tuple[str, ...], int, Path]:
    """The classes, the number of images in each file, and the file that says so: the first, as no other does."""
    first = _files(root, True)[0]
    classes = read_class_names(root / "batches.meta.txt", CLASS_COUNT)
    return classes, first.stat().st_size // (1 + PIXELS), first


def _records_in(file: Path) -> int:
    """Images of a file of the binary version, by its length; at least one, and nothing beside them."""
    found, rest = divmod(size := file.stat().st_size, 1 + PIXELS)
    if not size or rest:
        raise ValueError(
            f"{file}: found {size} bytes, expected {1 + PIXELS} for each image, a label and {PIXELS} pixels"
        )
    return found


def _binary_batch(file: Path) -> tuple[Pixels, list[int]]:
    """Pixels ``[n, 3072]`` and labels: records of a byte's label and the pixels, channel by channel, row by row."""
    records = np.fromfile(file, dtype=np.uint8, count=_records_in(file) * (1 + PIXELS)).reshape(
        -1, 1 + PIXELS
    )
    return records[:, 1:], records[:, 0].tolist()


# --- the python version -------------------------------------------------------------------------------------


def _described(root: Path) -> tuple[tuple[str, ...], int, Path]:
    """The classes, the number of images in each file, and the file that says so."""
    file = root / "batches.meta"
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file")
    content = _unpickled(file)
    names, count = _list(file, content, "label_names", str), content.get("num_cases_per_batch")
    if type(count) is not int or count < 1:
        raise ValueError(f"{file}: num_cases_per_batch: found {count!r}, expected an integer of 1 or more")
    return check_class_names(file, names, CLASS_COUNT), count, file


def _python_batch(file: Path) -> tuple[Pixels, list[int]]:
    """Pixels ``[n, 3072]`` and labels: channel by channel, row by row."""
    content = _unpickled(file)
    return _pixels(file, content.get("data")), _list(file, content, "labels", int)


def _list(file: Path, content: dict[object, object], key: str, kind: type[Any]) -> list[Any]:
    found = content.get(key)
    entries = [_text(entry) for entry in found] if isinstance(found, list) else [None]
    if any(type(entry) is not kind for entry in entries):
        raise ValueError(f"{file}: {key}: expected a list of {kind.__name__}")
    return entries


def _pixels(file: Path, value: object) -> Pixels:
    """Pixels ``[n, 3072]`` of the array that ``value`` describes."""
    match value:
        case _Piece(
            name="_reconstruct",
            state=(_, tuple(shape), _Piece(name="dtype", arguments=(kind, *_)), False, bytes(content)),
        ):
            pass
        case _:
            raise ValueError(f"{file}: data: expected an array in C order, as numpy pickles it")
    found = f"{' × '.join(map(str, shape))} of type {_text(kind)}"
    if shape[1:] != (PIXELS,) or _text(kind) != "u1":
        raise ValueError(f"{file}: data: found {found}, expected N × {PIXELS} of type u1")
    if len(content) != shape[0] * PIXELS:
        raise ValueError(
            f"{file}: data: found {len(content)} bytes, expected {shape[0] * PIXELS} for {found}"
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(-1, PIXELS)


def _unpickled(file: Path) -> dict[object, object]:
    """The dictionary in ``file``, its keys as text."""
    with file.open("rb") as stream:
        try:
            _check_opcodes(stream, file)
            stream.seek(0)
            content = _Unpickler(stream, file).load()
        except _RefusedError:
            raise
        except Exception as error:  # a damaged pickle raises whatever it likes
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"{file}: truncated, or not a pickle ({reason})") from error
        surplus = file.stat().st_size - stream.tell()
    if surplus:
        raise ValueError(f"{file}: found {surplus} bytes after the pickle's end, expected none")
    if not isinstance(content, dict):
        raise ValueError(f"{file}: found a {type(content).__name__}, expected a dictionary")
    return {_text(key): entry for key, entry in content.items()}


def _text(value: object) -> object:
    """Python 2's texts are bytes here."""
    return value.decode("latin1") if isinstance(value, bytes) else value


class _RefusedError(ValueError):
    """A pickle asks for something that no array needs."""


def _check_opcodes(stream: BinaryIO, file: Path) -> None:
    """That nothing in the pickle makes the unpickler take memory that the file does not fill, or nest without end.

    It makes room for as many notes as the greatest number of one says, and for a text of whatever length is declared;
    and to look up a key it hashes tuples within tuples, for as deep as they are, until the stack is full.
    """
    size, tuples = file.stat().st_size, 0
    for count, (operation, argument, _) in enumerate(
        pickletools.genops(cast(BinaryIO, _Whole(stream, size)))
    ):
        tuples += operation.name in NESTED
        noted = operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and (argument or 0) > count
        if noted or tuples > MOST_TUPLES or (operation.name == "FRAME" and (argument or 0) > size):
            raise _RefusedError(
                f"{file}: refused the opcode {operation.name} of its pickle, no array needs it so"
            )


class _Whole:
    """A stream that is not asked for more than there is: some readers make room for it first."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream, self.size, self.readline = stream, size, stream.readline
        self.tell = stream.tell

    def read(self, count: int) -> bytes:
        """As ``BinaryIO.read``."""
        return self.stream.read(min(count, self.size))


class _Unpickler(pickle.Unpickler):
    """Reads containers, numbers and texts; of all that a pickle may call, only what describes an array."""

    def __init__(self, stream: BinaryIO, file: Path) -> None:
        super().__init__(stream, encoding="bytes")
        self.file = file

    def find_class(self, module: str, name: str) -> object:
        """What stands for a global; every opcode that calls something asks here first."""
        if (module, name) in _ARRAY_GLOBALS:
            return _Piece(name)
        if (module, name) == _ENCODE:
            return _Encode()
        found = repr(f"{module}.{name}")
        raise _RefusedError(
            f"{self.file}: refused to load {found}, expected only what makes up a numpy array"
        )


class _Piece:
    """One of numpy's objects as a pickle describes it; nothing of numpy is called.

    ``arguments`` are what it is called with, ``state`` what is put into it afterwards. numpy's own would believe
    type flags that a pickle may forge, and take bytes for pointers.
    """

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: str, arguments: tuple[object, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.state: object = None

    def __call__(self, *arguments: object) -> "_Piece":
        return _Piece(self.name, arguments)

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Encode:
    """Python 3 writes bytes, for Python 2 to read, as a call that encodes them from a text of ``latin1``."""

    __slots__ = ()

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise ValueError(f"found bytes encoded as {encoding!r}, expected latin1")
        return text.encode("latin1")

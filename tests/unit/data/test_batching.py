"""Batches from a tensor and batches that are read ahead: the same ones, and no thread left behind."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from saliency_assay.data import batching
from saliency_assay.data.batching import batches, resident
from saliency_assay.storage import zarr_store

CPU = torch.device("cpu")
COUNT = 23
SHAPE = (COUNT, 3, 4, 5)
IMAGES = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
ORDER = torch.from_numpy(np.random.default_rng(1).permutation(COUNT)[:19])


class View:
    """Images that exist only when they are indexed; records each index and the thread that used it."""

    dtype = np.uint8

    def __init__(self, *, tensors: bool, fail_at: int | None = None) -> None:
        self.shape = SHAPE
        self.tensors = tensors
        self.fail_at = fail_at
        self.indices: list[Any] = []
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: Any) -> np.ndarray | Tensor:
        self.threads.add(threading.current_thread().name)
        if len(self.indices) == self.fail_at:
            raise OSError("the disk is on fire")
        self.indices.append(index)
        images = IMAGES[index]
        return torch.from_numpy(images) if self.tensors else images


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("feed")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert readers() == []


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[zarr_store.StoredArray]:
    monkeypatch.setattr(zarr_store, "CHUNK_BYTES", 3 * 3 * 4 * 5)
    zarr_store.write(tmp_path / "data.zarr.zip", [{"image": IMAGES}], kind="data", attributes={})
    with zarr_store.open_store(tmp_path / "data.zarr.zip", kind="data") as gathered:
        yield gathered["image"]


@pytest.mark.parametrize(
    ("order", "size"), [(None, 4), (ORDER, 1), (ORDER, 4), (ORDER, COUNT), (ORDER[:1], 100), (ORDER[:0], 4)]
)
def test_batches_are_the_same_wherever_they_come_from(
    stored: zarr_store.StoredArray, order: Tensor | None, size: int
) -> None:
    ordered = IMAGES if order is None else IMAGES[order.numpy()]
    expected = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    sources = [torch.from_numpy(IMAGES), IMAGES, stored, View(tensors=True), View(tensors=False)]
    runs = [list(batches(source, order, size, CPU)) for source in sources]
    if order is not None and len(order):
        runs.append(list(batches(stored.at(order.numpy()), None, size, CPU)))
    for run in runs:
        for batch, plain in zip(run, expected, strict=True):
            assert batch.dtype == torch.uint8
            np.testing.assert_array_equal(batch.numpy(), plain)


def test_a_thread_reads_two_batches_ahead_and_no_more() -> None:
    view = View(tensors=False)
    with closing(batches(view, ORDER, 2, CPU)) as stream:
        for taken in range(1, 6):
            next(stream)
            expected = min(taken + batching.AHEAD, 10)
            deadline = time.monotonic() + 5
            while len(view.indices) < expected and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(0.02)
            assert len(view.indices) == expected
            assert len(readers()) == 1
    assert threading.current_thread().name not in view.threads
    assert len(view.indices) < 10


def test_a_failure_to_read_comes_out_where_the_batch_would() -> None:
    stream = batches(View(tensors=False, fail_at=4), ORDER, 2, CPU)
    assert [len(next(stream)) for _ in range(4)] == [2] * 4
    with pytest.raises(OSError, match="on fire"):
        next(stream)


def test_a_failure_of_the_caller_ends_the_thread() -> None:
    def diverge() -> None:
        with closing(batches(View(tensors=False), ORDER, 2, CPU)) as stream:
            next(stream)
            assert len(readers()) == 1
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        diverge()


@pytest.mark.parametrize("images", [torch.zeros(SHAPE).double(), np.zeros(SHAPE, np.float64)])
def test_images_are_bytes_or_floats(images: Tensor | np.ndarray) -> None:
    expected = r"^images of torch\.float64: expected torch\.uint8 or torch\.float32$"
    with pytest.raises(ValueError, match=expected):
        list(batches(images, None, 4, CPU))


@pytest.mark.parametrize("stored", [False, True])
def test_floats_are_gathered_and_read_as_they_are(tmp_path: Path, stored: bool) -> None:
    pixels: Any = (IMAGES / 255).astype(np.float32)
    expected = pixels.copy()
    with ExitStack() as stack:
        if stored:
            zarr_store.write(tmp_path / "s.zarr.zip", [{"image": pixels}], kind="data", attributes={})
            pixels = stack.enter_context(zarr_store.open_store(tmp_path / "s.zarr.zip", kind="data"))["image"]
        gathered = resident(pixels, CPU, expected.nbytes)
        assert isinstance(gathered, Tensor)
        np.testing.assert_array_equal(gathered.numpy(), expected)
        assert resident(pixels, CPU, expected.nbytes - 1) is pixels
        read = torch.cat(list(batches(pixels, ORDER, 4, CPU)))
        np.testing.assert_array_equal(read.numpy(), expected[ORDER.numpy()])


def test_images_that_fit_are_gathered(
    stored: zarr_store.StoredArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "BLOCK_BYTES", 4 * 60 + 7)
    view, size = View(tensors=True), IMAGES.nbytes
    for source in (view, stored, IMAGES):
        gathered = resident(source, CPU, size)
        assert isinstance(gathered, Tensor)
        assert gathered.dtype == torch.uint8
        np.testing.assert_array_equal(gathered.numpy(), IMAGES)
    assert [(part.start, part.stop) for part in view.indices] == [(k, k + 4) for k in range(0, 24, 4)]


def test_images_that_do_not_fit_stay_where_they_are(stored: zarr_store.StoredArray) -> None:
    view = View(tensors=True)
    assert resident(view, CPU, IMAGES.nbytes - 1) is view
    assert resident(stored, CPU, 0) is stored
    assert view.indices == []
    tensor = torch.from_numpy(IMAGES)
    assert resident(tensor, CPU, IMAGES.nbytes) is tensor


def test_a_read_only_array_is_copied() -> None:
    images = IMAGES.copy()
    images.flags.writeable = False
    gathered = next(batches(images, None, 4, CPU))
    gathered.zero_()
    np.testing.assert_array_equal(images, IMAGES)

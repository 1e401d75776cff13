"""Masks of a job that is interrupted anywhere: its next attempt goes on, and the final store is the same bytes."""

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import conv_classifier, cyclic_targets
from torch import Tensor, nn

from saliency_assay.methods.model_free import random
from saliency_assay.runtime import shards
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain import state as remask_state
from saliency_assay.studies.retrain.masks import remasked, targets_of
from saliency_assay.studies.retrain.state import TERMINATED, MaskState

IMAGES = torch.randint(0, 256, (11, 3, 12, 12), generator=torch.Generator().manual_seed(7), dtype=torch.uint8)
BATCHES = [2, 2, 1, 2, 2, 1, 1]
"""Eleven images in blocks of five and batches of two."""
SHAPE = {"kind": "transposition"}


class Noisy:
    """Maps of noise, batch by batch from one generator; ``sizes`` are those of the batches so far."""

    def __init__(self, at: Callable[[int], None] = lambda batch: None) -> None:
        self.sizes: list[int] = []
        self._at = at

    def __call__(self, model: nn.Module, images: Tensor, targets: Tensor, *, generator: Any) -> Tensor:
        self._at(len(self.sizes))
        self.sizes.append(len(images))
        return random(model, images, targets, generator=generator)


@pytest.fixture(autouse=True)
def _blocks_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK", 5)


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    """The store of a run that nothing interrupted."""
    return make(tmp_path / "whole.zarr.zip", Noisy(), None)


def blocks_of(method: Noisy, state: MaskState | None, target: str = "predicted") -> Any:
    classifier = conv_classifier(dtype=torch.float32)
    labels = cyclic_targets(len(IMAGES)).numpy()
    return remasked(
        method, {}, classifier, IMAGES, targets_of(classifier, IMAGES, labels, target, 2),
        seed=3, batch_size=2, finite=True, reduction="sum", count=7, masks=2, shape=SHAPE, keep_maps=True,
        state=state,
    )  # fmt: skip


def make(path: Path, method: Noisy, state: MaskState | None) -> bytes:
    zarr_store.write(path, blocks_of(method, state), kind="masks", attributes={})
    return path.read_bytes()


def state_in(folder: Path, fingerprint: str = "mine", seconds: float = 0) -> MaskState:
    return MaskState(folder / "state", fingerprint, seconds=seconds)


def interrupted(folder: Path, batches: int) -> None:
    """As a SIGKILL leaves it while the next batch is computed: ``batches`` batches are saved."""
    blocks = blocks_of(Noisy(), state_in(folder))
    for _ in range(batches + 1):
        next(blocks)
    blocks.close()
    assert saved(folder) == [f"{number}.pt" for number in range(batches)]


def saved(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "state").glob("*"))


@pytest.mark.parametrize("batches", [0, 2, 3, 6])
def test_after_a_kill_the_rest_is_made_and_the_store_is_the_same(
    batches: int, tmp_path: Path, whole: bytes
) -> None:
    """At the end of a block and within one; never without a batch that is left to do."""
    interrupted(tmp_path, batches)
    method, state = Noisy(), state_in(tmp_path)
    assert make(tmp_path / "masks.zarr.zip", method, state) == whole
    assert method.sizes == BATCHES[batches:]
    state.remove()
    assert not (tmp_path / "state").exists()


def test_sigterm_saves_after_the_batch_and_ends(tmp_path: Path, whole: bytes) -> None:
    """Although nothing was due to be saved for an hour."""
    method = Noisy(lambda batch: os.kill(os.getpid(), signal.SIGTERM) if batch == 3 else None)
    target, before = tmp_path / "masks.zarr.zip", signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as error, state_in(tmp_path, seconds=3600) as state:
        make(target, method, state)
    assert error.value.code == TERMINATED == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert method.sizes == BATCHES[:4]
    assert saved(tmp_path) == ["0.pt"]
    assert [path.name for path in tmp_path.glob("*masks*")] == []
    rest = Noisy()
    with state_in(tmp_path, seconds=3600) as state:
        assert make(target, rest, state) == whole
    assert rest.sizes == BATCHES[4:]


def test_sigterm_in_the_last_batch_leaves_a_whole_store(tmp_path: Path, whole: bytes) -> None:
    method = Noisy(lambda batch: os.kill(os.getpid(), signal.SIGTERM) if batch == 6 else None)
    with state_in(tmp_path, seconds=3600) as state:
        assert make(tmp_path / "masks.zarr.zip", method, state) == whole
    assert method.sizes == BATCHES


@pytest.mark.parametrize(
    ("seconds", "limit", "counts"), [(60, 10**9, [0, 0, 0, 1, 1, 1, 2]), (3600, 2000, [0, 0, 1, 1, 1, 2, 2])]
)
def test_batches_wait_to_be_saved_for_so_many_seconds_or_bytes(
    seconds: float, limit: int, counts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is 25 seconds further at each batch.

    A packed mask of 12 x 12 pixels is 18 bytes, its map 576, color and flag 7: four images are beyond 2,000.
    """
    method = Noisy()
    monkeypatch.setattr(remask_state.time, "monotonic", lambda: 25.0 * len(method.sizes))
    monkeypatch.setattr(remask_state, "BYTES", limit)
    blocks = blocks_of(method, state_in(tmp_path, seconds=seconds))
    assert [len(saved(tmp_path)) for _ in zip(BATCHES, blocks, strict=False)] == counts


def test_a_state_of_something_else_is_deleted(
    tmp_path: Path, whole: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    interrupted(tmp_path, 3)
    method = Noisy()
    assert make(tmp_path / "masks.zarr.zip", method, state_in(tmp_path, "other", seconds=3600)) == whole
    assert method.sizes == BATCHES
    assert saved(tmp_path) == []
    fault = f"{tmp_path}/state/0.pt: discarded, found fingerprint mine, expected other"
    assert fault in [record.getMessage() for record in caplog.records]


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def replaced(path: Path) -> None:
    """Another file of the same run, as no run leaves it."""
    path.write_bytes(path.with_name("0.pt").read_bytes())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncated, "discarded, not a state of masks"),
        (replaced, "discarded, begins with image 0, expected 2"),
        (Path.unlink, ""),
    ],
)
def test_the_run_goes_on_from_before_a_damaged_file(
    damage: Callable[[Path], None],
    message: str,
    tmp_path: Path,
    whole: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    interrupted(tmp_path, 4)
    damage(tmp_path / "state/1.pt")
    method = Noisy()
    with caplog.at_level(logging.INFO):
        assert make(tmp_path / "masks.zarr.zip", method, state_in(tmp_path, seconds=3600)) == whole
    assert method.sizes == BATCHES[1:]
    assert saved(tmp_path) == ["0.pt"]
    lines = [record.getMessage() for record in caplog.records]
    assert f"{tmp_path}/state: resuming after 2 images" in lines
    assert not message or any(line.startswith(f"{tmp_path}/state/1.pt: {message}") for line in lines)


def test_unranked_maps_are_counted_over_all_attempts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Flat(Noisy):
        def __call__(self, *inputs: Any, **more: Any) -> Tensor:
            return torch.zeros_like(super().__call__(*inputs, **more))

    blocks = blocks_of(Flat(), state_in(tmp_path))
    for _ in range(4):
        next(blocks)
    blocks.close()
    ranked = np.concatenate([block["ranked"] for block in blocks_of(Flat(), state_in(tmp_path))])
    assert ranked.tolist() == [False] * 11
    assert "11 of 11 maps are constant or not finite, so they do not rank pixels" in caplog.text

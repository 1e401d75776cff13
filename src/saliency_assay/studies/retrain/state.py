"""Saved state of a mask job, from which its next attempt resumes after an interruption."""

import logging
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.models.weights import read, write
from saliency_assay.runtime.sigterm import TERMINATED, HeldSigterm

log = logging.getLogger(__name__)

Block = dict[str, np.ndarray]
BYTES = 8 << 20
"""Maximum of unsaved bytes: a fast method could otherwise fill the memory within ``seconds``."""


class MaskState(HeldSigterm):
    """Files ``0.pt``, ``1.pt``, … in ``folder``, each of consecutive images; as a context manager it defers SIGTERM.

    After SIGTERM, the process ends with status 143 once the current block is computed and saved. After the last block,
    SIGTERM is ignored, because the job ends by itself. Files with another ``fingerprint`` are deleted.
    """

    def __init__(self, folder: Path, fingerprint: str, *, seconds: float) -> None:
        self.noise: Tensor | None = None
        """State of the method's generator after the resumed blocks; None if there are none."""
        self._folder = folder
        self._fingerprint = fingerprint
        self._seconds = seconds
        self._saved = time.monotonic()
        self._files = 0
        self._images = 0
        self._pending: list[Block] = []

    def resume(self) -> Iterator[Block]:
        """Yield the saved blocks in order, up to the first missing or invalid one; delete all files after it."""
        while content := self._read(self._path(self._files)):
            self._files += 1
            self._images += content["images"]
            self.noise = content["noise"]
            yield _unpack(content)
            self._end_if_terminated()
        for path in self._folder.glob("*"):
            if path not in map(self._path, range(self._files)):
                path.unlink()
        if self._images:
            log.info("%s: resuming after %d images", self._folder, self._images)

    def add(self, block: Block, noise: Tensor) -> None:
        """Add a new block and the state of the method's generator after it; save pending blocks when due.

        Raises:
            SystemExit: SIGTERM was received; everything is saved.
        """
        mask = block["mask"]
        # Packed here, so that pending masks use an eighth of the memory.
        packed = np.packbits(mask.reshape(len(mask), -1), axis=1)
        self._pending.append({**block, "mask": packed})
        size = sum(array.nbytes for pending in self._pending for array in pending.values())
        due = size >= BYTES or time.monotonic() - self._saved >= self._seconds
        if due or self.terminated:
            self._write(mask.shape[1:], noise)
        self._end_if_terminated()

    def remove(self) -> None:
        """Delete the folder, once the final store is written."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, shape: tuple[int, ...], noise: Tensor) -> None:
        arrays = {name: np.concatenate([block[name] for block in self._pending]) for name in self._pending[0]}
        images = len(arrays["mask"])
        content = {
            "fingerprint": self._fingerprint,
            "first": self._images,
            "images": images,
            "shape": list(shape),
            "noise": noise,
            "arrays": {name: torch.from_numpy(array) for name, array in arrays.items()},
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        write(self._path(self._files), content)
        self._files, self._images = self._files + 1, self._images + images
        self._pending, self._saved = [], time.monotonic()

    def _read(self, path: Path) -> Mapping[str, Any] | None:
        """Return the content of a file, None if it is missing or invalid."""
        if not path.exists():
            return None
        try:
            content: dict[str, Any] = read(path)
            fingerprint, first_image = content["fingerprint"], content["first"]
        except (ValueError, TypeError, KeyError) as error:
            log.warning("%s: discarded, not a state of masks (%s)", path, error)
            return None
        if fingerprint != self._fingerprint:
            log.warning(
                "%s: discarded, found fingerprint %s, expected %s", path, fingerprint, self._fingerprint
            )
            return None
        if first_image != self._images:
            log.warning("%s: discarded, begins with image %s, expected %d", path, first_image, self._images)
            return None
        return content

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.pt"

    def _end_if_terminated(self) -> None:
        if self.terminated:
            log.warning("SIGTERM after %d images: state saved", self._images)
            raise SystemExit(TERMINATED)


def _unpack(content: Mapping[str, Any]) -> Block:
    arrays: Block = {name: values.numpy() for name, values in content["arrays"].items()}
    shape = content["shape"]
    bits = np.unpackbits(arrays["mask"], axis=1, count=int(np.prod(shape))).view(np.bool_)
    return {**arrays, "mask": bits.reshape(-1, *shape)}

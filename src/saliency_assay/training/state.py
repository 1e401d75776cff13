"""State from which a killed training resumes, and handling of SIGTERM.

A state consists of weights, momentum, epoch and step, the sums of the current epoch, and the weights of the best epoch.
It contains no generator state, because all random values are functions of seed, epoch and step.
"""

import logging
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from saliency_assay.models.classifier import Classifier
from saliency_assay.models.weights import read, write
from saliency_assay.runtime.distributed import anyone, leading
from saliency_assay.runtime.sigterm import TERMINATED, HeldSigterm

logger = logging.getLogger(__name__)

Row = dict[str, float]


class NotFinite(ArithmeticError):
    """Error for a loss or weights that are not finite; the message names them."""


@dataclass
class Progress:
    """Position in a training: ``step`` steps of epoch ``epoch`` are done.

    ``loss`` and ``correct`` are sums over the images of that epoch, scalars on the training device, so that adding to
    them does not synchronize. ``rows`` is the learning curve of the finished epochs. If all steps of an epoch are done
    but its row is missing, the epoch is being evaluated. With early stopping, ``best`` is the state dict after the best
    epoch, on the CPU; otherwise it is empty.
    """

    loss: Tensor
    correct: Tensor
    epoch: int = 0
    step: int = 0
    rows: list[Row] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def start(cls, device: torch.device) -> Self:
        """Return the start of a training."""
        return cls(
            loss=torch.zeros((), dtype=torch.float64, device=device),
            correct=torch.zeros((), dtype=torch.int64, device=device),
        )

    def end_epoch(self, row: Row) -> None:
        """Add the epoch's row to the curve and move to the first step of the next epoch."""
        self.rows.append(row)
        self.epoch, self.step = self.epoch + 1, 0
        self.loss.zero_()
        self.correct.zero_()


class Checkpoint(HeldSigterm):
    """State file of one training, and context manager that defers SIGTERM until the state is written.

    The process then ends with status 143.
    """

    def __init__(
        self,
        path: Path,
        fingerprint: str,
        classifier: Classifier,
        optimizer: torch.optim.Optimizer,
        *,
        seconds: float,
    ) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.classifier = classifier
        self.optimizer = optimizer
        self.seconds = seconds
        self.saved = time.monotonic()

    def __exit__(self, *failure: object) -> None:
        """Restore the handler of SIGTERM; end the process if the signal arrived after the last ``keep``."""
        super().__exit__(*failure)
        if self.terminated and failure[0] is None:
            raise SystemExit(TERMINATED)

    def resume(self) -> Progress:
        """Restore classifier and optimizer from the state and return its progress, or the start if there is no state.

        A state that cannot be read or has another fingerprint is deleted, and a warning is logged.

        Raises:
            ValueError: an earlier attempt has diverged.
        """
        device = self.classifier.device
        state = self._read() if self.path.exists() else None
        # Barrier: the first process must not delete or replace the state before all have read it.
        anyone(False)
        if state and "diverged" in state:
            raise ValueError(f"{state['diverged']} (in an earlier attempt; to try again, delete {self.path})")
        if state is None:
            if leading():
                remove_state(self.path)
            return Progress.start(device)
        # States are read to the CPU; ``load_state_dict`` copies them to the device of the classifier.
        self.classifier.load_state_dict(state["classifier"])
        self.optimizer.load_state_dict(state["optimizer"])
        progress = Progress(**state["progress"])
        progress.loss, progress.correct = progress.loss.to(device), progress.correct.to(device)
        logger.info("%s: resuming after step %d of epoch %d", self.path, progress.step, progress.epoch + 1)
        return progress

    def keep(self, progress: Progress) -> None:
        """Write the state if the last one is ``seconds`` old or SIGTERM has arrived; after SIGTERM, end the process.

        Only the first of several processes writes. All end after the same step, whichever of them received the signal.

        Raises:
            NotFinite: the loss or weights are not finite, so that no state is written.
            SystemExit: SIGTERM has arrived (status 143).
        """
        # Agreed among the processes: a signal may arrive between the steps of different processes.
        terminated = anyone(self.terminated)
        if leading() and (terminated or time.monotonic() - self.saved >= self.seconds):
            self._write(progress)
        if terminated:
            anyone(False)  # barrier: all processes wait until the state is written
            logger.warning(
                "SIGTERM after step %d of epoch %d: state saved", progress.step, progress.epoch + 1
            )
            raise SystemExit(TERMINATED)

    def give_up(self, reason: str) -> None:
        """Replace the state by ``reason``, because a retry with the same settings would diverge again."""
        if leading():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, {"fingerprint": self.fingerprint, "diverged": reason})

    def _write(self, progress: Progress) -> None:
        """Write the state if loss and weights are finite."""
        check_finite(progress.loss.item(), self.classifier)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = {
            "fingerprint": self.fingerprint,
            "classifier": self.classifier.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": vars(progress),
        }
        write(self.path, state)
        self.saved = time.monotonic()

    def _read(self) -> dict[str, Any] | None:
        """Return the state if it can be read and has the same fingerprint, else log a warning and return None."""
        try:
            state: dict[str, Any] = read(self.path)
            state_fingerprint = state["fingerprint"]
        except (ValueError, TypeError, KeyError) as error:
            logger.warning("%s: discarded, not a training state (%s)", self.path, error)
        else:
            if state_fingerprint == self.fingerprint:
                return state
            logger.warning(
                "%s: discarded, found fingerprint %s, expected %s",
                self.path,
                state_fingerprint,
                self.fingerprint,
            )
        return None


def check_finite(loss: float, classifier: Classifier) -> None:
    """Check that the loss and all weights are finite; this synchronizes with the device.

    Raises:
        NotFinite: the loss or a weight is not finite.
    """
    if not math.isfinite(loss):
        raise NotFinite(f"loss {loss}")
    if not all(bool(parameter.isfinite().all()) for parameter in classifier.parameters()):
        raise NotFinite("weights that are not finite")


def remove_state(path: Path) -> None:
    """Delete the state if it exists; callers do this after the final weights are written."""
    path.unlink(missing_ok=True)

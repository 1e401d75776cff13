"""State from which a killed training resumes, and the signal that asks it to stop.

Randomness is drawn anew from (seed, epoch), so a state holds no generator: weights, momentum, the place
reached, the sums of the running epoch and the best epoch's weights are all there is.
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
    """The loss or a weight of the running epoch is not finite; ``str`` says which."""


@dataclass
class Progress:
    """``step`` steps of epoch ``epoch`` are done; ``loss`` and ``correct`` are sums over that epoch's images.

    An epoch all of whose steps are done and that has no row yet is being evaluated.
    Both sums are scalars on the training's device, so that adding to them never waits for it. ``rows`` is the
    curve of the epochs before. Under early stopping ``best`` is the state dict after the best of them, on the CPU;
    otherwise it is empty.
    """

    loss: Tensor
    correct: Tensor
    epoch: int = 0
    step: int = 0
    rows: list[Row] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def start(cls, device: torch.device) -> Self:
        """Nothing done yet."""
        return cls(
            loss=torch.zeros((), dtype=torch.float64, device=device),
            correct=torch.zeros((), dtype=torch.int64, device=device),
        )

    def end_epoch(self, row: Row) -> None:
        """Add the epoch's row to the curve and stand at the next epoch's first step."""
        self.rows.append(row)
        self.epoch, self.step = self.epoch + 1, 0
        self.loss.zero_()
        self.correct.zero_()


class Checkpoint(HeldSigterm):
    """The state at ``path`` of one training; as a context, it holds SIGTERM back until the state is written.

    SIGTERM then ends the process with status 143.
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
        """Give SIGTERM back; one that came after the last ``keep`` still ends the process."""
        super().__exit__(*failure)
        if self.terminated and failure[0] is None:
            raise SystemExit(TERMINATED)

    def resume(self) -> Progress:
        """Put classifier and optimiser where the state left them; the start if there is none.

        A state that cannot be read or has another fingerprint is deleted, with a line in the log.

        Raises:
            ValueError: an earlier attempt has diverged.
        """
        device = self.classifier.device
        state = self._read() if self.path.exists() else None
        anyone(False)  # until all processes have read it: the first may now delete or replace it
        if state and "diverged" in state:
            raise ValueError(
                f"{state['diverged']} (found in an earlier attempt; to repeat it, delete {self.path})"
            )
        if state is None:
            if leading():
                remove_state(self.path)
            return Progress.start(device)
        self.classifier.load_state_dict(state["classifier"])
        self.optimizer.load_state_dict(state["optimizer"])
        progress = Progress(**state["progress"])
        progress.loss, progress.correct = progress.loss.to(device), progress.correct.to(device)
        logger.info("%s: going on after step %d of epoch %d", self.path, progress.step, progress.epoch + 1)
        return progress

    def keep(self, progress: Progress) -> None:
        """Write the state if the last one is ``seconds`` old or SIGTERM has come; then end, in the second case.

        Of several processes the first one writes; all end after the same step, whichever was asked to.

        Raises:
            NotFinite: instead of writing a state that is of no use.
        """
        terminated = anyone(self.terminated)
        if leading() and (terminated or time.monotonic() - self.saved >= self.seconds):
            self._write(progress)
        if terminated:
            anyone(False)  # until the state is written
            logger.warning(
                "SIGTERM after step %d of epoch %d: state saved", progress.step, progress.epoch + 1
            )
            raise SystemExit(TERMINATED)

    def give_up(self, reason: str) -> None:
        """Put ``reason`` in place of the state: with the same settings a retry would only diverge again."""
        if leading():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write(self.path, {"fingerprint": self.fingerprint, "diverged": reason})

    def _write(self, progress: Progress) -> None:
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
        try:
            state: dict[str, Any] = read(self.path)
            found = state["fingerprint"]
        except (ValueError, TypeError, KeyError) as error:
            logger.warning("%s: discarded, not a training state (%s)", self.path, error)
        else:
            if found == self.fingerprint:
                return state
            logger.warning("%s: discarded, of fingerprint %s, now %s", self.path, found, self.fingerprint)
        return None


def check_finite(loss: float, classifier: Classifier) -> None:
    """Check the loss and all weights; only where the device is waited for anyway.

    Raises:
        NotFinite: one that is not.
    """
    if not math.isfinite(loss):
        raise NotFinite(f"loss {loss}")
    if not all(bool(parameter.isfinite().all()) for parameter in classifier.parameters()):
        raise NotFinite("weights that are not finite")


def remove_state(path: Path) -> None:
    """Delete the state, if there is one; for the caller, once the final weights are written."""
    path.unlink(missing_ok=True)

"""SIGTERM held back until the state of a job is saved."""

import signal
import threading
from types import FrameType
from typing import Any, Self

TERMINATED = 128 + signal.SIGTERM


class HeldSigterm:
    """As a context, notes SIGTERM as ``terminated`` instead of ending.

    Outside the main thread, where Python sets no handlers, signals do what they did before.
    """

    terminated = False
    _handler: Any = None

    def __enter__(self) -> Self:
        """Take over SIGTERM."""
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *failure: object) -> None:
        """Give SIGTERM back."""
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True

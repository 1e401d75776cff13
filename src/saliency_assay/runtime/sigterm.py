"""Deferral of SIGTERM until the state of a job is saved."""

import signal
import threading
from types import FrameType
from typing import Any, Self

TERMINATED = 128 + signal.SIGTERM


class HeldSigterm:
    """Context manager that sets ``terminated`` on SIGTERM instead of ending the process.

    It has no effect outside the main thread, where Python cannot set signal handlers.
    """

    terminated = False
    _handler: Any = None

    def __enter__(self) -> Self:
        """Install the handler for SIGTERM."""
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, self._set_terminated)
        return self

    def __exit__(self, *failure: object) -> None:
        """Restore the previous handler of SIGTERM."""
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def _set_terminated(self, number: int, frame: FrameType | None) -> None:
        self.terminated = True

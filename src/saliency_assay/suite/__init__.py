"""The reference suite: frozen tasks with the scores of published methods, which a new method can be compared with."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saliency_assay.suite.scores import LoadedTask

VERSION = "2026.12"
"""Version of tasks, methods, metrics and scores; a later version is another suite."""


def load_task(name: str, data: str | Path = "data") -> "LoadedTask":
    """Load the network and the images of a task.

    Args:
        name: a task, such as ``objects``; ``saliency-assay suite list`` prints all.
        data: folder of the downloads; the tasks ``objects``, ``scenes`` and ``transformer`` need none.

    Raises:
        ValueError: there is no such task.
        MissingData: images or weights are not there.
    """
    from saliency_assay.suite.scores import LoadedTask  # imports PyTorch
    from saliency_assay.suite.tasks import task_of

    return LoadedTask.load(task_of(name), Path(data))

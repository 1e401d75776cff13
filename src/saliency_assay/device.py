"""Where a job's tensors live, and how many threads it may use."""

import torch


def prepare(name: str, threads: int) -> torch.device:
    """The device called ``auto``, ``cpu`` or ``cuda``, with torch's CPU threads set to ``threads``.

    The number of threads is part of what makes CPU results repeat bit for bit.

    Raises:
        ValueError: ``cuda`` where there is no GPU.
    """
    torch.set_num_threads(threads)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device: found 'cuda', but no GPU is available here; valid: auto, cpu")
    return torch.device("cuda" if available and name != "cpu" else "cpu")

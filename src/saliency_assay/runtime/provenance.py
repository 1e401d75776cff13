"""Provenance of results: parameters as plain JSON, fingerprints, and seeds."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent.parent
PLAIN = (str, int, float, bool, type(None))


def plain(value: Any) -> Any:
    """Convert ``value`` to plain JSON: dicts with string keys, lists, strings, numbers, booleans, None.

    Snakemake does not track changes of parameters of other types, and gives no warning.

    Raises:
        TypeError: ``value`` contains an object of a type without a plain form.
    """
    if type(value) in PLAIN:  # fast path for most of the hundreds of thousands of values in a plan
        return value
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, Enum):
        return plain(value.value)
    # NumPy scalars come before the check for float: np.float64 is a subclass of float.
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    if isinstance(value, str):  # subclasses of str, such as Snakemake's files, without their attributes
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    raise TypeError(f"{value!r}: no plain JSON form for {type(value).__name__}")


def fingerprint(value: Any) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of ``value``, which does not depend on the order of keys."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(seed: int, *names: str) -> int:
    """Return a 63-bit seed for the stochastic step ``names`` (rule, wildcards, …) of a study with seed ``seed``."""
    return int(fingerprint([seed, *names])[:16], 16) >> 1


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

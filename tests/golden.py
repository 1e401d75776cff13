"""Digests of what the workflow computes, to show that a change of its code left all results as they were.

    python tests/golden.py record before.json
    python tests/golden.py record after.json
    python tests/golden.py compare before.json after.json

Runs three configurations, in folders below ``--work``: the demo, BAM on real images (that of
``config/bam_small.yaml`` with fewer images and smaller models), and ROAR and IteROAR on real images. The latter two
need the real images that the tests use. Digests are of arrays, tensors and columns, not of files: of maps, masks and
data sets (``.zarr.zip``), weights (``.pt``), scores (``.parquet``) and tables (``.csv``). They are equal between runs
on one machine only.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import yaml
import zarr
from archives import SAFELY
from zarr.storage import ZipStore

PROJECT = Path(__file__).resolve().parents[1]
UNTIMED = ("logs", "benchmarks", "costs", "export")
"""Folders without results of their own: ``export`` repeats tables, the others hold times."""


def configurations(real: Path, work: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the content of each configuration."""
    yield "demo", _read("config/config.yaml")
    objects = work / "miniplaces"
    if not objects.is_dir():
        objects.mkdir(parents=True)
        for entry in (real / "miniplaces").iterdir():
            (objects / entry.name).symlink_to(entry.resolve())
        with tarfile.open(real / "miniplaces_objects/objects.tar.xz") as archive:
            archive.extractall(objects, **SAFELY)
        (objects / "object_categories.txt").symlink_to(
            (real / "miniplaces_objects/object_categories.txt").resolve()
        )
    bam = _read("config/bam_small.yaml")
    for entry in bam["data"].values():
        entry |= {
            "coco": str(real / "coco"),
            "miniplaces": str(objects),
            "images_per_pair": 20,
            "max_explained_images": 100,
        }
    bam["data"]["bam"]["images_per_scene"] = 40
    for model in bam["models"].values():
        model |= {"width": 8, "training": {**model["training"], "epochs": 2}}
    bam["metrics"] = {name: {"sample_size": 5} for name in ("mcs", "idr", "iir")}
    yield "bam", bam
    retrain = _read("config/iteroar_small.yaml")
    retrain["data"]["cifar10"] = {
        "kind": "mnist",
        "path": str(real / "mnist"),
        "images_per_class": 60,
        "max_explained_images": 20,
    }
    for model in retrain["models"].values():
        model |= {"width": 8, "training": {**model["training"], "epochs": 2, "augment_flip": False}}
    retrain["studies"]["iteroar"] |= {"protocols": ["iteroar", "roar"], "occluded": 0.2}
    retrain["studies"]["iteroar"]["leakage"]["iterations"] = [2]
    retrain["studies"]["predicted"] |= {"occluded": 0.2}
    retrain["studies"]["predicted"]["leakage"]["iterations"] = [2]
    yield "retrain", retrain


def run(folder: Path, configuration: dict[str, Any]) -> Path:
    """Run the workflow in ``folder`` and return the folder of its results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "golden.yaml").write_text(yaml.safe_dump({**configuration, "results": "results"}))
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--profile",
        str(PROJECT / "profiles/local"),
        "--cores",
        "2",
    ]
    command += [
        "--snakefile",
        str(PROJECT / "workflow/Snakefile"),
        "--configfile",
        "golden.yaml",
        "--quiet",
        "all",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "results"


def digests(results: Path) -> dict[str, str]:
    """Return the digest of every array, tensor and column below ``results``, by file and name."""
    found: dict[str, str] = {}
    for path in sorted(results.rglob("*")):
        name = path.relative_to(results)
        if path.is_file() and not any(part in UNTIMED or part.startswith(".") for part in name.parts):
            found |= {f"{name.as_posix()}:{key}": _digest(value) for key, value in _values(path)}
    return found


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and the content of each part of a file that has results."""
    if path.name.endswith(".zarr.zip"):
        with ZipStore(path, mode="r") as store:
            for name, array in sorted(zarr.open_group(store, mode="r").arrays()):
                yield name, array[:]
    elif path.suffix == ".pt":
        yield from _tensors(torch.load(path, weights_only=True, map_location="cpu"))
    elif path.suffix in (".parquet", ".csv"):
        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
        for column in table:
            yield str(column), table[column]


def _tensors(content: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(content, torch.Tensor):
        yield name, content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from _tensors(value, f"{name}.{key}" if name else str(key))


def _digest(value: Any) -> str:
    if isinstance(value, pd.Series):
        content = value.astype(str).str.cat(sep="\n").encode()
        return hashlib.sha256(content).hexdigest()
    if isinstance(value, torch.Tensor):
        array = value.contiguous().reshape(-1).view(torch.uint8).numpy()
        kind = f"{value.dtype} {tuple(value.shape)}"
    else:
        array = np.ascontiguousarray(value)
        kind = f"{array.dtype} {array.shape}"
    return hashlib.sha256(kind.encode() + array.tobytes()).hexdigest()


def compare(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Return a line for each key that is in one of both alone, or whose digests differ."""
    lines = [f"gone: {key}" for key in before.keys() - after.keys()]
    lines += [f"new: {key}" for key in after.keys() - before.keys()]
    lines += [f"differs: {key}" for key in before.keys() & after.keys() if before[key] != after[key]]
    return sorted(lines)


def _read(file: str) -> dict[str, Any]:
    """Read a configuration; by way of JSON, because what an alias stands for is one object in two places."""
    content: dict[str, Any] = json.loads(json.dumps(yaml.safe_load((PROJECT / file).read_text())))
    return content


def main() -> None:
    """Record or compare digests, as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="run the configurations and write their digests")
    record.add_argument("digests", type=Path)
    record.add_argument(
        "--work", type=Path, default=Path("build/golden"), help="where to run; kept, and used again"
    )
    record.add_argument("--data", type=Path, default=PROJECT.parent / "shared/data", help="real images")
    record.add_argument("--only", nargs="+", choices=["demo", "bam", "retrain"], default=[])
    against = commands.add_parser(
        "compare", help="compare two files of digests; exit status 1 if they differ"
    )
    against.add_argument("before", type=Path)
    against.add_argument("after", type=Path)
    against.add_argument(
        "--renamed",
        nargs=2,
        metavar=("PATTERN", "NEW"),
        action="append",
        default=[],
        help="a regular expression and its replacement, for keys that have another name since",
    )
    arguments = parser.parse_args()
    if arguments.command == "record":
        found: dict[str, str] = {}
        for name, configuration in configurations(arguments.data.resolve(), arguments.work.resolve()):
            if not arguments.only or name in arguments.only:
                results = run(arguments.work.resolve() / name, configuration)
                found |= {f"{name}/{key}": digest for key, digest in digests(results).items()}
        arguments.digests.write_text(json.dumps(found, indent=0, sort_keys=True))
        print(f"{len(found)} digests in {arguments.digests}")
    else:
        before = json.loads(arguments.before.read_text())
        for pattern, new in arguments.renamed:
            before = {re.sub(pattern, new, key): digest for key, digest in before.items()}
        lines = compare(before, json.loads(arguments.after.read_text()))
        print("\n".join(lines) or f"{len(before)} digests are equal")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()

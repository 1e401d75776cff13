"""Tests and measurements on a GPU in at most ten minutes; writes ``docs/gpu.md``.

    python benchmarks/gpu.py            # measure, write docs/gpu.json and the page
    python benchmarks/gpu.py --page     # write the page from docs/gpu.json alone

Without a GPU, the page has the measurements that a processor can make, and says so. Every measurement is a run of
another benchmark, whose ratio compares the project's code with bare steps or passes in the same process.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import jinja2
import torch

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE, TEMPLATE = (
    ROOT / name for name in ("docs/gpu.json", "docs/gpu.md", "benchmarks/gpu.md.jinja")
)
MINUTES = 10
COUNTED = ("bam", "criteria", "metric_reliability")


@dataclass(frozen=True)
class Measurement:
    """Rows of the table that one run of a benchmark measures."""

    program: str
    rows: Mapping[str, tuple[str, str]]
    """For each row the keys of speed and ratio in the program's JSON."""
    gpu: Sequence[str]
    cpu: Sequence[str] = ()
    """Arguments on a processor; empty if it would take too long there."""


PASSES = {
    "maps: gradient": ("gradient", "gradient_share"),
    "maps: SmoothGrad, 25 samples": ("smoothgrad", "smoothgrad_share"),
    "maps: Integrated Gradients, 25 steps": ("integrated_gradients", "integrated_gradients_share"),
}
METRICS = {
    "AOPC, MoRF and LeRF": ("AOPC, both orders", "AOPC, both orders share"),
    "infidelity, 200 squares": ("INFD, squares", "INFD, squares share"),
}
TRAINING = {"training": ("train", "train_share"), "evaluation": ("evaluate", "evaluate_share")}
LARGE, SMALL = ["--architecture", "resnet50", "--size", "224"], ["--size", "32", "--width", "16"]


def named(rows: Mapping[str, tuple[str, str]], network: str) -> dict[str, tuple[str, str]]:
    return {f"{name}, {network}": keys for name, keys in rows.items()}


MEASUREMENTS = (
    Measurement(
        "training",
        named(TRAINING, "ResNet-50, 224 pixels, bf16"),
        [*LARGE, "--batch-size", "128", "--images", "12800", "--rounds", "2", "--precision", "bf16"],
    ),
    Measurement(
        "training",
        named(TRAINING, "ResNet-8, 32 pixels"),
        [*SMALL, "--images", "50000", "--rounds", "3"],
        [*SMALL, "--images", "2560", "--rounds", "2", "--precision", "float32", "--threads", "1"],
    ),
    Measurement(
        "attribution",
        named(PASSES, "ResNet-50, 224 pixels"),
        [*LARGE, "--only", "passes", "--batch-size", "64", "--rounds", "2"],
    ),
    Measurement(
        "attribution",
        named(PASSES, "ResNet-8, 32 pixels"),
        [*SMALL, "--only", "passes", "--batch-size", "256", "--rounds", "3"],
        [*SMALL, "--only", "passes", "--rounds", "3", "--threads", "1"],
    ),
    Measurement(
        "perturbation",
        named(METRICS, "ResNet-50, 224 pixels"),
        [*LARGE, "--only", "passes", "--batch-size", "64", "--rounds", "1"],
    ),
    Measurement(
        "perturbation",
        named(METRICS, "ResNet-8, 32 pixels"),
        [*SMALL, "--only", "passes", "--rounds", "2"],
        [*SMALL, "--only", "passes", "--batch-size", "64", "--rounds", "1", "--threads", "1"],
    ),
)


def run(measurement: Measurement, device: str, seconds: float) -> dict[str, Any]:
    """Run a benchmark and return its JSON, or the reason why there is none."""
    options = measurement.gpu if device == "cuda" else measurement.cpu
    if not options:
        return {"missing": "not measured"}
    command = [sys.executable, str(ROOT / f"benchmarks/{measurement.program}.py"), *options]
    try:
        done = subprocess.run(
            [*command, "--device", device, "--json"], capture_output=True, text=True, timeout=max(1, seconds)
        )
    except subprocess.TimeoutExpired:
        return {"missing": f"not within {MINUTES} minutes"}
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        lines = done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"]
        return {"missing": lines[-1]}
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def tests() -> str:
    """Run the tests that need a GPU, and return pytest's last line."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/contract/test_gpu.py"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30 * MINUTES)
    except subprocess.TimeoutExpired:
        return f"not within {MINUTES / 2:g} minutes"
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    lines = done.stdout.strip().splitlines()
    return re.sub(r" in [\d.]+s.*| \(.*", "", lines[-1]).strip("= ") if lines else "no output"


def hours(training: float, forward: float) -> dict[str, list[float]]:
    """Return for each configuration the counted GPU hours with published and with measured speeds (images/s)."""
    from scaling import FORWARD, counted
    from scaling import TRAINING as PUBLISHED

    speeds = (PUBLISHED, FORWARD), (training, forward)
    files = {name: ROOT / f"config/{name}.yaml" for name in COUNTED}
    return {
        name: [sum(counted(file, *speed)[1].values()) for speed in speeds] for name, file in files.items()
    }


def measure() -> dict[str, Any]:
    """Run all tests and measurements of this machine."""
    device, start = "cuda" if torch.cuda.is_available() else "cpu", time.monotonic()
    versions = {"torch": torch.__version__, "CUDA": torch.version.cuda, "Python": platform.python_version()}
    results: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "",
        "described": ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        + f", {date.today().isoformat()}",
        "tests": tests() if device == "cuda" else "",
        "rows": {},
    }
    measured = []
    for measurement in MEASUREMENTS:
        measured.append(run(measurement, device, 60 * MINUTES - (time.monotonic() - start)))
        for name, keys in measurement.rows.items():
            missing = measured[-1].get("missing")
            results["rows"][name] = [missing, ""] if missing else [measured[-1][key] for key in keys]
            print(name, *results["rows"][name], file=sys.stderr)
    # In units of ``scaling.py``, a gradient with respect to the image is two forward passes.
    training, gradient = measured[0].get("train"), measured[2].get("bare_gradient")
    if training and gradient:
        results["resnet50"] = training, 2 * gradient
    return results


def save(results: Mapping[str, Any]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def cells(results: Mapping[str, Any] | None, name: str) -> str:
    """Return the cells of speed and ratio, without the outer bars."""
    speed, ratio = (results or {"rows": {}})["rows"].get(name, ("", ""))
    return f"{speed:,.0f} | {ratio:.2f}" if ratio else f"{speed} |"


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page for the ``results`` of a GPU and of a processor, ``gpu`` and ``cpu``; either may be missing."""
    environment = jinja2.Environment(
        autoescape=False, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    rows = [name for each in MEASUREMENTS for name in each.rows]
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(gpu=results.get("gpu"), cpu=results.get("cpu"), rows=rows, cells=cells)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--page", action="store_true", help="write the page from docs/gpu.json, without measuring"
    )
    parser.add_argument(
        "--machine", default=platform.processor() or platform.machine(), help="name of the processor"
    )
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if not options.page:
        kind = "gpu" if torch.cuda.is_available() else "cpu"
        results[kind] = {**measure(), "machine": options.machine}
        save(results)
        if speeds := results[kind].pop("resnet50", None):
            results[kind]["hours"] = hours(*speeds)
            save(results)
    PAGE.write_text(page(results), encoding="utf-8")
    print(f"{PAGE}: written")
    if not torch.cuda.is_available():
        print("no GPU that PyTorch can use: its columns are those of docs/gpu.json")


if __name__ == "__main__":
    main()

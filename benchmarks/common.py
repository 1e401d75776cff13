"""Shared code of the benchmarks: command-line options, the model, synchronization and memory."""

import argparse
import re
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.append(str(Path(__file__).parents[1] / "tests"))  # whose networks some benchmarks use
sys.path.append(str(Path(__file__).parents[1] / "tests/contract"))

from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.registry.records import record_of

CLASSES = 10


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that all benchmarks share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--architecture", default="resnet8", choices=[record.name for record in ARCHITECTURES]
    )
    parser.add_argument("--width", type=int, default=16, help="where the architecture has one")
    parser.add_argument("--stem-stride", type=int, default=1, help="where the architecture has one")
    for name in ("patch", "depth", "heads"):
        parser.add_argument(f"--{name}", type=int, help="where the architecture has one")
    parser.add_argument("--size", type=int, default=32, help="pixels a side")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    return parser


def classifier(options: argparse.Namespace) -> Classifier:
    record = record_of(ARCHITECTURES, options.architecture, "architecture")
    model_options = {
        "width": options.width,
        "stem_stride": options.stem_stride,
        "image_size": options.size,
        "patch": options.patch,
        "depth": options.depth,
        "heads": options.heads,
    }
    parameters = {
        name: value
        for name, value in model_options.items()
        if name in record.parameters and value is not None
    }
    blueprint = Blueprint(record.name, record.function, parameters, record.cam_layer, record.concept_layers)
    generator = torch.Generator().manual_seed(0)
    model = build(blueprint, classes=CLASSES, mean=[0.5] * 3, std=[0.25] * 3, generator=generator)
    return model.to(options.device)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def megabytes() -> float:
    """Return the peak resident memory of this process in MB; ``getrusage`` would include the parent's."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 / 1e6

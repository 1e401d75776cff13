"""Seconds until the first map of a method that follows the layers of a network, each in a new Python process.

Columns: ``record`` is the recording of the forward pass, alone and in a process that has recorded another network, and
``export`` is ``torch.export`` of the same network, where the version has both; ``first`` and ``second`` are the first
two calls of the method for ``--images`` images of 224 × 224 pixels, the first one with all imports after that of torch.
Every time is the median of ``--rounds`` processes with one thread.

    python benchmarks/first_map.py
    python benchmarks/first_map.py --source ../other/src    # another version
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
NETWORKS = {
    "ResNet-50": "torchvision.models.resnet50(num_classes=10)",
    "ViT-B/16": "torchvision.models.vit_b_16(num_classes=10)",
}
PROGRAM = """
import json, sys, time
import torch, torchvision
torch.set_num_threads(1)
network, method, count = eval(sys.argv[1]).eval(), sys.argv[2], int(sys.argv[3])
torch.nn.init.normal_(list(network.parameters())[-2])
images, targets = torch.rand(count, 3, 224, 224), torch.zeros(count, dtype=torch.int64)

def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start

def attribute():
    import saliency_assay
    saliency_assay.attribute(method, network, images, targets)

times = {"first": seconds(attribute), "second": seconds(attribute)}
try:
    from saliency_assay.methods.exported import exported
    from saliency_assay.methods.operations import CONVERSIONS
    times["record"] = seconds(lambda: exported(network, images, CONVERSIONS))
    with torch.no_grad():
        times["export"] = seconds(lambda: torch.export.export(network, (images,), strict=False))
except ImportError:
    pass
print(json.dumps(times))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--source", type=Path, default=SOURCE, help="folder of the package")
    parser.add_argument("--methods", nargs="+", default=["lrp_epsilon", "deeplift"])
    options = parser.parse_args()
    print("| network | method | record | export | first | second |\n|---|---|---|---|---|---|")
    for name, network in NETWORKS.items():
        for method in options.methods:
            command = [sys.executable, "-c", PROGRAM, network, method, str(options.images)]
            environment = {**os.environ, "PYTHONPATH": str(options.source.resolve())}
            rounds = [
                json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
                for _ in range(options.rounds)
            ]
            cells = [
                f"{statistics.median(each[key] for each in rounds):.2f}" if key in rounds[0] else "–"
                for key in ("record", "export", "first", "second")
            ]
            print(f"| {name} | {method} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

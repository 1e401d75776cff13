"""Seconds until the first result in a new Python process, beside the import of torch.

Each row is a new process that imports torch, then imports ``saliency_assay`` and calls one of its functions once, for
``--images`` images of 10 × 10 pixels and a network of two layers. The second call in the same process shows how much of
the time is the computation itself. The last column lists the larger libraries that the first call has imported. Times
are the minimum of ``--rounds`` processes, because other load on the machine increases them.

    python benchmarks/startup.py
    python benchmarks/startup.py --rounds 5
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
LIBRARIES = ("captum", "matplotlib", "pandas", "scipy", "skimage", "sklearn", "torchvision", "zarr", "zennit")
CALLS = {
    "import": "saliency_assay.score",
    "attribute: gradient": "saliency_assay.attribute('gradient', model, images, targets)",
    "attribute: gradcam": "saliency_assay.attribute('gradcam', model, images, targets)",
    "attribute: lrp_epsilon": "saliency_assay.attribute('lrp_epsilon', model, images, targets)",
    "score: deletion": "saliency_assay.score('deletion', network, images, targets, maps)",
    "score: aopc": "saliency_assay.score('aopc', model, images, targets, maps)",
    "score: faithfulness": "saliency_assay.score('faithfulness', model, images, targets, maps)",
    "assess": "saliency_assay.assess({'a': values, 'b': values[::-1]}, direction='lower', resamples=100)",
    "plot: maps": "saliency_assay.plot.maps(images, {'gradient': maps})",
}
PROGRAM = """
import json, sys, time

def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start

torch_seconds = seconds(lambda: __import__("torch"))
import numpy as np
import torch
from torch import nn

network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
images = np.random.default_rng(0).random((int(sys.argv[2]), 1, 10, 10), dtype=np.float32)
maps, targets, values = images[:, 0], np.arange(len(images)) % 3, images.mean((1, 2, 3))
model = None

def call():
    global model
    import saliency_assay
    if "model" in sys.argv[1]:
        model = saliency_assay.wrap(network, classes=3, mean=[0.5], std=[0.25], cam_layer="1")
    eval(sys.argv[1])

first, second = seconds(call), seconds(call)
print(json.dumps({"torch": torch_seconds, "first": first, "second": second, "modules": list(sys.modules)}))
"""


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    command = [sys.executable, "-c", PROGRAM, CALLS[name], str(options.images)]
    environment = {"PYTHONPATH": str(SOURCE), "MPLBACKEND": "agg", "OMP_NUM_THREADS": str(options.threads)}
    runs = [
        json.loads(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        )
        for _ in range(options.rounds)
    ]
    least = {key: min(run[key] for run in runs) for key in ("torch", "first", "second")}
    return {"call": name, **least, "libraries": [name for name in LIBRARIES if name in runs[0]["modules"]]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    rows = [measure(name, options) for name in CALLS]
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{'':24}{'torch, s':>10}{'first, s':>10}{'second, s':>11}  libraries")
    for row in rows:
        print(
            f"{row['call']:24}{row['torch']:10.2f}{row['first']:10.2f}{row['second']:11.2f}  "
            + ", ".join(row["libraries"])
        )


if __name__ == "__main__":
    main()

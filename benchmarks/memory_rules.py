"""Peak memory of the jobs of each rule for several sizes of data, and its growth per image.

Runs the workflow in a temporary folder: studies of retraining, of single maps and of BAM, with tiny networks, on JPEGs
of 1 KB and on synthetic images; all test images (a fifth, for BAM a tenth) are explained. Images are streamed
(``resident_limit``), so they should not add to the growth. Reports the peak resident memory of a job's own process,
Python and torch included; differences of a few MB are noise.

    python benchmarks/memory_rules.py
    python benchmarks/memory_rules.py --images 2000 10000 50000
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from folder import make

ROOT = Path(__file__).resolve().parents[1]
CLASSES = 10
# sitecustomize.py: imported at the start of every Python process, writes the peak at its end.
NOTE = """
import atexit, os, re, sys

def note():
    peak = re.findall(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[0]
    with open(os.path.join(os.environ["MEMORY_NOTES"], str(os.getpid())), "a") as file:
        file.write(f"{sys.argv[0]} {peak}\\n")

atexit.register(note)
"""


def configuration(images: int) -> dict[str, object]:
    training = {"epochs": 1, "batch_size": 64, "validation_share": 0.15}
    model = {"architecture": "resnet8", "width": 4, "batch_size": 64, "training": training}
    streamed = {"resident_limit": 1e-6, "max_explained_images": images}
    composition = {"size": 32, "source_size": 64, "images_per_pair": images // 100, "cutouts_per_object": 8}
    return {
        "results": "results",
        "device": "cpu",
        "seeds": [0],
        "data": {
            "files": {"kind": "folder", "path": "images", "size": 32, "test_share": 0.2, **streamed},
            "bam": {
                "kind": "synthetic",
                "scenes_per_class": 8,
                "min_object_area": 64,
                **composition,
                **streamed,
            },
        },
        "models": {
            "f": {**model, "data": "files", "trained_on": "class", "search": {"learning_rate": [0.1, 0.05]}},
            "f_o": {**model, "data": "bam_os", "trained_on": "object"},
            "f_s": {**model, "data": "bam_os", "trained_on": "scene"},
        },
        "methods": {"gradient": {}, "random": {}},
        "metrics": {
            "deletion": {"steps": 8},
            "infidelity_subset": {"samples": 8},
        },
        "studies": {
            "retrain": {
                "kind": "retrain",
                "model": "f",
                "percentile": 75,
                "fills": ["zero"],
                "leakage": {"repeats": 2, "iterations": [2]},
            },
            "maps": {
                "kind": "fidelity",
                "model": "f",
                "metrics": ["deletion", "infidelity_subset"],
            },
            "bam": {"kind": "bam", "data": "bam", "object_model": "f_o", "scene_model": "f_s"},
        },
        "reliability": {"resamples": 100},
    }


def peaks(images: int, folder: Path, cores: int) -> dict[str, float]:
    """Run the workflow and return the peak memory of each rule in MB."""
    make(folder / "images", images, CLASSES)
    (folder / "configuration.yaml").write_text(yaml.safe_dump(configuration(images), sort_keys=False))
    notes = folder / "notes"
    for target, name, text in ((folder / "hook", "sitecustomize.py", NOTE), (notes, ".keep", "")):
        target.mkdir()
        (target / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "snakemake",
        f"--snakefile={ROOT / 'workflow/Snakefile'}",
        f"--cores={cores}",
    ]
    command += ["--configfile", "configuration.yaml", "--quiet", "all"]
    environment = {**os.environ, "PYTHONPATH": str(folder / "hook"), "MEMORY_NOTES": str(notes)}
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=sys.stderr)
    peak_by_rule: dict[str, float] = {}
    for file in notes.iterdir():
        for line in file.read_text().splitlines():
            script, _, peak = line.rpartition(" ")
            if "/scripts/tmp" in script:  # Snakemake's copy of a script, tmp….RULE.py
                rule = script.split(".")[-2]
                peak_by_rule[rule] = max(peak_by_rule.get(rule, 0), int(peak) * 1024 / 1e6)
    return peak_by_rule


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where all is written")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    peaks_by_images = {}
    for images in options.images:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            peaks_by_images[images] = peaks(images, Path(folder), options.cores)
    if options.json:
        print(json.dumps(peaks_by_images))
        return
    first, last = options.images[0], options.images[-1]
    print(f"{'MB, images:':22}{''.join(f'{images:10,}' for images in peaks_by_images)}{'bytes an image':>16}")
    for rule in sorted(
        peaks_by_images[last],
        key=lambda name: peaks_by_images[first].get(name, 0) - peaks_by_images[last][name],
    ):
        cells = "".join(f"{peak_of.get(rule, 0):10.0f}" for peak_of in peaks_by_images.values())
        growth = (
            1e6 * (peaks_by_images[last][rule] - peaks_by_images[first].get(rule, 0)) / max(1, last - first)
        )
        print(f"{rule:22}{cells}{growth:16.0f}")


if __name__ == "__main__":
    main()

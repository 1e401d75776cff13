"""Write CIFAR-10's original files as PNG images.

    python benchmarks/cifar10_images.py data/cifar10 data/cifar10_images

The first folder is that of ``make download DATA=cifar10``. The second one gets ``{train,test}/CLASS/NNNNN.png``, the
layout of the kind of data set ``folder``, which several configurations read.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from saliency_assay.data.readers.cifar10 import cifar10
from saliency_assay.data.splits import TEST


def main(source: Path, target: Path) -> None:
    """Write the images of ``source`` below ``target``."""
    classes, blocks = cifar10(path=str(source), generator=np.random.default_rng(0))
    for name in classes["class"]:
        for split in ("train", "test"):
            (target / split / name).mkdir(parents=True)
    number = 0
    for block in blocks:
        for pixels, split, label in zip(block["image"], block["split"], block["label_class"], strict=True):
            folder = target / ("test" if split == TEST else "train") / classes["class"][label]
            Image.fromarray(pixels.transpose(1, 2, 0)).save(folder / f"{number:05}.png")
            number += 1
    print(f"{target}: {number} images")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

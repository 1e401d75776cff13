"""Write MetaQuantus' test images and masks as PNG files: ``python benchmarks/metaquantus_images.py SOURCE TARGET``.

SOURCE is a folder with ``mnist_test_set.npz`` and ``fmnist_test_set.npz`` (arrays ``x_batch`` in [0, 1], ``y_batch``
and ``s_batch``); TARGET gets the folders ``mnist`` and ``fmnist``, in the layout of the kind of data set ``folder``.
``config/validity.yaml`` explains predicted classes, so labels only name folders: an image of the most frequent class is
put into the folder of a class that has none, and the training images, which are not used, are those of the test.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

NAMES, CLASSES = ("mnist", "fmnist"), 10


def main(source: Path, target: Path) -> None:
    """Write the images of both data sets below ``target``."""
    for name in NAMES:
        arrays = np.load(source / f"{name}_test_set.npz")
        labels = arrays["y_batch"].copy()
        for missing in set(range(CLASSES)) - set(labels.tolist()):
            labels[np.flatnonzero(labels == np.bincount(labels).argmax())[-1]] = missing
        for kind, key in (("images", "x_batch"), ("masks", "s_batch")):
            for number, (values, label) in enumerate(zip(arrays[key], labels, strict=True)):
                image = Image.fromarray(np.rint(values[0] * 255).astype(np.uint8))
                for split in ("train", "test"):
                    file = target / name / kind / split / str(label) / f"{number:02}.png"
                    file.parent.mkdir(parents=True, exist_ok=True)
                    image.save(file)
    print(f"{target}: {', '.join(NAMES)}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

"""Pack the networks and images of ``config/suite_shapes.yaml`` as files of the reference suite.

Run it after ``saliency-assay run config/suite_shapes.yaml``: python -m tools.suite_assets results_suite_shapes
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import torch

import saliency_assay
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.storage import zarr_store
from saliency_assay.suite import VERSION
from saliency_assay.suite.tasks import ASSETS

NETWORKS = {"objects": "object", "scenes": "scene", "transformer": "object"}
"""The label that each network predicts."""
BACKGROUND = 20
"""Number of training images for methods that take a background."""


def main(results: Path) -> None:
    """Write ``shapes.npz``, a test image of each pair of an object and a scene, and the weights.

    The images are those that both convolutional networks classify correctly.
    """
    folder = ASSETS / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    with zarr_store.open_store(results / "data/shapes_os.zarr.zip", kind="data") as data:
        labels = {name: data[f"label_{name}"][:] for name in ("object", "scene")}
        images, masks, split = data["image"][:], data["mask"][:], data["split"][:]
    right = split == TEST
    for network, label in NETWORKS.items():
        weights = results / f"models/{network}/seed0/weights.pt"
        shutil.copy(weights, folder / f"{network}.pt")
        with torch.no_grad():
            model = saliency_assay.load_model(weights)
            predicted = np.concatenate(
                [
                    model(torch.from_numpy(part).float() / 255).argmax(1).numpy()
                    for part in np.array_split(images, 50)
                ]
            )
        print(f"{network}: accuracy {(predicted == labels[label])[split == TEST].mean():.3f} on test images")
        if network != "transformer":
            right &= predicted == labels[label]
    pairs = labels["object"] * 10 + labels["scene"]
    chosen = np.array([np.flatnonzero(right & (pairs == pair))[0] for pair in range(100)])
    others = np.flatnonzero(split == TRAIN)[:: (split == TRAIN).sum() // BACKGROUND][:BACKGROUND]
    np.savez_compressed(
        folder / "shapes.npz",
        image=images[chosen],
        mask=np.packbits(masks[chosen], axis=-1),
        background=images[others],
    )
    for file in sorted(folder.iterdir()):
        print(f"{file.name}: {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

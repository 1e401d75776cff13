"""Print eMPRT of LeNet on MNIST beside the released values: ``python benchmarks/emprt.py SOURCE``.

SOURCE is a folder with MetaQuantus' ``mnist_lenet.pth`` and ``mnist_test_set.npz``. Released values are those of
Hedström et al. (2024): means and standard deviations over five randomizations.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import saliency_assay as sa
from saliency_assay.models.cnn import lenet

RELEASED = {
    "gradient": "0.216 ± 0.099",
    "integrated_gradients": "0.022 ± 0.049",
    "gradcam": "−0.002 ± 0.037",
    "random": "0",
}
METHODS = {
    "gradient": {"method": "gradient"},
    "integrated_gradients": {"method": "integrated_gradients"},
    "gradcam": {"method": "gradcam", "relu": False},
    "random": {"method": "random"},
}
RANDOMIZATIONS = 5


def network(seed: int, initialization: str) -> torch.nn.Module:
    """Return LeNet with random weights: those of this project (He et al.), or of PyTorch as in the released code."""
    model = lenet(classes=10, channels=1, generator=torch.Generator().manual_seed(seed)).eval()
    if initialization == "PyTorch":
        torch.manual_seed(seed)
        for layer in model:
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
    return model


def main(source: Path) -> None:
    """Print a Markdown table: mean and standard deviation over randomizations of the mean over images."""
    trained = network(0, "He")
    trained.load_state_dict(torch.load(source / "mnist_lenet.pth", weights_only=True))
    model = sa.wrap(trained, classes=10, mean=[0.0], std=[1.0], cam_layer="conv2")
    arrays = np.load(source / "mnist_test_set.npz")
    images, targets = arrays["x_batch"].astype(np.float32), arrays["y_batch"].astype(np.int64)
    print("| method | released | PyTorch's initialization | He initialization |\n|---|---|---|---|")
    for name, method in METHODS.items():
        parameters = {key: value for key, value in method.items() if key != "method"}
        maps = sa.attribute(name, model, images, targets, **parameters)
        cells = []
        for initialization in ("PyTorch", "He"):
            means = []
            for seed in range(1, RANDOMIZATIONS + 1):
                randomized_model = network(seed, initialization)
                scores = sa.score(
                    "emprt", model, images, targets, maps, method=method, randomized_model=randomized_model
                )
                means.append(float(np.nanmean(scores["emprt"])))
            cells.append(f"{np.mean(means):.3f} ± {np.std(means):.3f}")
        print(f"| {name} | {RELEASED[name]} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Plot the galleries of the pages of methods from a finished run of config/methods.yaml.

``python -m tools.method_pictures`` takes seconds after ``make run CONFIG=config/methods.yaml``, about fifteen minutes.
"""

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from saliency_assay.plot import maps as plot_maps
from saliency_assay.storage.zarr_store import open_store
from tools.pages import DOCS
from tools.picture_records import write_record
from tools.source_tree import ROOT

RESULTS, IMAGES = ROOT / "results_methods", DOCS / "images"
DATA, ROWS, COLORS = "bam_os", 4, 128
GALLERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "gradient": (
        "f_o",
        (
            "gradient",
            "sensitivity",
            "gradient_x_input",
            "guided_backprop",
            "smoothgrad",
            "smoothgrad_squared",
            "vargrad",
            "fullgrad",
        ),
    ),
    "cam": (
        "f_o",
        (
            "cam",
            "gradcam",
            "gradcam_plus_plus",
            "layercam",
            "hirescam",
            "xgradcam",
            "eigencam",
            "scorecam",
            "guided_gradcam",
        ),
    ),
    "path": (
        "f_o",
        (
            "integrated_gradients",
            "integrated_gradients_smoothgrad",
            "expected_gradients",
            "gradient_shap",
            "guided_ig",
            "blur_ig",
            "xrai",
        ),
    ),
    "propagation": (
        "f_o",
        (
            "lrp_alpha_beta",
            "lrp_epsilon",
            "attnlrp",
            "deep_taylor",
            "deeplift_rescale",
            "deeplift",
            "deep_shap",
        ),
    ),
    "perturbation": ("f_o", ("occlusion", "rise", "lime", "kernel_shap", "extremal_perturbation")),
    "attention": (
        "vit",
        (
            "raw_attention",
            "attention_rollout",
            "gradient_weighted_attention",
            "transformer_attribution",
            "legrad",
            "libragrad",
            "attnlrp",
            "lrp_epsilon",
            "gradcam",
        ),
    ),
}
"""For each page of methods the model that is explained and the methods in the gallery."""


def gallery(model: str, methods: tuple[str, ...]) -> Figure:
    """Return a figure of the first images of the run with a column for each method."""
    stores = {
        method: open_store(RESULTS / f"maps/{model}/seed0/{DATA}/{method}.zarr.zip", kind="maps")
        for method in methods
    }
    indices = next(iter(stores.values()))["image"][:][:ROWS]
    images = open_store(RESULTS / f"data/{DATA}.zarr.zip", kind="data")["image"].at(indices)
    axes = plot_maps(
        np.asarray(images), {method: np.asarray(store["map"][:ROWS]) for method, store in stores.items()}
    )
    for tile in axes.child_axes:
        assert isinstance(tile, Axes)
        tile.set_title(fill(tile.get_title(), 16), fontsize=8)
    figure = axes.figure
    assert isinstance(figure, Figure)
    return figure


def write(figure: Figure, path: Path) -> None:
    """Write a figure as an image of few colors."""
    figure.savefig(path, dpi=110, bbox_inches="tight")
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLORS, method=Image.Quantize.MEDIANCUT)
    small.save(path, optimize=True)
    write_record(path)


def main() -> None:
    """Write all galleries."""
    for page, (model, methods) in GALLERIES.items():
        write(gallery(model, methods), IMAGES / f"methods_{page}.png")


if __name__ == "__main__":
    main()

"""Figures of two sweeps on the task ``objects`` of the reference suite, for docs/suite.md: python -m tools.suite_sweeps

The results are kept in ``build/suite_sweeps``, so that an interrupted computation is continued.
"""

import torch

import saliency_assay
from saliency_assay.suite.scores import LoadedTask
from saliency_assay.suite.tasks import task_of
from tools.picture_records import IMAGES, write_record
from tools.source_tree import ROOT

METHODS = {
    "smoothgrad": {"sweep": {"noise": [0.02, 0.05, 0.1, 0.2, 0.4]}},
    **{
        name: {}
        for name in (
            "gradient",
            "integrated_gradients",
            "gradcam",
            "lrp_epsilon",
            "deeplift",
            "fullgrad",
            "occlusion",
        )
    },
    "random": {},
}
METRICS = {
    "deletion": {"steps": 16},
    "mask_attribution": {},
    "aopc": {"steps": 32, "sweep": {"fill": ["mean", "black", "blur"]}},
}
FIGURES = {
    "suite_sweep_smoothgrad": ("smoothgrad", "relevance_mass_accuracy"),
    "suite_sweep_aopc": ("aopc", "aopc_morf L=32"),
}


def main() -> None:
    """Compute the scores, print the tables and write the figures."""
    loaded = LoadedTask.load(task_of("objects"), ROOT / "data")
    images = torch.from_numpy(loaded.images.pixels)
    result = saliency_assay.benchmark(
        loaded.model,
        (images, loaded.targets, loaded.images.mask),
        METHODS,
        METRICS,
        path=ROOT / "build/suite_sweeps",
        model_name="objects",
        data_name="suite",
    )
    print(result)
    print(result.sweeps.to_string())
    print(result.metric_sweeps.to_string())
    for name, (family, metric) in FIGURES.items():
        figure = result.plot.sweep(family, metric=metric).figure
        path = IMAGES / f"{name}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
        write_record(path)


if __name__ == "__main__":
    main()

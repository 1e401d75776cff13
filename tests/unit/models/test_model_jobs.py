"""The model of a job on its device, and the attributes of its results."""

from pathlib import Path

import numpy as np
import torch
from jobs import snakemake_of
from support import RESNET, RESNET_SETTINGS, small_resnet

from saliency_assay.models import weights
from saliency_assay.models.classifier import digest
from saliency_assay.models.jobs import load_model, result_identity
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.shards import Shard
from saliency_assay.storage import zarr_store


def test_the_classifier_is_loaded_in_the_format_that_it_takes(tmp_path: Path) -> None:
    expected = small_resnet()
    files = {"weights": tmp_path / "weights.pt", "data": tmp_path / "data.zarr.zip"}
    weights.save(files["weights"], expected, RESNET)
    block = {"image": np.zeros((2, 3, 8, 8), dtype=np.uint8)}
    zarr_store.write(files["data"], [block], kind="data", attributes={})
    with run_job(
        snakemake_of("score", tmp_path / "log", {"model": RESNET_SETTINGS, "device": "cpu"}, files)
    ) as job:
        data = job.open(zarr_store.open_store(job.input.data, kind="data"))
        loaded = load_model(job, data)
        assert loaded.device == torch.device("cpu")
        assert loaded.layer("conv1").weight.is_contiguous(memory_format=torch.channels_last)
        model = digest(expected.network.state_dict())
        assert result_identity(data, loaded, Shard(2, 3)) == {
            "shard": Shard(2, 3),
            "data": data.attributes["digest"],
            "model": model,
        }

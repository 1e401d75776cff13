"""The rule ``download``, from a server on this machine, and a data set that is built of what it fetched."""

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest
from checkout import Checkout
from publishers import CIFAR10, CIFAR10_NAMES, cifar10_records
from sklearn.datasets import load_digits
from web import Site, served

from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

OFFICIAL = '170_052_171,\n                "md5:c32a1d4ab5d03f1284b67883e8d87530"'


def cifar10_of_digits() -> tuple[bytes, np.ndarray]:
    """An archive of CIFAR-10's layout that holds handwritten digits, and its test images."""
    digits = load_digits()
    pixels = np.kron(digits.images[:120] * 15, np.ones((1, 4, 4))).astype(np.uint8)
    data = np.repeat(pixels[:, None], 3, axis=1).reshape(120, 3072)
    batches = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    files = {
        name: cifar10_records(data[20 * i : 20 * (i + 1)], digits.target[20 * i : 20 * (i + 1)].tolist())
        for i, name in enumerate(batches)
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in {**files, "batches.meta.txt": CIFAR10_NAMES}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(buffer.getvalue()), data[100:].reshape(20, 3, 32, 32)


def test_what_is_fetched_is_a_data_set(fresh: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, test_images = cifar10_of_digits()
    target = "data/downloaded/cifar10.json"
    monkeypatch.setenv("no_proxy", "*")
    with served(Site({"/cifar10/cifar-10-binary.tar.gz": archive})) as site:
        monkeypatch.setenv("SALIENCY_ASSAY_MIRROR", site.url)

        # Not CIFAR-10: refused, and nothing stands where data would be.
        status, output = fresh.snakemake(target)
        assert status == 1
        assert "Traceback" not in output
        assert "terms   none stated" in output
        address = f"{site.url}/cifar10/cifar-10-binary.tar.gz"
        line = f"download: {address}: the server has {len(archive)} bytes, expected 170052171"
        assert line in output.splitlines()
        assert [path for path in fresh.files("data") if not path.endswith(".part")] == []

        ours = f'{len(archive)},\n                "md5:{hashlib.md5(archive).hexdigest()}"'
        fresh.edit("src/saliency_assay/data/download/catalog.py", lambda text: text.replace(OFFICIAL, ours))
        site.cuts = [len(archive) // 2]
        fresh.make(target)
        assert [byte_range for _, byte_range in site.requests[1:]] == ["", f"bytes={len(archive) // 2}-"]
        assert f"cifar-10-binary.tar.gz: fetched from {address}" in fresh.log("download/cifar10.log")

    # Nobody serves any more: what is there is enough, and no other rule asks.
    fresh.make(target, "--forcerun", "download")
    fresh.configure(data__photos={"kind": "cifar10", "path": "data/cifar10", "max_explained_images": 10})
    fresh.make("results/data/photos.zarr.zip")
    with open_store(fresh.root / "results/data/photos.zarr.zip", kind="data") as data:
        assert len(data) == 120
        np.testing.assert_array_equal(data["image"][100:], test_images)
        assert list(data.attributes["classes"]["class"]) == list(CIFAR10)

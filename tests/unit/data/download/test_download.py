"""The catalog of the download helper, and the download of a data set of small files."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from torchvision.datasets import MNIST, STL10
from torchvision.models import ResNet50_Weights, VGG16_Weights
from web import Site, served

from saliency_assay.data.download.catalog import DOWNLOADS, Download, Remote
from saliency_assay.data.download.command import by_name, obtain
from saliency_assay.data.download.fetch import Patience

FILES = {"set/a.bin": b"one", "set/b.bin": b"two" * 1000}


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as content:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            content.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


ARCHIVE = packed(FILES)
PLAIN = gzip.compress(b"plain")


def md5(content: bytes) -> str:
    return f"md5:{hashlib.md5(content).hexdigest()}"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with served(Site({"/small/set.tar.gz": ARCHIVE, "/small/list.gz": PLAIN})) as site:
        yield site


SMALL = Download(
    name="small",
    title="A small set",
    page="http://nowhere.example/",
    license="none",
    layout="small/set/",
    files=(
        Remote("http://nowhere.example/list.gz", "small/list.gz"),
        Remote(
            "http://nowhere.example/of/it/set.tar.gz", "small", len(ARCHIVE), md5(ARCHIVE), "us", archive=True
        ),
    ),
)


def get(site: Site, folder: Path) -> dict[str, dict[str, object]]:
    return obtain(SMALL, folder, mirror=f"{site.url}/", patience=Patience(2, 0, 10))


def below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


HERE = {"small/list.gz": PLAIN, **{f"small/{name}": data for name, data in FILES.items()}}


def test_files_come_from_the_mirror_into_their_places(site: Site, tmp_path: Path) -> None:
    receipts = get(site, tmp_path)
    files = below(tmp_path)
    kept = {name: files.pop(f"downloaded/small/{name}.json") for name in ("list.gz", "set.tar.gz")}
    assert files == HERE
    assert {name: json.loads(text) for name, text in kept.items()} == receipts
    assert receipts["set.tar.gz"] == {
        "url": f"{site.url}/small/set.tar.gz",
        "bytes": len(ARCHIVE),
        "sha256": hashlib.sha256(ARCHIVE).hexdigest(),
        "checksum": md5(ARCHIVE),
        "checksum_source": "us",
        "files": {name: len(data) for name, data in FILES.items()},
    }
    assert receipts["list.gz"]["checksum_source"] == "no published checksum"
    site.requests = []
    assert get(site, tmp_path) == receipts
    assert site.requests == []


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"cut")])
def test_what_is_missing_or_cut_is_fetched_again(spoil, site: Site, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    get(site, tmp_path)
    spoil(tmp_path / "small/set/b.bin")
    site.requests = []
    get(site, tmp_path)
    assert site.requests == [("/small/set.tar.gz", "")]
    assert HERE.items() <= below(tmp_path).items()


def test_an_archive_that_was_put_there_is_not_fetched(site: Site, tmp_path: Path) -> None:
    (tmp_path / "downloaded/small").mkdir(parents=True)
    (tmp_path / "downloaded/small/set.tar.gz").write_bytes(ARCHIVE)
    get(site, tmp_path)
    assert site.requests == [("/small/list.gz", "")]
    assert HERE.items() <= below(tmp_path).items()


def test_another_file_of_that_name_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "downloaded/small").mkdir(parents=True)
    (tmp_path / "downloaded/small/set.tar.gz").write_bytes(b"mine")
    with pytest.raises(ValueError, match=rf"set\.tar\.gz: found 4 bytes, expected {len(ARCHIVE)}"):
        get(site, tmp_path)
    assert (tmp_path / "downloaded/small/set.tar.gz").read_bytes() == b"mine"


def test_what_cannot_be_fetched_says_where_from_and_where_to(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^imagenet: not fetched: https://image-net\.org") as error:
        obtain(by_name()["imagenet"], tmp_path)
    assert f"expected: {tmp_path}/imagenet/train/n01440764/*.JPEG" in str(error.value)
    assert list(tmp_path.iterdir()) == []


# ---- the records


REMOTES = [(download.name, remote) for download in DOWNLOADS for remote in download.files]


def test_records_are_whole() -> None:
    assert len({download.name for download in DOWNLOADS}) == len(DOWNLOADS)
    for download in DOWNLOADS:
        assert bool(download.files) != bool(download.by_hand)
        names = [remote.name for remote in download.files]
        assert len(set(names)) == len(names)  # a mirror and receipts know them by it

    for name, remote in REMOTES:
        if not remote.checksum:
            assert name == "miniplaces"  # nobody publishes them
            continue
        assert re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", remote.checksum)
        assert remote.size > 0
        assert remote.checksum_source != "no published checksum"


def test_checksums_are_torchvisions() -> None:
    records = {remote.name: (remote.url, remote.checksum) for _, remote in REMOTES}
    assert records["stl10_binary.tar.gz"] == (STL10.url, f"md5:{STL10.tgz_md5}")
    for name, digest in MNIST.resources:
        assert records[name] == (MNIST.mirrors[0] + name, f"md5:{digest}")
    for weights in (ResNet50_Weights.IMAGENET1K_V1, VGG16_Weights.IMAGENET1K_V1):
        name = weights.url.rpartition("/")[2]
        url, checksum = records[name]
        assert url == weights.url
        # Its first eight digits are the publisher's word, in the file's name.
        assert checksum.startswith(f"sha256:{name.removesuffix('.pth').rpartition('-')[2]}")
        size = next(remote.size for _, remote in REMOTES if remote.name == name)
        assert size / 2**20 == pytest.approx(weights.meta["_file_size"], abs=0.001)


def test_the_weights_of_resnet20_are_those_of_the_tests(real_data: Path) -> None:
    (remote,) = by_name()["resnet20"].files
    content = (real_data / "weights" / remote.name).read_bytes()
    assert (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") == (remote.size, remote.checksum)


def test_an_unknown_name_is_one_line() -> None:
    command = [sys.executable, "-m", "saliency_assay.data.download.command", "mnist", "cifar"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith("DATA: unknown download 'cifar'; did you mean 'cifar10'? valid: cifar10, ")
    assert len(run.stderr.splitlines()) == 1

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
from saliency_assay.data.download.command import by_name, described, obtain
from saliency_assay.data.download.fetch import Patience
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
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
    found = below(tmp_path)
    kept = {name: found.pop(f"downloaded/small/{name}.json") for name in ("list.gz", "set.tar.gz")}
    assert found == HERE
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


def test_what_is_there_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    first = get(site, tmp_path)
    site.asked = []
    assert get(site, tmp_path) == first
    assert site.asked == []


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"cut")])
def test_what_is_missing_or_cut_is_fetched_again(spoil, site: Site, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    get(site, tmp_path)
    spoil(tmp_path / "small/set/b.bin")
    site.asked = []
    get(site, tmp_path)
    assert site.asked == [("/small/set.tar.gz", "")]
    assert HERE.items() <= below(tmp_path).items()


def test_an_archive_that_was_put_there_is_not_fetched(site: Site, tmp_path: Path) -> None:
    (tmp_path / "downloaded/small").mkdir(parents=True)
    (tmp_path / "downloaded/small/set.tar.gz").write_bytes(ARCHIVE)
    get(site, tmp_path)
    assert site.asked == [("/small/list.gz", "")]
    assert HERE.items() <= below(tmp_path).items()


def test_another_file_of_that_name_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "downloaded/small").mkdir(parents=True)
    (tmp_path / "downloaded/small/set.tar.gz").write_bytes(b"mine")
    size = len(ARCHIVE)
    line = rf"downloaded/small/set\.tar\.gz: found 4 bytes, expected {size}; delete or move it to download it again$"
    with pytest.raises(ValueError, match=line):
        get(site, tmp_path)
    assert (tmp_path / "downloaded/small/set.tar.gz").read_bytes() == b"mine"


def test_what_cannot_be_fetched_says_where_from_and_where_to(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^imagenet: not fetched: https://image-net\.org") as error:
        obtain(by_name()["imagenet"], tmp_path)
    told = str(error.value)
    assert "register there" in told
    assert f"expected: {tmp_path}/imagenet/train/n01440764/*.JPEG" in told
    assert list(tmp_path.iterdir()) == []


# ---- the records


REMOTES = [(download.name, remote) for download in DOWNLOADS for remote in download.files]


def test_records_are_whole() -> None:
    assert len({download.name for download in DOWNLOADS}) == len(DOWNLOADS)
    for download in DOWNLOADS:
        assert bool(download.files) != bool(download.by_hand)
        names = [remote.name for remote in download.files]
        assert len(set(names)) == len(names)  # a mirror and receipts know them by it


@pytest.mark.parametrize(("name", "remote"), REMOTES, ids=lambda value: getattr(value, "name", None))
def test_a_checksum_is_whole_and_somebody_says_it(name: str, remote: Remote) -> None:
    if not remote.checksum:
        assert name == "miniplaces"  # nobody publishes them
        return
    assert re.fullmatch("md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", remote.checksum)
    assert remote.size > 0
    assert remote.checksum_source != "no published checksum"


def test_checksums_are_torchvisions() -> None:
    found = {remote.name: (remote.url, remote.checksum) for _, remote in REMOTES}
    assert found["stl10_binary.tar.gz"] == (STL10.url, f"md5:{STL10.tgz_md5}")
    for name, digest in MNIST.resources:
        assert found[name] == (MNIST.mirrors[0] + name, f"md5:{digest}")
    for weights in (ResNet50_Weights.IMAGENET1K_V1, VGG16_Weights.IMAGENET1K_V1):
        name = weights.url.rpartition("/")[2]
        url, checksum = found[name]
        assert url == weights.url
        # Its first eight digits are the publisher's word, in the file's name.
        assert checksum.startswith(f"sha256:{name.removesuffix('.pth').rpartition('-')[2]}")
        size = next(remote.size for _, remote in REMOTES if remote.name == name)
        assert size / 2**20 == pytest.approx(weights.meta["_file_size"], abs=0.001)


def test_the_weights_of_resnet20_are_those_of_the_tests(real_data: Path) -> None:
    (remote,) = by_name()["resnet20"].files
    content = (real_data / "weights" / remote.name).read_bytes()
    assert (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") == (remote.size, remote.checksum)


def test_configurations_look_where_downloads_go() -> None:
    """Every folder below data/ that a configuration names is the folder of a download."""
    text = "\n".join(path.read_text() for path in (ROOT / "config").glob("*.yaml"))
    places = {download.layout.partition("/")[0] for download in DOWNLOADS}
    named = set(re.findall(r"\bdata/([\w.-]+)", text))
    assert named
    # files that benchmarks/cifar10_images.py and benchmarks/metaquantus_images.py write
    assert named - places == {"cifar10_images", "metaquantus"}


def test_the_page_has_every_download() -> None:
    page = (ROOT / "docs/data.md").read_text()
    for download in DOWNLOADS:
        assert f"| `{download.name}` |" in page
        for remote in download.files:
            assert f"`{remote.checksum.rpartition(':')[2]}`" in page or not remote.checksum


def test_it_is_described_with_its_terms() -> None:
    told = described(by_name()["coco"])
    assert "CC BY 4.0" in told
    assert "bytes   20,405 MB" in told
    assert "not fetched: register there" in described(by_name()["imagenet"])


def test_an_unknown_name_is_one_line() -> None:
    command = [sys.executable, "-m", "saliency_assay.data.download.command", "mnist", "cifar"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.startswith(
        "DATA: unknown download 'cifar'; did you mean 'cifar10'? valid: cifar10, coco, "
    )
    assert len(run.stderr.splitlines()) == 1

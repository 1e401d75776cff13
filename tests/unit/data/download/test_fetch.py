"""Fetching from a server that cuts, forgets, changes and lies."""

import fcntl
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from web import Site, served

from saliency_assay.data.download.fetch import CHUNK, Patience, check, fetch

CONTENT = np.random.default_rng(0).bytes(3 * CHUNK + 17)
OTHER = np.random.default_rng(1).bytes(2 * CHUNK + 5)
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(attempts=3, wait=0, timeout=10)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "*")
    with served(Site({"/a.bin": CONTENT})) as site:
        yield site


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new/a.bin"


def get(site: Site, file: Path, size: int = len(CONTENT), checksum: str = MD5) -> str:
    return fetch(f"{site.url}/a.bin", file, size=size, checksum=checksum, patience=QUICK)


def whole(file: Path, content: bytes = CONTENT) -> bool:
    """Return True if the file is complete and the only one in its folder."""
    return file.read_bytes() == content and list(file.parent.iterdir()) == [file]


def kept(file: Path) -> int:
    """Bytes of the partial file; the file itself must not be there."""
    assert not file.exists()
    return file.with_name("a.bin.part").stat().st_size


def test_a_file_is_fetched_with_progress(site: Site, file: Path) -> None:
    steps: list[tuple[int, int]] = []
    digest = fetch(f"{site.url}/a.bin", file, checksum=MD5, progress=lambda *step: steps.append(step))
    assert digest == SHA256
    assert whole(file)
    assert steps[0] == (CHUNK, len(CONTENT))
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert site.requests == [("/a.bin", "")]


@pytest.mark.parametrize("checksum", [f"sha256:{SHA256}", ""])
def test_size_and_checksum_are_optional(site: Site, file: Path, checksum: str) -> None:
    assert get(site, file, size=0, checksum=checksum) == SHA256
    assert whole(file)


def test_a_cut_connection_goes_on_where_it_ended(site: Site, file: Path) -> None:
    site.cuts = [1000, CHUNK]
    assert get(site, file) == SHA256
    assert whole(file)
    assert [bytes_ for _, bytes_ in site.requests] == ["", "bytes=1000-", f"bytes={1000 + CHUNK}-"]


def test_a_killed_download_goes_on_in_the_next(site: Site, file: Path) -> None:
    site.cuts = [5000, 0, 0, 0]
    message = f"^{site.url}/a.bin: gave up after 3 attempts: .* after 5000 of {len(CONTENT)} bytes"
    with pytest.raises(ValueError, match=message):
        get(site, file)
    assert kept(file) == 5000
    site.cuts, site.requests = [], []
    assert get(site, file) == SHA256
    assert whole(file)
    assert site.requests == [("/a.bin", "bytes=5000-")]


def test_a_server_without_ranges_begins_anew(site: Site, file: Path) -> None:
    site.ranges, site.cuts = False, [1000]
    assert get(site, file) == SHA256
    assert whole(file)


def test_a_server_that_names_no_version_is_asked_for_all(site: Site, file: Path) -> None:
    site.versions, site.cuts = False, [1000]
    assert get(site, file) == SHA256
    assert whole(file)
    assert site.requests == [("/a.bin", "")] * 2


def test_a_file_that_changed_meanwhile_begins_anew(site: Site, file: Path) -> None:
    """Half of the one and half of the other has the right length, and would pass where no checksum is known."""
    site.cuts = [1000, 0, 0]
    with pytest.raises(ValueError, match="1000 bytes are kept"):
        get(site, file, size=0, checksum="")
    site.files["/a.bin"] = OTHER
    assert get(site, file, size=0, checksum="") == hashlib.sha256(OTHER).hexdigest()
    assert whole(file, OTHER)


def test_a_longer_partial_file_than_the_server_has_begins_anew(site: Site, file: Path) -> None:
    file.parent.mkdir()
    file.with_name("a.bin.part").write_bytes(CONTENT + b"more")
    file.with_name("a.bin.part.version").write_text(site.version_of("/a.bin"))
    assert get(site, file) == SHA256
    assert whole(file)


def test_a_partial_file_that_is_whole_is_not_fetched_again(site: Site, file: Path) -> None:
    file.parent.mkdir()
    file.with_name("a.bin.part").write_bytes(CONTENT)
    file.with_name("a.bin.part.version").write_text(site.version_of("/a.bin"))
    assert get(site, file) == SHA256
    assert whole(file)
    assert site.requests == []


def test_a_wrong_checksum_leaves_nothing(site: Site, file: Path) -> None:
    with pytest.raises(ValueError, match=f"found MD5 {MD5.removeprefix('md5:')}, expected {'0' * 32}"):
        get(site, file, checksum=f"md5:{'0' * 32}")
    assert list(file.parent.iterdir()) == []


def test_another_size_is_refused_before_the_first_byte(site: Site, file: Path) -> None:
    with pytest.raises(ValueError, match=f"the server has {len(CONTENT)} bytes, expected 99$"):
        get(site, file, size=99)
    assert kept(file) == 0


def test_a_server_that_does_not_say_how_much_there_is(site: Site, file: Path) -> None:
    site.says_length = False
    with pytest.raises(ValueError, match="does not report the size of the file"):
        get(site, file, size=0)
    assert get(site, file) == SHA256


@pytest.mark.parametrize("status", [403, 404])
def test_a_missing_file_is_reported_at_once(site: Site, file: Path, status: int) -> None:
    site.statuses = [status]
    with pytest.raises(ValueError, match=f"a.bin: the server returned {status} "):
        get(site, file)
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_in_trouble_is_asked_again(site: Site, file: Path, status: int) -> None:
    site.statuses = [status, status]
    assert get(site, file) == SHA256
    site.statuses, site.requests = [status] * 9, []
    file.unlink()
    with pytest.raises(ValueError, match=f"gave up after 3 attempts: the server returned {status} "):
        get(site, file)
    assert len(site.requests) == 3


def test_another_address_is_followed(site: Site, file: Path) -> None:
    site.moved["/old.bin"] = f"{site.url}/a.bin"
    assert fetch(f"{site.url}/old.bin", file, checksum=MD5, patience=QUICK) == SHA256
    site.moved["/loop"] = f"{site.url}/loop"
    with pytest.raises(ValueError, match="/loop: the server returned 302 "):
        fetch(f"{site.url}/loop", file.with_name("loop"), patience=QUICK)


def test_no_server_is_reported(site: Site, file: Path) -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:1/a: gave up after 3 attempts: .*refused"):
        fetch("http://127.0.0.1:1/a", file, patience=QUICK)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://somewhere/a", "data/a"])
def test_only_the_web_is_asked(file: Path, url: str) -> None:
    with pytest.raises(ValueError, match=f"^{url}: expected an address that begins with http:// or"):
        fetch(url, file)
    assert not file.parent.exists()


def test_too_little_space_is_reported_before_the_first_byte(
    site: Site, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1234))
    with pytest.raises(OSError, match=f"new: {len(CONTENT)} more bytes are needed, 1234 are free"):
        get(site, file)
    assert kept(file) == 0


def test_a_disk_that_fills_keeps_what_came(
    site: Site, file: Path, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 40))
    with pytest.raises(OSError, match="No space left on device"):
        get(site, full_disk / "a.bin")
    assert 0 < kept(full_disk / "a.bin") < len(CONTENT)


def test_two_downloads_of_one_file(site: Site, file: Path) -> None:
    file.parent.mkdir()
    with file.with_name("a.bin.part").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match=r"a\.bin\.part: another process is downloading this file$"):
            get(site, file)
    assert site.requests == []


def test_a_file_that_is_there_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(CONTENT)
    assert check(file, len(CONTENT), MD5) == SHA256
    with pytest.raises(ValueError, match=f"found {len(CONTENT)} bytes, expected 7; delete or move it"):
        check(file, 7, MD5)
    with pytest.raises(ValueError, match=f"found MD5 {MD5[4:]}, expected 00; delete or move it"):
        check(file, 0, "md5:00")

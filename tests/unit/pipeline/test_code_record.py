"""Files behind digests of code, kept from one plan to the next."""

from pathlib import Path

import pytest

from saliency_assay.pipeline import code_record
from saliency_assay.pipeline.code_digest import Code
from saliency_assay.pipeline.code_record import CodeRecord


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def code(digest: str, **files: str) -> Code:
    return Code(digest, (), {Path(f"{name}.py").resolve(): content for name, content in files.items()})


def test_a_digest_is_traced_to_the_edited_files_by_a_later_plan() -> None:
    record = CodeRecord(Path("folder/record"))
    record.add(code("old", cam="1", gradient="1", shared="1"))
    record.add(code("old", cam="1", gradient="1", shared="1"))
    assert len(Path("folder/record").read_text().splitlines()) == 1
    later = CodeRecord(Path("folder/record"))
    later.add(code("new", cam="2", gradient="1", shared="3", added="1"))
    assert later.changed_files("old", "new") == ["cam.py", "shared.py"]
    assert CodeRecord(Path("folder/record")).changed_files("new", "old") == ["cam.py", "shared.py"]


def test_a_moved_file_is_named_where_no_other_differs() -> None:
    record = CodeRecord(Path("record"))
    record.add(code("old", cam="1", before="1"))
    record.add(code("new", cam="1", after="1"))
    assert record.changed_files("old", "new") == ["after.py", "before.py"]


def test_a_digest_that_no_plan_recorded_has_no_files() -> None:
    record = CodeRecord(Path("record"))
    record.add(code("new", cam="1"))
    assert record.changed_files("unknown", "new") == record.changed_files("new", "unknown") == []


def test_a_line_that_is_not_complete_is_ignored() -> None:
    CodeRecord(Path("record")).add(code("old", cam="1"))
    with Path("record").open("a") as file:
        file.write('{"half": {"a')
    record = CodeRecord(Path("record"))
    record.add(code("new", cam="2"))
    assert record.changed_files("old", "new") == ["cam.py"]


def test_the_older_half_of_a_long_record_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_record, "LARGEST", 100)
    record = CodeRecord(Path("record"))
    for number in range(4):
        record.add(code(f"digest{number}", cam=str(number)))
    assert CodeRecord(Path("record")).changed_files("digest2", "digest3") == ["cam.py"]
    assert CodeRecord(Path("record")).changed_files("digest0", "digest1") == []

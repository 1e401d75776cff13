"""Records in pictures of the documentation."""

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from tools import picture_records
from tools.picture_records import PROGRAMS, Program, check_pictures, record_of, with_record, write_record

SVG = b"<?xml version='1.0'?>\n<svg width='1' height='1'><path d='M0 0'/></svg>"


def image(kind: str) -> bytes:
    """Return the content of a small picture."""
    if kind == "svg":
        return SVG
    content = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["png", "jpeg", "svg"])
def test_a_record_replaces_an_earlier_one_and_keeps_the_picture(kind: str, tmp_path: Path) -> None:
    plain = image(kind)
    content = plain
    for code in ("a", "bcd", "e"):
        content = with_record(content, json.dumps({"picture": {"code": code}}))
        (tmp_path / "file").write_bytes(content)
        assert record_of(tmp_path / "file") == {"code": code}
    assert len(content) == len(with_record(plain, json.dumps({"picture": {"code": "e"}})))
    assert content.count(b'"picture"') == 1
    if kind != "svg":
        with Image.open(io.BytesIO(plain)) as before, Image.open(io.BytesIO(content)) as after:
            assert before.tobytes() == after.tobytes()


def test_another_kind_of_file_is_refused() -> None:
    with pytest.raises(ValueError, match="found a file that begins with b'GIF8', expected PNG, JPEG or SVG"):
        with_record(b"GIF89a", "{}")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """The only program, with one picture that has a record of the present code."""
    program = Program(
        "study_pictures", (tmp_path / "a.png",), ("saliency_assay.plotting.palette",), ("palette.py",)
    )
    monkeypatch.setattr(picture_records, "PROGRAMS", (program,))
    monkeypatch.setattr(picture_records, "DOCS", tmp_path)
    program.pictures[0].write_bytes(image("png"))
    write_record(program.pictures[0])
    return program


def test_a_picture_of_the_present_code_is_no_problem(program: Program) -> None:
    assert not list(check_pictures())
    record = record_of(program.pictures[0])
    assert record.keys() == {"program", "version", "date", "code"}
    assert record["program"] == "python -m tools.study_pictures"


def test_a_picture_is_older_than_its_code(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "digest", lambda self: "another")
    [problem] = check_pictures()
    assert problem.message.endswith("older than the code that it shows; run python -m tools.study_pictures")


def test_pictures_without_record_program_or_file_are_problems(program: Program) -> None:
    path = program.pictures[0]
    path.write_bytes(image("png"))
    path.with_name("b.svg").write_bytes(SVG)
    messages = [problem.message for problem in check_pictures()]
    assert messages == [
        "no program makes this picture; add one to PROGRAMS in tools/picture_records.py",
        "no record of its version and code; run python -m tools.study_pictures",
    ]
    path.unlink()
    assert [problem.message for problem in check_pictures()][
        1
    ] == "missing; run python -m tools.study_pictures"
    with pytest.raises(ValueError, match=r"b\.svg: found no program that makes this picture"):
        write_record(path.with_name("b.svg"))


def test_every_program_exists_and_shows_code() -> None:
    for program in PROGRAMS:
        assert (picture_records.ROOT / f"tools/{program.name}.py").is_file()
        if program.roots:
            files = picture_records.code_of(*program.roots).files
            assert any(program._is_shown(path) for path in files), program.name

"""Methods and metrics that were not computed, in the last lines of a run and on pages."""

import json
from pathlib import Path

import pytest
from generated_studies import generated_study

from saliency_assay.pipeline.partial import SENTENCES
from saliency_assay.report.outcome import print_outcome
from saliency_assay.report.pages.overview import overview_page, summary_page

SENTENCE = "Not computed: M in S: an error of <b>"


def test_the_last_lines_list_what_was_not_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "some.yaml"
    configuration.write_text(f"results: {json.dumps(str(tmp_path))}\n")
    assert print_outcome(configuration) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "report.html").touch()
    assert print_outcome(configuration) == 0
    report = f"Report: {tmp_path / 'report.html'}"
    assert capsys.readouterr().out.splitlines() == [report]
    (tmp_path / SENTENCES).parent.mkdir()
    (tmp_path / SENTENCES).write_text(json.dumps([SENTENCE]))
    assert print_outcome(configuration) == 1
    assert capsys.readouterr().out.splitlines() == [report, SENTENCE]


def test_pages_list_what_was_not_computed() -> None:
    result = generated_study(3, 1, 1)
    pages = (
        overview_page([result], seeds=[0], ran="", not_computed=[SENTENCE]),
        summary_page(result, not_computed=[SENTENCE]),
    )
    for page in pages:
        assert "Not computed: M in S: an error of &lt;b&gt;" in page
    plain = (overview_page([result], seeds=[0], ran=""), summary_page(result))
    assert not any("Not computed" in page for page in plain)

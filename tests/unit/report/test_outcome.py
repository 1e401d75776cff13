"""Methods and metrics that were not computed, in the last lines of a run and on pages."""

import json
from pathlib import Path

import pytest
from generated_studies import generated_study

from saliency_assay.report.not_computed import not_computed_table
from saliency_assay.report.outcome import print_outcome
from saliency_assay.report.pages.overview import overview_page, summary_page
from saliency_assay.runtime.failure import Failure

SENTENCE = "Not computed: M in S: an error of <b>"
STUDY = {
    **{"name": "s", "label": "S", "methods": ["a", "b", "c"], "rule_labels": {"score_bam": "IDR"}},
    "labels": {
        "methods": {"a": "A", "b": "B", "c": "C"},
        "metrics": {"one": "One", "all": "All", "pre": "Pre"},
    },
}


def test_the_last_lines_list_what_was_not_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "some.yaml"
    configuration.write_text(f"results: {json.dumps(str(tmp_path))}\nstudies: {{s: , other: }}\n")
    assert print_outcome(configuration) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "report.html").touch()
    assert print_outcome(configuration) == 0
    report = f"Report: {tmp_path / 'report.html'}"
    assert capsys.readouterr().out.splitlines() == [report]
    (tmp_path / "tables/s").mkdir(parents=True)
    description = {**STUDY, "labels": {"methods": {"m": "M"}}, "methods": ["m"]}
    failures = [Failure("attribute", {"method": "m"}, "an error of <b>", traceback="several\nlines")]
    not_computed_table(failures, description).to_csv(tmp_path / "tables/s/not_computed.csv", index=False)
    assert print_outcome(configuration) == 1
    assert capsys.readouterr().out.splitlines() == [report, SENTENCE]


def test_sentences_name_the_method_the_metric_or_both() -> None:
    failures = [
        Failure("attribute", {"method": "c", "seed": "0"}, "no map"),
        Failure("attribute", {"method": "c", "seed": "1"}, "no other map"),
        Failure("score", {"method": "a", "metric": "one"}, "no score"),
        Failure("score", {"method": "a", "metric": "one"}, "no score"),
        Failure("score", {"method": "a", "metric": "all"}, "first"),
        Failure("score", {"method": "b", "metric": "all"}, "second"),
        Failure("respond", {"metric": "pre"}, "no response"),
        Failure("score_bam", {"method": "b", "study": "s"}, "no share"),
    ]
    table = not_computed_table(failures, STUDY)
    assert list(table["sentence"].unique()) == [
        "Not computed: C in S: no map",
        "Not computed: One of A in S: no score",
        "Not computed: All in S: first",
        "Not computed: Pre in S: no response",
        "Not computed: IDR of B in S: no share",
    ]
    assert list(table["reason"]) == [each.reason for place, each in enumerate(failures) if place != 3]


@pytest.mark.parametrize(("sentences", "count"), [([SENTENCE], 1), ([], 0)])
def test_pages_list_what_was_not_computed(sentences: list[str], count: int) -> None:
    result = generated_study(3, 1, 1)
    overview = overview_page([result], seeds=[0], ran="", not_computed=sentences)
    for page in (overview, summary_page(result, not_computed=sentences)):
        assert page.count("Not computed: M in S: an error of &lt;b&gt;") == count

"""Keys of entries in texts for people, and names of pages."""

from pipelines import TINY, params


def test_the_page_of_a_study_has_no_colon() -> None:
    """A colon ends the name of a reStructuredText target, and Snakemake makes each page one."""
    named = {**TINY["studies"]["digits"], "label": "Digits: 8 × 8 pixels"}
    studies = params({**TINY, "studies": {**TINY["studies"], "digits": named}}).studies
    assert studies.report_page({"study": "digits"}) == "Study Digits – 8 × 8 pixels"

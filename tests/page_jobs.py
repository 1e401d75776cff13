"""Jobs of the tiny configuration that write pages of sentences, which follow from other jobs."""

import re

STUDIES = {
    "bam": ("f_o", "f_s"),
    "captions": ("f_picture", "f_caption"),
    "digits": ("digits",),
    "retrain": ("searched",),
}
SETS = {"bam": "bam_os", "captions": "captioned_both", "digits": "digits", "retrain": "digits"}
FIRST = {"bam": "gradcam", "captions": "gradient", "digits": "gradient", "retrain": "gradient"}
MADE = {"bam": "compose_bam bam_os", "captions": "compose_caption captioned_both"}
JUDGED = {"bam": "check_claims bam", "retrain": "tabulate_leakage retrain"}
PAGES = {*(f"summarize {study}" for study in STUDIES), "overview", "document_methods", "provenance"}


def with_page_jobs(jobs: set[str], *, configured: bool = False) -> set[str]:
    """Add the jobs that write pages on what ``jobs`` make; ``configured``: the configuration has changed."""

    def any_of(pattern: str) -> bool:
        return any(re.fullmatch(pattern, job) for job in jobs)

    pages = (
        {"overview", "provenance"} if jobs - {"report", "all"} else {"provenance"} if configured else set()
    )
    for study, models in STUDIES.items():
        made = any_of(MADE.get(study, "build_data digits"))
        first = rf"attribute {models[0]} 0 {SETS[study]} {FIRST[study]}"
        sources = [f"tabulate_reliability {study}", first, *(rf"evaluate {model} \d" for model in models)]
        if made or any(map(any_of, sources)) or JUDGED.get(study) in jobs:
            pages.add(f"summarize {study}")
        drawn = any(any_of(rf"attribute {model} 0 {SETS[study]} \w+") for model in models)
        if made or drawn or f"tabulate_reliability {study}" in jobs:
            pages.add("document_methods")
    return jobs | pages

"""Jobs of the tiny configuration: jobs of pages that depend on other jobs, and combined jobs."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from checkout import Checkout

STUDIES = {
    "bam": ("f_o", "f_s"),
    "captions": ("f_picture", "f_caption"),
    "digits": ("digits",),
    "retrain": ("searched",),
}
SETS = {"bam": "bam_os", "captions": "captioned_both", "digits": "digits", "retrain": "digits"}
MADE = {"bam": "compose_bam bam_os", "captions": "compose_caption captioned_both"}
JUDGED = {"bam": "check_claims bam", "retrain": "tabulate_leakage retrain"}
TRAINED_ON = {
    **dict.fromkeys(("f_o", "f_s"), "bam_os"),
    **dict.fromkeys(("f_picture", "f_caption"), "captioned_both"),
    **dict.fromkeys(("digits", "searched"), "digits"),
    "f_k01": "bam_os_k01",
    "f_k10": "bam_os_k10",
}
PAGES = {*(f"summarize {study}" for study in STUDIES), "overview", "document_methods", "provenance"}


def with_page_jobs(jobs: set[str], *, configured: bool = False) -> set[str]:
    """Add the jobs that write pages about the results of ``jobs``; ``configured``: the configuration has changed."""

    def any_of(pattern: str) -> bool:
        return any(re.fullmatch(pattern, job) for job in jobs)

    pages = (
        {"overview", "provenance"} if jobs - {"report", "all"} else {"provenance"} if configured else set()
    )
    for study, models in STUDIES.items():
        made = any_of(MADE.get(study, "build_data digits"))
        explained = any(any_of(rf"attribute {model} 0 {SETS[study]} \w+") for model in models)
        sources = [f"tabulate_reliability {study}", *(rf"evaluate {model} \d" for model in models)]
        if made or explained or any(map(any_of, sources)) or JUDGED.get(study) in jobs:
            pages.add(f"summarize {study}")
        if made or explained or f"tabulate_reliability {study}" in jobs:
            pages.add("document_methods")
    return jobs | pages


def group_of(job: str) -> str:
    """Return the name of the combined job of which a job would be a part; its own name if there is none."""
    rule, *values = job.split()
    if rule == "attribute" and len(values) == 4:
        return "attribute__{}__seed{}__{}".format(*values)
    if rule in ("respond", "score"):
        return "score__{}__{}__seed{}__{}".format(*values)
    if rule == "evaluate" and values[0] in TRAINED_ON:
        return f"attribute__{values[0]}__seed{values[1]}__{TRAINED_ON[values[0]]}"
    if rule in ("score_bam", "score_series", "score_independence", "score_concepts"):
        return f"{rule}__{values[0]}__seed{values[1]}"
    if rule.startswith("tabulate_") or rule == "check_claims":
        return f"tabulate__{values[0]}"
    return f"plot__{values[0]}" if values and rule.startswith(("plot_", "summarize")) else job


def combined(jobs: Collection[str], configured: Collection[str], alone: Collection[str] = ()) -> set[str]:
    """Return ``jobs`` with combined jobs in place of their parts.

    Args:
        jobs: jobs as rules and wildcards.
        configured: all jobs of the configuration, with or without those of ``jobs``.
        alone: jobs that are never combined.
    """
    sizes = Counter(group_of(job) for job in {*jobs, *configured} - {*alone})
    return {job if job in alone or sizes[group_of(job)] == 1 else group_of(job) for job in jobs}


class Dependents:
    """Jobs that rerun after combined jobs, all of whose outputs count as new, even those of unchanged parts."""

    def __init__(self, checkout: Checkout, jobs: Collection[str]) -> None:
        """Read Snakemake's graph of ``jobs``."""
        status, printed = checkout.snakemake("--dag", "--nolock")
        assert status == 0, printed
        labels: Mapping[str, str] = dict(re.findall(r'^\s+(\d+)\[label = "([^"\\]+)', printed, re.MULTILINE))
        rules = defaultdict(set)
        for job in jobs:
            rules[job.split()[0]].add(job)
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)
        for source, target in re.findall(r"^\s+(\d+) -> (\d+)", printed, re.MULTILINE):
            # Of the jobs that depend on a combined job and are not in ``jobs``, each rule has one.
            self._dependents[labels[source]] |= rules.get(labels[target], {labels[target]})

    def with_dependents(self, jobs: Collection[str]) -> set[str]:
        """Return ``jobs`` and all jobs that depend on the combined jobs among them."""
        reached, pending = set(jobs), [job for job in jobs if "__" in job]
        while pending:
            new = self._dependents[pending.pop().split()[0]] - reached
            reached |= new
            pending += new
        return reached

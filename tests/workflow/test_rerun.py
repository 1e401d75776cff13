"""A table of edits, and exactly the jobs that each of them runs again."""

import os
import shutil
from collections.abc import Callable

import pytest
from checkout import SMALLEST, Checkout
from tiny_jobs import PAGES, Dependents, combined, with_page_jobs

Edit = Callable[[Checkout], None]

BAM_METHODS = ("gradcam", "random", "edge")
# Of each model the sets that the BAM study explains it on.
COMPARED = {
    "f_o": ("bam_os", "bam_os_scale"),
    "f_s": ("bam_os", "bam_os_scale", "bam_0s", "bam_delta_seed0"),
    "f_k01": ("bam_os_k01",),
    "f_k10": ("bam_os_k10",),
}
CAPTIONED = ("f_picture", "f_caption")

ALL = {
    "write_sources bam",
    "collect_bam bam",
    *(f"compose_bam bam_{member}" for member in ("os", "0s", "og", "os_scale", "os_k01", "os_k10", "0s_k")),
    *(f"compose_caption captioned_{member}" for member in ("both", "image", "caption")),
    "build_data digits",
    *(
        f"{rule} {model} 0"
        for rule in ("train", "evaluate")
        for model in (*COMPARED, *CAPTIONED, "digits", "searched")
    ),
    "trial searched 0",
    "trial searched 1",
    "select_hyperparameters searched",
    *(
        f"attribute {model} 0 {data} {method}"
        for model, sets in COMPARED.items()
        for data in sets
        for method in BAM_METHODS
    ),
    *(
        f"{job} {model} 0 captioned_both {method}"
        for job in ("attribute", "score infidelity_halves", "score block_attribution")
        for model in CAPTIONED
        for method in ("gradient", "optimal_halves")
    ),
    *(f"respond infidelity_halves {model} 0 captioned_both" for model in CAPTIONED),
    "tabulate_caption captions",
    "plot_caption captions",
    "plot_gallery captions",
    "attribute digits 0 digits gradient",
    "attribute digits 0 digits smooth",
    *(f"respond {metric} digits 0 digits" for metric in ("faithfulness", "infidelity")),
    *(
        f"score {metric} digits 0 digits {method}"
        for metric in ("faithfulness", "infidelity", "sensitivity")
        for method in ("gradient", "smooth")
    ),
    "tabulate_scores digits",
    "plot_scores digits",
    *(f"plot_metric digits {metric} scores" for metric in ("faithfulness", "infidelity", "sensitivity")),
    "plot_scatter digits",
    *(
        f"{rule} {study}"
        for rule in ("tabulate_reliability", "plot_reliability")
        for study in ("bam", "captions", "digits", "retrain")
    ),
    *(
        f"{rule} bam 0 {method}"
        for rule in ("score_bam", "score_series", "score_independence")
        for method in BAM_METHODS
    ),
    *(f"score_concepts bam 0 {model}" for model in COMPARED),
    "optimize_patch bam 0",
    "tabulate_bam bam",
    *(
        f"{rule} bam"
        for rule in (
            "plot_bam",
            "tabulate_series",
            "plot_series",
            "tabulate_concepts",
            "plot_concepts",
            "tabulate_independence",
            "plot_independence",
            "plot_pairs",
            "check_claims",
        )
    ),
    "plot_gallery bam",
    "plot_gallery digits",
    "attribute searched 0 digits gradient",
    "remask retrain iteroar gradient shared 0 0",
    "remask retrain iteroar gradient mean 0 1",
    "retrain retrain iteroar gradient mean 0 1",
    "retrain retrain iteroar gradient mean 0 2",
    "measure_mask_leakage retrain iteroar gradient mean 0 2",
    "score_retrain retrain iteroar gradient mean 0",
    "tabulate_retrain retrain",
    "plot_retrain retrain",
    "plot_masks retrain iteroar mean",
    "tabulate_leakage retrain",
    "tabulate_rank_agreement retrain",
    "plot_leakage retrain",
    "plot_gallery retrain",
    "plot_training",
    *PAGES,
    "report",
    "all",
}
RELIABILITY = (
    "reliability",
    "agreement",
    "order",
    "pairs",
    "consistency",
    "rankings",
    "variance",
    "controls",
)
NOTHING: set[str] = set()
REPORT = {"report", "all"}


def reliable(study: str) -> set[str]:
    """Return the jobs that tabulate and plot the reliability of a study's scores."""
    return {f"tabulate_reliability {study}", f"plot_reliability {study}"}


def rated(study: str) -> set[str]:
    """Return the jobs that read the scores that rate a study's methods."""
    return reliable(study) | {f"plot_gallery {study}"}


JUDGED = {"tabulate_bam bam", "plot_bam bam", "check_claims bam", *REPORT}
TABULATED = JUDGED | rated("bam")
SERIES = {"tabulate_series bam", "plot_series bam"}
CONCEPTS = {"tabulate_concepts bam", "plot_concepts bam", *SERIES}
INDEPENDENCE = {"tabulate_independence bam", "plot_independence bam"}
SHOWN = {*SERIES, *INDEPENDENCE, "plot_pairs bam"} | TABULATED
SCORED = {"tabulate_scores digits", "plot_scores digits", "plot_scatter digits", *rated("digits"), *REPORT}


def of_metric(*metrics: str) -> set[str]:
    """Scores of metrics in the fidelity study, and what shows them."""
    scores = {
        f"score {metric} digits 0 digits {method}" for metric in metrics for method in ("gradient", "smooth")
    }
    return scores | {f"plot_metric digits {metric} scores" for metric in metrics} | SCORED


FIDELITY = of_metric("faithfulness", "infidelity", "sensitivity")
SMOOTH = {"attribute digits 0 digits smooth"} | {job for job in FIDELITY if not job.endswith(" gradient")}
GRADIENT = {"attribute digits 0 digits gradient"} | {job for job in FIDELITY if not job.endswith(" smooth")}
DIGITS = {*GRADIENT, *SMOOTH, "respond faithfulness digits 0 digits", "respond infidelity digits 0 digits"}


def of_method(*methods: str) -> set[str]:
    """Maps and scores of methods in the BAM study, and what shows them."""
    runs = [f"attribute {model} 0 {data}" for model, sets in COMPARED.items() for data in sets]
    runs += [f"{rule} bam 0" for rule in ("score_bam", "score_series", "score_independence")]
    return {f"{run} {method}" for run in runs for method in methods} | SHOWN


SCORED_BAM = ("score_bam", "score_series", "score_independence", "score_concepts")


def of_rules(*rules: str) -> set[str]:
    """All jobs of these rules."""
    return {job for job in ALL if job.split()[0] in rules}


SEARCH = {"trial searched 0", "trial searched 1", "select_hyperparameters searched"}
RETRAINED_SHOWN = of_rules(
    "tabulate_retrain",
    "plot_retrain",
    "plot_masks",
    "tabulate_leakage",
    "plot_leakage",
    "tabulate_rank_agreement",
)
RETRAINED_SHOWN |= rated("retrain") | REPORT
REMASKED = of_rules("remask", "retrain", "measure_mask_leakage", "score_retrain") | RETRAINED_SHOWN
CAPTIONED_GRADIENT = {job for job in ALL if "captioned" in job and job.endswith("gradient")}
CAPTION_TABLES = {"tabulate_caption captions", "plot_caption captions", *rated("captions")}
CAPTIONED_SHOWN = {*CAPTION_TABLES, *REPORT}
EXPLAINED_GRADIENT = {"attribute searched 0 digits gradient", *GRADIENT, *REMASKED}
RETRAINED = {
    "train searched 0",
    "evaluate searched 0",
    "plot_training",
    *(EXPLAINED_GRADIENT - GRADIENT),
    *REMASKED,
}
ON_CAPTIONS = {
    *(job for job in ALL if "caption" in job.replace("score_caption", "")),
    *(f"{rule} {model} 0" for rule in ("train", "evaluate") for model in CAPTIONED),
}
ON_DIGITS = {"train digits 0", "evaluate digits 0", *DIGITS, *RETRAINED, *SEARCH, *ON_CAPTIONS}


def comment(file: str) -> Edit:
    return lambda checkout: checkout.edit(file, lambda text: f"{text}\n# A remark.\n")


def prose(file: str) -> Edit:
    """Another word in the first docstring."""
    return lambda checkout: checkout.edit(file, lambda text: text.replace('"""', '"""Truly: ', 1))


def code(file: str) -> Edit:
    return lambda checkout: checkout.edit(file, lambda text: f"{text}\nADDED = 1\n")


def text(file: str) -> Edit:
    return lambda checkout: checkout.edit(file, lambda text: f"{text}\nMore is said.\n")


class Configured:
    """Another value in the configuration."""

    def __init__(self, changes: dict[str, object]) -> None:
        self.changes = changes

    def __call__(self, checkout: Checkout) -> None:
        checkout.configure(**self.changes)


def configured(**changes: object) -> Edit:
    return Configured(changes)


def there_and_back(file: str) -> Edit:
    """As by two calls of ``git checkout``: the text of old, written anew."""

    def edit(checkout: Checkout) -> None:
        before = (checkout.root / file).read_text()
        code(file)(checkout)
        checkout.edit(file, lambda text: before)

    return edit


def touch_everything(checkout: Checkout) -> None:
    """Every file becomes newer than all that were made of it: the newest of before is now the oldest."""
    paths = [path for path in checkout.root.rglob("*") if ".snakemake" not in path.parts]
    paths.sort(key=lambda path: path.lstat().st_mtime_ns, reverse=True)
    start = paths[0].lstat().st_mtime
    for seconds, path in enumerate(paths, 1):
        os.utime(path, (start + seconds, start + seconds), follow_symlinks=False)


METHODS = "src/saliency_assay/methods"
EDITS: dict[str, tuple[Edit, set[str]]] = {
    "every file touched": (touch_everything, NOTHING),
    "a comment in a method": (comment(f"{METHODS}/cam.py"), NOTHING),
    "a method's docstring": (prose(f"{METHODS}/cam.py"), NOTHING),
    "a method edited there and back": (there_and_back(f"{METHODS}/cam.py"), NOTHING),
    "a comment in a script": (comment("workflow/scripts/train.py"), NOTHING),
    "another method in the registry": (code(f"{METHODS}/__init__.py"), NOTHING),
    "code of one method": (code(f"{METHODS}/cam.py"), of_method("gradcam") | SMOOTH),
    "code of a method of the other study": (
        code(f"{METHODS}/gradient.py"),
        EXPLAINED_GRADIENT | CAPTIONED_GRADIENT | CAPTIONED_SHOWN,
    ),
    "code of what smooths a method": (code(f"{METHODS}/smoothing.py"), SMOOTH),
    "code of a method that no study uses": (code(f"{METHODS}/path.py"), NOTHING),
    "a method's parameter": (configured(methods__gradcam__relu=False), of_method("gradcam") | SMOOTH),
    "a method's label": (
        configured(methods__gradcam__label="GC"),
        {f"plot_{name} bam" for name in ("bam", "gallery", "independence", "pairs", "reliability", "series")}
        | {"check_claims bam", "document_methods", *REPORT},
    ),
    "another method in the study": (
        configured(studies__bam__methods=["gradcam", "random", "edge", "gradient"]),
        of_method("gradient"),
    ),
    # The combined jobs of the maps and scores, whose other parts are unchanged.
    "a method less in the study": (
        configured(studies__bam__methods=["gradcam", "random"]),
        of_method("gradcam"),
    ),
    "code of the metrics": (
        code("src/saliency_assay/studies/bam/mcs_and_idr.py"),
        of_rules("score_bam", "score_series", "score_independence") | SERIES | INDEPENDENCE | TABULATED,
    ),
    "how changes without effect are sought": (
        configured(metrics__iir__steps=4),
        {"optimize_patch bam 0", *(job for job in ALL if "bam_delta" in job)}
        | of_rules("score_independence", "plot_pairs", "check_claims")
        | INDEPENDENCE
        | rated("bam")
        | REPORT,
    ),
    "sizes of a variant": (
        configured(data__bam__variant_smallest=0.2),
        {"compose_bam bam_os_scale", "evaluate f_o 0", "evaluate f_s 0", "plot_training"}
        | {job for job in ALL if "bam_os_scale" in job}
        | {"score_concepts bam 0 f_o", "score_concepts bam 0 f_s"}
        | of_rules("score_bam", "score_independence")
        | CONCEPTS
        | INDEPENDENCE
        | TABULATED,
    ),
    "code of one metric": (code("src/saliency_assay/metrics/sensitivity_max.py"), of_metric("sensitivity")),
    "code of a metric with model responses": (
        code("src/saliency_assay/metrics/faithfulness.py"),
        {"respond faithfulness digits 0 digits", *of_metric("faithfulness")},
    ),
    "code of the engine": (
        code("src/saliency_assay/metrics/perturbation.py"),
        {"respond faithfulness digits 0 digits", "respond infidelity digits 0 digits", *FIDELITY, *REMASKED}
        | {job for job in ALL if job.startswith(("respond infidelity_halves", "score infidelity_halves"))}
        | {job for job in ALL if job.startswith("score block_attribution")}
        | CAPTION_TABLES,
    ),
    "another metric in the registry": (code("src/saliency_assay/metrics/__init__.py"), NOTHING),
    "what rates the methods of one kind of study": (
        code("src/saliency_assay/studies/caption/rated_scores.py"),
        {*rated("captions"), *REPORT},
    ),
    "a parameter that only the metric reads": (
        configured(metrics__infidelity__rescale=True),
        of_metric("infidelity"),
    ),
    "a parameter that the model responses read": (
        configured(metrics__infidelity__largest=3),
        {"respond infidelity digits 0 digits", *of_metric("infidelity")},
    ),
    "a metric less in the study": (
        configured(studies__digits__metrics=["faithfulness", "infidelity"]),
        SCORED - {"plot_scatter digits"},
    ),
    "what a paper printed of reliability": (
        configured(studies__digits__printed_alpha={"infidelity": {"without": 0.4}}),
        reliable("digits") | REPORT,
    ),
    "the data's seed": (
        configured(data__bam__seed=1),
        ALL - PAGES - {"build_data digits"} - ON_DIGITS | {"plot_training"} | REPORT,
    ),
    "the other data's seed": (configured(data__digits__seed=1), {"build_data digits", *ON_DIGITS}),
    "a model's training": (
        configured(models__f_o__training__epochs=3),
        {
            "train f_o 0",
            "evaluate f_o 0",
            *(job for job in ALL if job.startswith("attribute f_o 0")),
            *of_rules("score_bam", "plot_training"),
            "score_concepts bam 0 f_o",
            *CONCEPTS,
            *TABULATED,
        },
    ),
    "a further seed": (
        configured(seeds=[0, 1]),
        {job.replace(" 0", " 1", 1) for job in of_rules("train", "evaluate", "optimize_patch", *SCORED_BAM)}
        | {
            job.replace(" 0", " 1", 1).replace("seed0", "seed1")
            for job in of_method("gradcam", "random", "edge") - SHOWN
        }
        | {job.replace(" 0", " 1", 1) for job in of_rules("respond", "score")}
        | {
            job.replace(" 0", " 1", 1)
            for job in of_rules("remask", "retrain", "measure_mask_leakage", "score_retrain")
        }
        | {f"attribute digits 1 digits {method}" for method in ("gradient", "smooth")}
        | {job.replace(" 0", " 1", 1) for job in ALL if job.startswith("attribute") and "captioned" in job}
        | of_rules("plot_training", "plot_metric")
        | CONCEPTS
        | INDEPENDENCE
        | TABULATED
        | CAPTION_TABLES
        | RETRAINED_SHOWN
        | SCORED,
    ),
    "a script of a figure": (code("workflow/scripts/plot_bam.py"), {"plot_bam bam", *REPORT}),
    "the training's script": (
        code("workflow/scripts/train.py"),
        ALL
        - PAGES
        - of_rules("write_sources", "collect_bam", "compose_bam", "compose_caption", "build_data"),
    ),
    "code of the threshold": (code("src/saliency_assay/studies/retrain/masks.py"), REMASKED),
    "code of the leak": (
        code("src/saliency_assay/studies/retrain/leakage.py"),
        of_rules("measure_mask_leakage", "score_retrain") | RETRAINED_SHOWN,
    ),
    "a fill more": (
        configured(studies__retrain__fills=["mean", "zero"]),
        {
            job.replace("mean", "zero")
            for job in of_rules("remask", "retrain", "measure_mask_leakage", "score_retrain", "plot_masks")
            if "mean" in job
        }
        | RETRAINED_SHOWN,
    ),
    "masks in shards": (
        configured(studies__retrain__shards=2),
        {f"{job} .shard{number}of2" for job in of_rules("remask") for number in (1, 2)}
        | of_rules("retrain", "measure_mask_leakage", "score_retrain")
        | RETRAINED_SHOWN,
    ),
    "a value more to try": (
        configured(models__searched__search__learning_rate=[0.05, 0.1, 0.2]),
        {"trial searched 2", "select_hyperparameters searched", *RETRAINED},
    ),
    "a caption": (text("workflow/report/mcs.rst"), REPORT),
    "a template of the pages": (
        text("src/saliency_assay/report/pages/templates/heat_map.html.j2"),
        PAGES | REPORT,
    ),
    "resamples of images": (
        configured(reliability__resamples=200),
        of_rules("tabulate_reliability", "plot_reliability") | REPORT,
    ),
    "images in a gallery": (
        configured(report__gallery_images=2),
        of_rules("plot_gallery", "plot_masks", "plot_independence", "plot_pairs") | REPORT,
    ),
}


WORDS = {"0", "1", "digits", "gradient", "smooth", "faithfulness", "infidelity", "sensitivity", "scores"}
"""Values of wildcards of jobs of smallest.yaml."""
QUICK = (
    "code of one method",
    "code of a method of the other study",
    "code of what smooths a method",
    "a method's parameter",
    "code of one metric",
    "code of a metric with model responses",
    "code of the engine",
    "a parameter that only the metric reads",
    "a parameter that the model responses read",
    "a metric less in the study",
    "what a paper printed of reliability",
    "the other data's seed",
    "a further seed",
    "the training's script",
    "a template of the pages",
    "resamples of images",
    "images in a gallery",
)
"""Edits that are planned on the smallest study, too."""
QUICKEST = (
    "code of one method",
    "a method's parameter",
    "code of a metric with model responses",
    "a parameter that only the metric reads",
    "a further seed",
)
"""Those of them that are planned in the quick part of the tests."""
IDLE = sorted(
    (name for name, (_, expected) in EDITS.items() if not expected), key="every file touched".__eq__
)
"""Edits that run nothing; the one that touches all files is the last."""


def in_smallest(jobs: set[str]) -> set[str]:
    """Return those of the jobs that belong to smallest.yaml."""
    return {job for job in jobs if set(job.split()[1:]) <= WORDS}


def test_a_first_run_of_the_smallest_study_runs_everything(fresh: Checkout) -> None:
    shutil.copy(SMALLEST, fresh.root / fresh.configuration)
    jobs = in_smallest(ALL)
    assert fresh.planned() == combined(jobs, jobs)


def test_edits_that_change_no_result_run_nothing_all_together(smallest: Checkout) -> None:
    assert len(IDLE) > 6
    for name in IDLE:
        EDITS[name][0](smallest)
    assert smallest.planned() == NOTHING


@pytest.fixture(scope="module")
def quick_dependents(smallest_once: Checkout) -> Dependents:
    return Dependents(smallest_once, in_smallest(ALL))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICKEST else pytest.mark.slow) for name in QUICK]
)
def test_an_edit_runs_what_it_concerns_in_the_smallest_study(
    name: str, smallest: Checkout, quick_dependents: Dependents
) -> None:
    edit, expected = EDITS[name]
    jobs = in_smallest(with_page_jobs(in_smallest(expected), configured=isinstance(edit, Configured)))
    edit(smallest)
    assert smallest.planned() == quick_dependents.with_dependents(combined(jobs, in_smallest(ALL)))


@pytest.mark.slow
def test_a_first_run_runs_everything(fresh: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh.planned() == combined(ALL, ALL)
    monkeypatch.setenv("SALIENCY_ASSAY_SEPARATE", "1")
    assert fresh.planned() == ALL


@pytest.mark.slow
def test_a_finished_run_elsewhere_runs_nothing(finished: Checkout) -> None:
    assert finished.planned() == NOTHING


@pytest.fixture(scope="module")
def dependents(finished_once: Checkout) -> Dependents:
    return Dependents(finished_once, ALL)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_runs_what_it_concerns(name: str, finished: Checkout, dependents: Dependents) -> None:
    edit, expected = EDITS[name]
    jobs = combined(with_page_jobs(expected, configured=isinstance(edit, Configured)), ALL)
    edit(finished)
    assert finished.planned() == dependents.with_dependents(jobs)


@pytest.mark.slow
def test_what_a_plan_promises_is_what_happens(smallest: Checkout) -> None:
    """A method's parameter makes that method's results anew and touches no others; then all is settled."""
    results = smallest.root / "results"

    def times() -> dict[str, int]:
        files = (path for path in results.rglob("*") if path.is_file())
        return {str(path.relative_to(results)): path.stat().st_mtime_ns for path in files}

    maps, metrics = "digits/seed0/digits/smooth", ("faithfulness", "infidelity", "sensitivity")
    rules = ("tabulate_scores", "plot_scores", "plot_scatter", "plot_gallery", "tabulate_reliability")
    jobs = [
        f"attribute/{maps}",
        *(f"score/{metric}/{maps}" for metric in metrics),
        *(f"plot_metric/digits/{metric}_scores" for metric in metrics),
        *(f"{rule}/digits" for rule in (*rules, "plot_reliability", "summarize")),
        *("overview", "document_methods", "provenance", "report"),
        "plot_training",  # reads evaluations, which are restored with new dates
    ]
    before, files = times(), smallest.files()
    smallest.configure(methods__gradcam__upsampling="nearest")
    smallest.make()
    # Each part of a combined job that runs writes its log and its benchmark file.
    written = {name for name, time in times().items() if before.get(name) != time}
    ran = {name for name in written if name.startswith(("logs/", "benchmarks/"))}
    assert {name for name in ran if not name.startswith(("logs/combined/", "logs/check_models"))} == {
        *(f"logs/{job}.log" for job in jobs),
        *(f"benchmarks/{job}.tsv" for job in jobs),
    }
    changed = {name for name, content in smallest.files().items() if files.get(name) != content} - ran
    assert {name for name in changed if name.startswith("maps/")} == {f"maps/{maps}.zarr.zip"}
    assert {name for name in changed if not name.startswith((".state/", "maps/"))} <= {
        f"costs/{maps}.json",
        *(f"figures/{page}.html" for page in ("overview", "trust", "methods", "metrics", "provenance")),
        *(f"scores/{metric}/{maps}.parquet" for metric in metrics),
        *(f"curves/{metric}/{maps}.zarr.zip" for metric in metrics),
        *(f"tables/digits/{name}" for name in ("summary.csv", "scores.parquet")),
        *(f"tables/digits/{name}.csv" for name in RELIABILITY),
        *(name for name in files if name.startswith("figures/digits/")),
        "tables/trust.csv",
        "report.html",
        "configuration.yaml",
    }
    assert smallest.planned() == NOTHING

"""Write the page that is read first: all studies in words, ranks and reliability."""

from pathlib import Path

from saliency_assay import store
from saliency_assay.job import job
from saliency_assay.report.overview import overview_page
from saliency_assay.report.provenance import ran, times
from saliency_assay.report.results import study_result

with job("overview", snakemake.log[0], snakemake.params.settings):
    settings, results = snakemake.params.settings, []
    for facts in settings["studies"]:
        files = {name: Path(path) for name, path in facts["files"].items() if name != "maps"}
        maps = list(map(Path, facts["files"]["maps"]))
        evaluations = {name: [Path(path) for path in paths] for name, paths in facts["evaluations"].items()}
        results.append(study_result(facts, files, maps, evaluations))
    attributes = []
    for path in snakemake.input.maps:
        with store.open_store(Path(path), kind="maps") as maps:
            attributes.append(maps.attributes)
    took = times(Path(settings["benchmarks"]))
    page = overview_page(results, seeds=settings["seeds"], ran=ran(attributes, took))
    Path(snakemake.output[0]).write_text(page, encoding="utf-8")

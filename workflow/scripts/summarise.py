"""Put into words what a study found."""

from pathlib import Path

from saliency_assay.report.pages.overview import summary_page
from saliency_assay.report.pages.results import study_result
from saliency_assay.runtime.job import job

with job("summarise", snakemake.log[0], snakemake.params.settings):
    facts, paths = snakemake.params.settings["study"], snakemake.input
    files = {name: Path(path) for name, path in paths.items() if name not in ("evaluations", "maps")}
    maps, evaluations = (list(map(Path, several)) for several in (paths.maps, paths.evaluations))
    seeds = facts["seeds"]
    of_models = {
        model: evaluations[place * seeds : (place + 1) * seeds] for place, model in enumerate(facts["models"])
    }
    page = summary_page(study_result(facts, files, maps, of_models))
    Path(snakemake.output[0]).write_text(page, encoding="utf-8")

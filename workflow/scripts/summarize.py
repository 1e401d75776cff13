"""Write the summary of a study."""

from saliency_assay.report.pages.overview import summary_page
from saliency_assay.report.pages.results import study_result
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    facts, seeds = job.settings["study"], job.settings["study"]["seeds"]
    files = {name: path for name, path in job.input.items() if name not in ("evaluations", "maps")}
    maps, evaluations = job.input.maps, job.input.evaluations
    evaluations_by_model = {
        model: evaluations[index * seeds : (index + 1) * seeds] for index, model in enumerate(facts["models"])
    }
    result = study_result(facts, files, maps, evaluations_by_model)
    page = summary_page(result, not_computed=job.settings.get("not_computed", ()))
    job.output[0].write_text(page, encoding="utf-8")

"""Write the summary of a study, and the table of what it lacks because methods or metrics failed."""

from saliency_assay.report.not_computed import not_computed_table
from saliency_assay.report.pages.overview import summary_page
from saliency_assay.report.pages.results import study_result
from saliency_assay.runtime.job import run_job

with run_job(snakemake, needs=()) as job:
    facts, seeds = job.settings["study"], job.settings["study"]["seeds"]
    files = {name: path for name, path in job.input.items() if name not in ("evaluations", "maps", "methods")}
    maps, evaluations = job.input.maps, job.input.evaluations
    evaluations_by_model = {
        model: evaluations[index * seeds : (index + 1) * seeds] for index, model in enumerate(facts["models"])
    }
    table = not_computed_table(job.failed.values(), facts)
    table.to_csv(job.output.not_computed, index=False)
    result = study_result(facts, files, maps, evaluations_by_model)
    page = summary_page(result, not_computed=list(table["sentence"].unique()))
    job.output.page.write_text(page, encoding="utf-8")

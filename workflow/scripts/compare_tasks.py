"""Compare the orders of methods of all models and data sets, as tables and as a page of the report."""

from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.across import Orders, across_tasks, orders_by_task
from saliency_assay.report.pages.across import across_page, task_labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake, needs=()) as job:
    labels = Labels(**job.settings["labels"])
    tables = zip(job.input.order, job.input.pairs, strict=True)
    tasks = orders_by_task([Orders(read_table(order), read_table(pairs, "other")) for order, pairs in tables])
    names = [f"{model} on {data}" for data, model in tasks]
    result = across_tasks(dict(zip(names, tasks.values(), strict=True)))
    result.agreement.to_csv(job.output.agreement, index=False)
    result.pairs.to_csv(job.output.pairs, index=False)
    page = across_page(result, labels, dict(zip(names, task_labels(list(tasks), labels), strict=True)))
    job.output.page.write_text(page, encoding="utf-8")

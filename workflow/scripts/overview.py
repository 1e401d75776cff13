"""Write the overview page, a card for each study, and the page on trust in metrics."""

from pathlib import Path

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.overview import build_page, overview_page
from saliency_assay.report.pages.provenance import data_facts, ran, times
from saliency_assay.report.pages.results import evidence_of, study_result
from saliency_assay.report.pages.trust import trust_page
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake, needs=()) as job:
    settings, results, missing = job.located(job.settings), [], []
    labels = Labels(**settings["labels"])
    for facts in settings["studies"]:
        files = {name: Path(path) for name, path in facts["files"].items() if name != "maps"}
        files = {name: path for name, path in files.items() if path not in job.failed}
        maps = list(map(Path, facts["files"]["maps"]))
        maps = [] if job.failed.keys() & set(maps) else maps
        missing += read_table(files.pop("not_computed"), "sentence")["sentence"].unique().tolist()
        evaluations = {name: [Path(path) for path in paths] for name, paths in facts["evaluations"].items()}
        results.append(study_result(facts, files, maps, evaluations))
    attributes = []
    for path in job.input.maps:
        with zarr_store.open_store(path, kind="maps") as maps:
            attributes.append(maps.attributes)
    sets = []
    for name, path in zip(settings["sets"], job.input.data, strict=True):
        with zarr_store.open_store(path, kind="data") as data:
            sets.append(data_facts(labels.data[name], data["image"].shape, data.attributes))
            attributes.append(data.attributes)
    duration = ran(attributes, times(Path(settings["benchmarks"])))
    if results:
        page = overview_page(results, seeds=settings["seeds"], ran=duration, not_computed=missing)
    else:
        page = build_page(
            sets, [labels.models[name] for name in settings["models"]], seeds=settings["seeds"], ran=duration
        )
    job.output.overview.write_text(page, encoding="utf-8")
    if trust := job.output.get("trust"):
        evidence = evidence_of(
            zip(settings["studies"], results, strict=True),
            settings["single_maps"],
            settings["task_agreement"],
            failed=job.failed,
        )
        evidence.to_csv(job.output.evidence, index=False)
        trust.write_text(trust_page(results, evidence), encoding="utf-8")

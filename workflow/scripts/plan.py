"""Print the jobs, models, hours and storage of each study, without running or writing anything but a log."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from saliency_assay.pipeline.plan import Study, job_counts, plan_text, row_of, storage_of
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import zarr_store

with run_job(snakemake) as job:
    settings = job.settings
    snakefile = Path(snakemake.scriptdir).parents[1] / "Snakefile"
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--forceall", "--nolock"]
    command += ["--snakefile", str(snakefile)]
    rows = []
    for study in settings["studies"]:
        # The configuration of this run, including changes on the command line. It is written to a separate folder,
        # because jobs can import all modules in the folder of a configuration.
        with TemporaryDirectory() as folder:
            configuration = Path(folder, "configuration.yaml")
            text = yaml.safe_dump(settings["configuration"], sort_keys=False, allow_unicode=True)
            configuration.write_text(text, encoding="utf-8")
            arguments = ["--configfile", str(configuration), "--", *study["targets"]]
            dry_run = subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
        if dry_run.returncode:
            raise ValueError(
                f"{study['name']}: the dry run failed: {dry_run.stderr.strip().splitlines()[-1]}"
            )
        jobs, storage = job_counts(dry_run.stdout + dry_run.stderr), None
        data_file, weights = Path(study["data"]), Path(study["weights"])
        if data_file.is_file() and weights.is_file():
            with zarr_store.open_store(data_file, kind="data") as data:
                map_count = round(jobs.get("attribute", 0) * study["map_images"])
                weight_bytes = weights.stat().st_size * sum(jobs.get(rule, 0) for rule in study["weights_by"])
                storage = storage_of(data["image"].shape, study["mask_stores"], map_count, weight_bytes)
        planned = Study(study["name"], jobs, study["like"], study["models_each"], storage)
        rows.append(row_of(planned, settings["on_device"], Path(settings["benchmarks"])))
    print(plan_text(rows))

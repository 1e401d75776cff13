"""Write Snakemake's report of all figures and tables as one file that needs no network, with pages in reading order."""

import os
import shlex
import subprocess
import sys

import yaml

from saliency_assay.report.pages.reader import with_reader
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.project import ROOT, STORAGE

with run_job(snakemake, needs=()) as job:
    settings, output = job.settings, job.output
    # The configuration of this run, including changes on the command line; the command below reads it.
    output.configuration.write_text(
        yaml.safe_dump(settings["configuration"], sort_keys=False, allow_unicode=True),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", *settings["targets"]]
    command += ["--snakefile", str(ROOT / "workflow/Snakefile")]
    command += ["--configfile", str(output.configuration), "--report", str(output.report), "--nolock"]
    command += shlex.split(os.environ.get(STORAGE, ""))
    ran = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(ran.stdout, file=sys.stderr)
    if ran.returncode:
        last = (ran.stdout.strip().splitlines() or ["no message"])[-1]
        raise ChildProcessError(f"snakemake --report: exit status {ran.returncode}: {last}")
    report = output.report
    report.write_text(with_reader(report.read_text("utf-8"), settings["targets"]), "utf-8")

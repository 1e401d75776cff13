"""Write Snakemake's own report of all figures and tables, as one file that needs no network, and opens as a book."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from saliency_assay.plotting.page import page
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    settings, output = job.settings, job.output
    # The whole configuration as this run had it, command-line changes included: the report is made from it, too.
    output.configuration.write_text(
        yaml.safe_dump(settings["configuration"], sort_keys=False, allow_unicode=True),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", *settings["targets"]]
    command += ["--snakefile", str(Path(snakemake.scriptdir).parents[1] / "Snakefile")]
    command += ["--configfile", str(output.configuration), "--report", str(output.report), "--nolock"]
    subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
    shell = page("<!--body-->", title="Saliency Assay")
    reader = {"shell": shell, "order": settings["targets"], "title": "Saliency Assay"}
    known = json.dumps(reader).replace("</", "<\\/")  # within a script
    script = job.input.reader.read_text(encoding="utf-8")
    whole, end, rest = output.report.read_text(encoding="utf-8").rpartition("</body>")
    if not end:
        raise ValueError(f"{output.report}: Snakemake's report has no </body>, expected an HTML page")
    opened = f"<script>const reader = {known};</script>\n<script>{script}</script>\n"
    output.report.write_text(whole + opened + end + rest, encoding="utf-8")

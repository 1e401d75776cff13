"""Write Snakemake's own report of all figures and tables, as one file that needs no network, and opens as a book."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from saliency_assay.plotting.page import page
from saliency_assay.runtime.job import job

with job("report", snakemake.log[0], snakemake.params.settings):
    settings, output = snakemake.params.settings, snakemake.output
    # The whole configuration as this run had it, command-line changes included: the report is made from it, too.
    Path(output.configuration).write_text(
        yaml.safe_dump(settings["configuration"], sort_keys=False, allow_unicode=True),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "snakemake", *settings["targets"]]
    command += ["--snakefile", str(Path(snakemake.scriptdir).parents[1] / "Snakefile")]
    command += ["--configfile", output.configuration, "--report", output.report, "--nolock"]
    subprocess.run(command, check=True, stdout=sys.stderr, stderr=sys.stderr)
    shell = page("<!--body-->", title="Saliency Assay")
    reader = {"shell": shell, "order": settings["targets"], "title": "Saliency Assay"}
    known = json.dumps(reader).replace("</", "<\\/")  # within a script
    script = Path(snakemake.input.reader).read_text(encoding="utf-8")
    whole, end, rest = Path(output.report).read_text(encoding="utf-8").rpartition("</body>")
    if not end:
        raise ValueError(f"{output.report}: Snakemake's report has no </body>, expected an HTML page")
    opened = f"<script>const reader = {known};</script>\n<script>{script}</script>\n"
    Path(output.report).write_text(whole + opened + end + rest, encoding="utf-8")

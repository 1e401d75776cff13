"""Download one public data set or weights file: the only rule with network access."""

import json
import os

from saliency_assay.data.download.command import MIRROR, by_name, described, obtain
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    output, download = job.output[0], by_name()[job.wildcards.download]
    print(described(download), flush=True)
    receipts = obtain(download, output.parent.parent, mirror=os.environ.get(MIRROR, ""))
    # The files of each archive are listed in its own receipt.
    files = {name: {**receipt, "files": len(receipt.get("files", ()))} for name, receipt in receipts.items()}
    description = {"page": download.page, "license": download.license, "files": files}
    output.write_text(json.dumps(description, indent=1), encoding="utf-8")

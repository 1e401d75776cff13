"""Fetch one public data set or one file of weights: the only rule that opens the network."""

import json
import os

from saliency_assay.data.download.command import MIRROR, by_name, described, obtain
from saliency_assay.runtime.job import run_job

with run_job(snakemake) as job:
    output, download = job.output[0], by_name()[job.wildcards.download]
    print(described(download), flush=True)
    receipts = obtain(download, output.parent.parent, mirror=os.environ.get(MIRROR, ""))
    # What each archive holds is in its own receipt.
    files = {name: {**receipt, "files": len(receipt.get("files", ()))} for name, receipt in receipts.items()}
    told = {"page": download.page, "licence": download.licence, "files": files}
    output.write_text(json.dumps(told, indent=1), encoding="utf-8")

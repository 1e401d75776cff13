"""Write down where the numbers come from: configuration, versions, data and times."""

from pathlib import Path

from saliency_assay import store
from saliency_assay.job import job
from saliency_assay.report.provenance import data_facts, provenance_page, times, versions

with job("provenance", snakemake.log[0]):
    settings, attributes, data = snakemake.params.settings, [], []
    for path in snakemake.input.maps:
        with store.open_store(Path(path), kind="maps") as maps:
            attributes.append(maps.attributes)
    for name, path in zip(settings["sets"], snakemake.input.data, strict=True):
        with store.open_store(Path(path), kind="data") as stored:
            data.append(data_facts(name, stored["image"].shape, stored.attributes))
            attributes.append(stored.attributes)
    page = provenance_page(
        settings["configuration"],
        versions=versions(attributes),
        data=data,
        took=times(Path(settings["benchmarks"])),
    )
    Path(snakemake.output[0]).write_text(page, encoding="utf-8")

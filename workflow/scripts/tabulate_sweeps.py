"""Tabulate the scores of all members of families of methods, and the orders of methods under families of metrics."""

from saliency_assay.registry.records import resolve
from saliency_assay.registry.sweeps import Family
from saliency_assay.reliability.metric_sweeps import metric_sweep_table
from saliency_assay.reliability.order_tables import Rule
from saliency_assay.reliability.rated_scores import clusters_of, ranges_of
from saliency_assay.reliability.sweeps import SelectedScores, select, sweep_table
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.zarr_store import open_store

with run_job(snakemake) as job:
    settings, paths, variant = job.settings, job.input, ("metric", "variant")
    read_scores = resolve(settings["rated_scores"])
    rated = read_scores(paths.scores, data=settings["data"], models=settings["models"])
    clusters = clusters_of(job.open(open_store(paths.data, kind="data")))
    rule, directions = Rule(**settings["rule"]), settings["directions"]
    methods, metrics = (
        [Family(**family) for family in settings["families"][section]] for section in ("methods", "metrics")
    )
    selection = select(rated.chunks(*variant), directions, methods, clusters=clusters, by=rule.by)
    ranking = {"clusters": clusters, "rule": rule, "retrained": settings["retrained"]}
    ranges = ranges_of(settings["ranges"])
    sweeps = sweep_table(rated.chunks(*variant), directions, selection, ranges=ranges, **ranking)
    sweeps.to_csv(job.output.sweeps, index=False)
    compared = SelectedScores(rated, selection).chunks(*variant)
    metric_sweep_table(compared, directions, metrics, **ranking).to_csv(job.output.metric_sweeps, index=False)

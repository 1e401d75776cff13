"""Export all results: a tidy table, the tables of every study as CSV and LaTeX, accuracies of models, PDF figures."""

import json
import shutil
from collections import defaultdict

import pandas as pd

from saliency_assay.plotting.charts import pdf
from saliency_assay.plotting.labels import with_keys_and_labels
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.records import resolve
from saliency_assay.report.export.export import TIDY, study_tex, tidy_table
from saliency_assay.report.not_computed import COLUMNS
from saliency_assay.report.pages.models_page import accuracy_table
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake, needs=()) as job:
    settings, paths, output = job.settings, job.input, job.output
    labels = Labels(**settings["labels"])
    arms = [tuple(arm) for arm in settings["arms"]]
    evaluations = (json.loads(path.read_text(encoding="utf-8")) for path in paths.evaluations)
    accuracies = accuracy_table(dict(zip(arms, evaluations, strict=True)))
    with_keys_and_labels(accuracies, labels).to_csv(output.models, index=False)
    tables, incomplete = defaultdict(dict), set()
    for path, copy in zip(paths.every("tables"), output.copies, strict=True):
        shutil.copyfile(path, copy)
        if path in job.failed:
            incomplete.add(path.parent.name)
        else:
            tables[path.parent.name][path.stem] = read_table(path, "lead_over")
    for path, copy in zip(paths.every("trust"), output.every("trust"), strict=True):
        with_keys_and_labels(read_table(path), labels).to_csv(copy, index=False)
    missing = list(map(read_table, paths.not_computed))
    table = pd.concat(missing) if missing else pd.DataFrame(columns=list(COLUMNS))
    table.to_csv(output.not_computed, index=False)
    tidy_tables = []
    for (study, facts), tex in zip(settings["studies"].items(), output.tex, strict=True):
        study_tables, scores = tables[study], pd.DataFrame(columns=TIDY)
        if "order" in study_tables:
            printed = study_tables[facts["printed_table"]] if facts["printed_table"] else None
            scores = tidy_table(
                study, facts["kind"], study_tables["order"], study_tables["reliability"], printed
            )
            tidy_tables.append(scores)
        study_latex = []
        if facts["latex"] and study not in incomplete:
            study_latex = resolve(facts["latex"])(study, study_tables, labels)
        text = study_tex(study, scores, study_latex, level=settings["level"], labels=labels)
        tex.write_text(text, encoding="utf-8")
    table = pd.concat(tidy_tables) if tidy_tables else pd.DataFrame(columns=TIDY)
    with_keys_and_labels(table, labels).to_csv(output.results, index=False)
    for figure, copy in zip(paths.every("figures"), output.figures, strict=True):
        copy.write_bytes(pdf(figure.read_text(encoding="utf-8")))
    for figure, copy in zip(paths.every("galleries"), output.galleries, strict=True):
        shutil.copyfile(figure, copy)

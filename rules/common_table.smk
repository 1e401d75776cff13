"""What is exported: the tables of every study, and the accuracies of its models."""

EXPORT = f"{RESULTS}/export"


def tables_of(study):
    """The CSV files that a study has under tables/."""
    makers = {
        "bam": [rules.tabulate_bam, rules.judge_bam],
        "caption": [rules.plot_caption],
        "fidelity": [rules.tabulate_scores],
        "retrain": [rules.tabulate_retrain],
    }
    used = {
        rules.tabulate_reliability: RATED_STUDIES,
        rules.plot_series: SERIES_STUDIES,
        rules.plot_concepts: CONCEPT_STUDIES,
        rules.plot_independence: DELTA_STUDIES,
        rules.plot_leakage: LEAK_STUDIES,
    }
    makers = makers[CONFIG.studies[study].kind] + [rule for rule, studies in used.items() if study in studies]
    files = [path for rule in makers for path in rule.output if path.endswith(".csv")]
    return expand(files, study=study)


EXPORTED = [path for study in RATED_STUDIES for path in tables_of(study)]


def export_facts(study):
    """What of a study's kind decides how its tables are exported."""
    kind = STUDY_KINDS[CONFIG.studies[study].kind]
    return {"kind": kind.name, "printed_table": kind.printed_table, "latex": kind.latex}


EXPORT_FACTS = {study: export_facts(study) for study in RATED_STUDIES}

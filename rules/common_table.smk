"""What is exported: the tables of every study, and the accuracies of its models."""

EXPORT = f"{RESULTS}/export"


def tables_of(study):
    """The CSV files that a study has under tables/."""
    own = [f"{RESULTS}/tables/{study}/{name}.csv" for name in KIND_OF[study].tables(options_of(study))]
    return [*own, *expand(rules.tabulate_reliability.output, study=study)]


EXPORTED = [path for study in RATED_STUDIES for path in tables_of(study)]


def export_facts(study):
    """What of a study's kind decides how its tables are exported."""
    kind = KIND_OF[study]
    return {"kind": kind.name, "printed_table": kind.printed_table, "latex": kind.latex}


EXPORT_FACTS = {study: export_facts(study) for study in RATED_STUDIES}

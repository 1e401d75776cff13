"""Provenance page: configuration, versions, data sets, job times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from platform import python_version
from typing import Any

import pandas as pd

from saliency_assay.plotting.html import Code, table_of
from saliency_assay.report.pages.render import render


def times(benchmarks: Path) -> pd.DataFrame:
    """Return the times and memory of the jobs of each rule.

    They are read from Snakemake's benchmark files, one per job, in a folder per rule.

    Returns:
        ``rule, jobs, hours`` (total wall time), ``longest`` (seconds), ``memory`` (GB, maximum), ``ended`` (UTC, last).
    """
    tables = []
    for file in sorted(benchmarks.rglob("*.tsv")):
        rule = file.relative_to(benchmarks).parts[0].removesuffix(".tsv")
        ended = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        table = pd.read_csv(file, sep="\t", usecols=["s", "max_rss"], na_values=["-", "NA"])
        tables.append(table.assign(rule=rule, ended=ended))
    if not tables:
        return pd.DataFrame({"rule": [], "jobs": [], "hours": [], "longest": [], "memory": [], "ended": []})
    grouped = pd.concat(tables).groupby("rule")
    totals = grouped.agg(
        jobs=("s", "size"),
        hours=("s", "sum"),
        longest=("s", "max"),
        memory=("max_rss", "max"),
        ended=("ended", "max"),
    )
    totals["hours"] /= 3600
    totals["memory"] /= 1000
    return totals.sort_values("hours", ascending=False).reset_index()


def sizes(results: Path) -> pd.DataFrame:
    """Return ``folder, files, MB`` of each folder in the results folder; empty if it does not exist here."""
    rows = []
    for folder in sorted(
        path for path in results.glob("*") if path.is_dir() and not path.name.startswith(".")
    ):
        files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
        rows.append([folder.name, len(files), sum(files) / 1e6])
    return pd.DataFrame(rows, columns=["folder", "files", "MB"])


def provenance_page(
    configuration: str,
    *,
    versions: Mapping[str, str],
    packages: pd.DataFrame,
    data: Sequence[Mapping[str, object]],
    took: pd.DataFrame,
    sizes: pd.DataFrame,
) -> str:
    """Return the page with all information needed to reproduce the results.

    Args:
        configuration: configuration of this run as YAML.
        versions: versions of the project and Python, and the devices that computed maps.
        packages: result of ``packages_of``.
        data: result of ``data_facts`` for each data set.
        took: result of ``times``.
        sizes: result of ``sizes``.
    """
    version_table = pd.DataFrame({"component": list(versions), "version": list(versions.values())})
    job_times = took.drop(columns="ended").rename(
        columns={"hours": "total hours", "longest": "longest job (s)", "memory": "peak memory (GB)"}
    )
    job_times["rule"] = job_times["rule"].map(Code).astype(object)
    mixed = packages.loc[packages["package"].duplicated(keep=False), "package"].unique()
    packages_title = "Package versions, and number of result files written with each"
    return render(
        "provenance",
        versions=table_of(version_table, "Versions", 0),
        mixed=", ".join(mixed),
        packages=table_of(packages, packages_title, 0),
        data=table_of(pd.DataFrame(data), "Data sets", 0),
        sizes=table_of(sizes, "Files in the results folder when this page was written", 1)
        if len(sizes)
        else None,
        times=table_of(job_times, "Time and memory of the most recent jobs, by rule", 3),
        configuration=configuration,
    )


def packages_of(files: Mapping[str, Sequence[Mapping[str, str]]]) -> pd.DataFrame:
    """Count the result files by the package versions that wrote them.

    Args:
        files: for each kind of file, such as ``maps``, the package versions recorded in each file.

    Returns:
        ``package, version`` and for each kind the number of files written with this version.
    """
    counts = {
        kind: Counter((name, version) for libraries in recorded for name, version in libraries.items())
        for kind, recorded in files.items()
    }
    rows = sorted({row for counter in counts.values() for row in counter})
    return pd.DataFrame(
        [[*row, *(counter[row] for counter in counts.values())] for row in rows],
        columns=["package", "version", *files],
    )


def versions(attributes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of the project, Python and torch, and the devices of maps, from the attributes of stores."""
    numbers: dict[str, list[str]] = {"saliency-assay": [], "Python": [python_version()]}
    for store in attributes:
        numbers["saliency-assay"].append(store["version"])
        if "torch" in store["libraries"]:
            numbers.setdefault("torch", []).append(store["libraries"]["torch"])
        if "device" in store:
            numbers.setdefault("device of the maps", []).append(store["device"])
    return {name: ", ".join(dict.fromkeys(values)) for name, values in numbers.items()}


def ran(attributes: Sequence[Mapping[str, Any]], took: pd.DataFrame) -> str:
    """Return hours, devices, date and version on one line; see ``versions`` and ``times``."""
    numbers = versions(attributes)
    hours = f"{took['hours'].sum():.1f} hours of computing"
    device = f" on {numbers['device of the maps']}" if "device of the maps" in numbers else ""
    version = f"; saliency-assay {numbers['saliency-assay']}" if "saliency-assay" in numbers else ""
    last = f", last on {took['ended'].max():%Y-%m-%d}" if len(took) else ""
    return f"{hours}{device}{last}{version}."


def data_facts(label: str, shape: Sequence[int], attributes: Mapping[str, Any]) -> dict[str, object]:
    """Return a row of the page's table of data sets."""
    count, channels, height, width = shape
    classes = ", ".join(f"{len(names)} ({kind})" for kind, names in attributes["classes"].items())
    size = {"images": count, "channels": channels, "height": height, "width": width}
    return {"data set": label, **size, "classes": classes, "SHA-256": Code(attributes["digest"])}

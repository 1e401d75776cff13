"""Page of provenance: configuration, versions, data, times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from platform import python_version
from typing import Any

import pandas as pd

from saliency_assay.plotting.html import table_of
from saliency_assay.report.pages.render import render


def times(benchmarks: Path) -> pd.DataFrame:
    """Return the times and memory of the jobs of each rule.

    They are read from Snakemake's benchmark files, one for each job, below a folder for each rule.

    Returns:
        ``rule, jobs, hours`` (of wall time, summed), ``longest`` (seconds), ``memory`` (GB, the most), ``ended`` (UTC).
    """
    parts = []
    for file in sorted(benchmarks.rglob("*.tsv")):
        rule = file.relative_to(benchmarks).parts[0].removesuffix(".tsv")
        ended = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        part = pd.read_csv(file, sep="\t", usecols=["s", "max_rss"], na_values=["-", "NA"])
        parts.append(part.assign(rule=rule, ended=ended))
    if not parts:
        return pd.DataFrame({"rule": [], "jobs": [], "hours": [], "longest": [], "memory": [], "ended": []})
    grouped = pd.concat(parts).groupby("rule")
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


def provenance_page(
    configuration: str,
    *,
    versions: Mapping[str, str],
    packages: pd.DataFrame,
    data: Sequence[Mapping[str, object]],
    took: pd.DataFrame,
) -> str:
    """Return the page of all that is needed to make the results again.

    Args:
        configuration: as YAML, as this run had it.
        versions: of the project and Python, and the devices that computed maps.
        packages: as ``packages_of`` returns it.
        data: for each data set ``data, images, channels, height, width, classes, digest``.
        took: as ``times`` gives it.
    """
    listed = pd.DataFrame({"what": list(versions), "version": list(versions.values())})
    shown = took.drop(columns="ended").rename(
        columns={"hours": "hours in all", "longest": "longest job (s)", "memory": "most memory (GB)"}
    )
    several = packages.loc[packages["package"].duplicated(keep=False), "package"].unique()
    made = "Package versions, with the number of result files that each made"
    return render(
        "provenance",
        versions=table_of(listed, "Versions", 0),
        mixed=", ".join(several),
        packages=table_of(packages, made, 0),
        data=table_of(pd.DataFrame(data), "Data sets", 0),
        times=table_of(shown, "Time and memory of the jobs, by rule (those that ran last)", 3),
        configuration=configuration,
    )


def packages_of(files: Mapping[str, Sequence[Mapping[str, str]]]) -> pd.DataFrame:
    """Count the files of results by the package versions that made them.

    Args:
        files: for each kind of file, such as ``maps``, the versions by package that each of its files records.

    Returns:
        ``package, version`` and for each kind the number of its files that this version made.
    """
    counts = {
        kind: Counter((name, version) for libraries in several for name, version in libraries.items())
        for kind, several in files.items()
    }
    rows = sorted({row for counted in counts.values() for row in counted})
    return pd.DataFrame(
        [[*row, *(counted[row] for counted in counts.values())] for row in rows],
        columns=["package", "version", *files],
    )


def versions(attributes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of the project, Python and torch, and the maps' devices, by the attributes of stores."""
    numbers: dict[str, list[str]] = {"saliency-assay": [], "Python": [python_version()]}
    for each in attributes:
        numbers["saliency-assay"].append(each["version"])
        if "torch" in each["libraries"]:
            numbers.setdefault("torch", []).append(each["libraries"]["torch"])
        if "device" in each:
            numbers.setdefault("device of the maps", []).append(each["device"])
    return {name: ", ".join(dict.fromkeys(several)) for name, several in numbers.items()}


def ran(attributes: Sequence[Mapping[str, Any]], took: pd.DataFrame) -> str:
    """Return hours, device and versions as a phrase; see ``versions`` and ``times``."""
    known = versions(attributes)
    named = ", ".join(
        f"{name} {known[name]}" for name in ("saliency-assay", "torch", "Python") if name in known
    )
    jobs = f"{int(took['jobs'].sum())} jobs whose times sum to {took['hours'].sum():.1f} hours"
    device = f"models and maps on {known['device of the maps']}; " if "device of the maps" in known else ""
    return f"{jobs}, the last on {took['ended'].max():%Y-%m-%d}; {device}{named}."


def data_facts(name: str, shape: Sequence[int], attributes: Mapping[str, Any]) -> dict[str, object]:
    """Return a row of the page's data sets."""
    count, channels, height, width = shape
    classes = ", ".join(f"{len(names)} ({kind})" for kind, names in attributes["classes"].items())
    size = {"images": count, "channels": channels, "height": height, "width": width}
    return {"data": name, **size, "classes": classes, "SHA-256": attributes["digest"]}

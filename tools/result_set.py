"""Archive of results for a release: ``python -m tools.result_set ARCHIVE CONFIGURATION …``.

For each configuration, the archive contains the report, the exported tables and figures, and the configuration as it
ran. ``make result-set`` computes what is missing first.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml

FILES = ("report.html", "configuration.yaml")
EXPORT = "export"
DATE = (2020, 1, 1, 0, 0, 0)
"""Time of all files in the archive, so that equal results give an equal archive."""


def files_of(configuration: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a configuration's results with their names in the archive.

    Raises:
        SystemExit: the results have no report or no export.
    """
    content = yaml.safe_load(configuration.read_text(encoding="utf-8"))
    results = Path(content.get("results", "results"))
    for name in (*FILES, EXPORT):
        if not (results / name).exists():
            raise SystemExit(
                f"{results / name}: missing; first run saliency-assay table {configuration} and run"
            )
    for path in (*(results / name for name in FILES), *sorted((results / EXPORT).rglob("*"))):
        if path.is_file():
            yield f"{configuration.stem}/{path.relative_to(results)}", path


def write_archive(archive: Path, configurations: Sequence[Path]) -> None:
    """Write the archive of the results of ``configurations``."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(archive, "w", ZIP_DEFLATED) as opened:
        for configuration in configurations:
            for name, path in files_of(configuration):
                opened.writestr(ZipInfo(name, DATE), path.read_bytes(), ZIP_DEFLATED)
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]), list(map(Path, sys.argv[2:])))

"""The parameter of every rule: its settings, the digest of its code, and the versions of its packages."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.pipeline.code_record import CodeRecord
from saliency_assay.registry.records import module_of
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.runtime.environment import versions_of
from saliency_assay.runtime.provenance import plain

ON_DEVICE = ("train", "trial", "finetune", "evaluate", "attribute", "respond", "score")
"""Rules shared by all kinds of study that run models."""
TABLE_PACKAGES = frozenset({"pandas", "pyarrow"})


class JobSettings:
    """Settings of jobs; Snakemake reruns a job when its settings change."""

    def __init__(
        self,
        scripts: Path,
        kinds: Iterable[StudyKind] = (),
        *,
        with_versions: bool = True,
        record: CodeRecord | None = None,
    ) -> None:
        """Store the folder of the scripts and the kinds of study.

        ``with_versions`` is False if jobs run in a container or in Conda environments, which Snakemake tracks itself.
        With ``record``, the files behind each digest are recorded there.
        """
        self.packages: dict[str, str] = {}
        """Versions of the packages of all jobs whose settings have been computed."""
        self.files: set[Path] = set()
        """Files of the code of these jobs."""
        # These jobs only write tables, so an update of table packages must not rerun them, which would take GPU hours.
        self.on_device = [*ON_DEVICE, *(rule for kind in kinds for rule in kind.on_device)]
        """Rules that run models."""
        self._scripts = scripts
        self._with_versions = with_versions
        self.record = record
        # Cached because thousands of jobs share code, and so that an edit during the run does not change the plan.
        self._code_of = cache(code_of)

    def __call__(self, script: str, functions: Iterable[str] = (), /, **values: Any) -> dict[str, Any]:
        """Return ``values`` as plain JSON with the digest ``code`` and the package versions ``environment`` of a job.

        Snakemake compares parameters as an unordered set of values and tracks only plain types, so all settings are
        one nested dict. ``functions`` are references ``package.module:name`` to callables that the job imports.
        """
        modules = list(map(module_of, functions))
        code = self._code_of(str(self._scripts / f"{script}.py"), *modules)
        self.files |= code.files.keys()
        if self.record:
            self.record.add(code)
        custom_modules = [module for module in modules if module.partition(".")[0] != "saliency_assay"]
        ignored = TABLE_PACKAGES if script in self.on_device else frozenset()
        # A custom function may compute with a table package, so its packages are never ignored.
        names = {*code.packages} - ignored | {*self._code_of(*custom_modules).packages}
        packages = versions_of(names) if self._with_versions else {}
        self.packages.update(packages)
        settings: dict[str, Any] = plain({**values, "code": code.digest, "environment": packages})
        return settings

"""The one parameter of every rule: settings, the digest of the code behind it, and the versions of its packages."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.runtime.environment import versions_of
from saliency_assay.runtime.provenance import plain

ON_DEVICE = ("train", "trial", "evaluate", "attribute", "respond", "score")
"""Rules that run models, of those that all kinds of study share."""
TABLE_PACKAGES = frozenset({"pandas", "pyarrow"})


class JobSettings:
    """Settings of jobs, by which Snakemake knows what runs again."""

    def __init__(self, scripts: Path, kinds: Iterable[StudyKind] = (), *, with_versions: bool = True) -> None:
        """Take the folder of the scripts and the kinds of study.

        Versions are left out where jobs run in a container or in Conda environments: Snakemake compares those.
        """
        self.packages: dict[str, str] = {}
        """Versions of the packages of all jobs whose settings have been made."""
        # Of tables, which such jobs only write, an update of what writes them costs no GPU hour.
        self.on_device = [*ON_DEVICE, *(rule for kind in kinds for rule in kind.on_device)]
        """Rules that run models."""
        self._scripts = scripts
        self._with_versions = with_versions
        # Thousands of jobs run the same code, and a plan is of the code as it was when Snakemake started.
        self._code_of = cache(code_of)

    def __call__(self, script: str, functions: Iterable[str] = (), /, **values: Any) -> dict[str, Any]:
        """Return ``values`` as plain JSON with ``code`` and ``environment`` of a script.

        Snakemake compares parameters as an unordered set of values, so there is one nested dict, and tracks only
        plain types. ``functions`` are the registered callables (``package.module:name``) that the job is given by name.
        """
        modules = list(map(module_of, functions))
        code = self._code_of(str(self._scripts / f"{script}.py"), *modules)
        users = [module for module in modules if module.partition(".")[0] != "saliency_assay"]
        ignored = TABLE_PACKAGES if script in self.on_device else frozenset()
        names = {*code.packages} - ignored | {*self._code_of(*users).packages}
        packages = versions_of(names) if self._with_versions else {}
        self.packages.update(packages)
        settings: dict[str, Any] = plain({**values, "code": code.digest, "environment": packages})
        return settings

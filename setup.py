"""Wheels contain the workflow with its configurations and profiles; all other settings are in ``pyproject.toml``."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithWorkflow(build_py):
    """Build the package with the files that ``saliency_assay.runtime.project`` expects beside it."""

    def run(self) -> None:
        """Copy the folders of the workflow into the package, unless the installation is editable."""
        super().run()
        if not self.editable_mode:
            for name in ("workflow", "config", "profiles"):
                target = Path(self.build_lib, "saliency_assay/share", name)
                shutil.rmtree(target, ignore_errors=True)  # of an earlier build
                shutil.copytree(name, target, ignore=shutil.ignore_patterns("__pycache__"))


setup(cmdclass={"build_py": BuildWithWorkflow})

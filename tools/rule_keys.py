"""Write the sections of the configuration on which each rule's settings depend beside its parameter.

``python -m tools.rule_keys`` plans the demo, and a study with the rules that it lacks, and computes the settings of all
jobs while it records what they read.
"""

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from saliency_assay.config.configuration import Configuration
from saliency_assay.pipeline.combined import SEPARATE
from saliency_assay.pipeline.dry_run import plan_run
from saliency_assay.pipeline.params import EntrySettings
from tools.source_tree import ROOT

OTHERS = """
data:
  digits: {kind: digits}
  birds: {kind: birds}
models:
  small:
    architecture: resnet8
    data: digits
    trained_on: class
    training: {epochs: 1, validation_share: 0.1}
    search: {learning_rate: [0.05, 0.1]}
  birds: {architecture: resnet8, data: birds, trained_on: class, training: {epochs: 1}}
methods:
  gradient: {}
  random: {}
metrics:
  f_fidelity: {}
studies:
  validity: {kind: validity, model: small}
  grid: {kind: grid, model: small}
  parts: {kind: parts, model: birds}
"""
"""Configuration with the rules that the demo lacks."""
SECTIONS = {"sets": "data", "listed_metrics": "metrics"}
"""Properties of the configuration that are read in place of a section."""
PARAMETER = re.compile(r"^(        settings=\w*PARAMS\.(\w+),).*$", re.MULTILINE)
RULES = sorted((ROOT / "workflow/rules").rglob("*.smk"))


def keys_of_rules(file: str) -> dict[str, set[str]]:
    """Return for each rule that a configuration has jobs of, the sections that its settings read.

    The settings of some rules contain the whole configuration.
    """
    os.environ[SEPARATE] = "1"
    workflow = plan_run(
        [
            *("all", "table", "--configfile", file, "--snakefile", "workflow/Snakefile"),
            *("--profile", "profiles/local", "--forceall"),
        ]
    )
    reads: set[str] = set()
    sections = {*Configuration.model_fields, *SECTIONS}
    configuration = type(workflow.globals["CONFIG"])

    def traced(self: Configuration, name: str) -> object:
        if name in sections:
            reads.add(SECTIONS.get(name, name))
        return object.__getattribute__(self, name)

    def traced_params(self: EntrySettings, name: str) -> object:
        if name == "configuration":
            reads.update(Configuration.model_fields)
        return object.__getattribute__(self, name)

    setattr(configuration, "__getattribute__", traced)  # noqa: B010
    setattr(EntrySettings, "__getattribute__", traced_params)  # noqa: B010
    keys = defaultdict[str, set[str]](set)
    for job in workflow.dag.jobs:
        function = job.rule.params.get("settings")
        if callable(function):
            reads.clear()
            function(job.wildcards)
            keys[job.rule.name] |= reads
    return keys


def annotated(text: str, keys: Mapping[str, set[str]]) -> str:
    """Return the text of a file of rules with the keys beside the parameter of each rule that has some."""

    def annotate(match: re.Match[str]) -> str:
        names = keys.get(match[2], set())
        text = (
            "the whole configuration" if names == {*Configuration.model_fields} else ", ".join(sorted(names))
        )
        return f"{match[1]}  # {text}" if names else match[0]

    return PARAMETER.sub(annotate, text)


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each file of rules."""
    keys = defaultdict[str, set[str]](set)
    with TemporaryDirectory() as folder:
        others = Path(folder, "others.yaml")
        others.write_text(OTHERS, encoding="utf-8")
        for file in ("config/config.yaml", str(others)):
            # In a process of its own, because Snakemake plans once in a process.
            code = f"from tools.rule_keys import keys_of_rules; print(repr(dict(keys_of_rules({file!r}))))"
            run = subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
            )
            for name, names in ast.literal_eval(run.stdout.splitlines()[-1]).items():
                keys[name] |= names
    for path in RULES:
        yield path, annotated(path.read_text(encoding="utf-8"), keys)


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text, encoding="utf-8")

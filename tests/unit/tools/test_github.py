"""The workflows of GitHub Actions, and the scripts with which they write issues and comments."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.source_tree import ROOT

WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
GH = """#!/bin/sh
printf '%s\\n' "$@" >>calls
case "$*" in
  *pulls*) printf '%s' "$PULLS" ;;
  *list*) printf '%s' "$ISSUE" ;;
  *--body-file*) cat >body ;;
esac
"""


def steps(name: str) -> Iterator[dict[str, Any]]:
    for job in WORKFLOWS[name]["jobs"].values():
        yield from job["steps"]


def test_workflows() -> None:
    assert set(WORKFLOWS) == {"ci", "nightly", "results", "comment", "release"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_everything_that_a_workflow_runs_exists(name: str) -> None:
    commands = "\n".join(step["run"] for step in steps(name) if "run" in step)
    assert set(re.findall(r"\bmake ([\w-]+)", commands)) <= TARGETS
    for script in re.findall(r"(?<!\S)\.ci/\w+", commands):
        assert os.access(ROOT / script, os.X_OK), script
    for path in re.findall(r" -r (\S+)", commands):
        assert (ROOT / path).is_file(), path
    for target in re.findall(r"\.ci/run (\S+)", commands):
        assert target in TARGETS


@pytest.mark.parametrize("name", WORKFLOWS)
def test_jobs_have_a_time_limit_and_write_only_where_declared(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    writes = {
        (name, job_name, scope)
        for job_name, job in workflow["jobs"].items()
        for scope, access in job.get("permissions", {}).items()
        if access == "write"
    }
    assert writes == {
        "nightly": {("nightly", "issue", "issues")},
        "comment": {("comment", "comment", "pull-requests")},
        "release": {("release", "release", "contents"), ("release", "publish", "id-token")},
    }.get(name, set())
    assert all(job["timeout-minutes"] <= 360 for job in workflow["jobs"].values())


def test_actions_are_those_of_github_in_one_major_version() -> None:
    actions = {step["uses"] for name in WORKFLOWS for step in steps(name) if "uses" in step}
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in actions)
    assert len({action.partition("@")[0] for action in actions}) == len(actions)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_commands_contain_nothing_that_an_event_names(name: str) -> None:
    """Names of branches and titles would be run as code."""
    commands = " ".join(step.get("run", "") for step in steps(name))
    assert all(text.startswith("matrix.") for text in re.findall(r"\$\{\{ (\S+)", commands))


def test_code_of_a_pull_request_never_has_write_permission() -> None:
    events = {name: workflow[True] for name, workflow in WORKFLOWS.items()}  # YAML 1.1 reads "on" as True
    assert "pull_request_target" not in str(events)
    assert [name for name, event in events.items() if "workflow_run" in event] == ["comment"]
    assert events["comment"]["workflow_run"]["workflows"] == [WORKFLOWS["results"]["name"]]
    for step in steps("comment"):
        assert "ref" not in step.get("with", {}), "checks out the default branch"
        assert step.get("run", ".ci/comment").split()[0] == ".ci/comment"


def test_publishing_is_off_unless_the_repository_turns_it_on() -> None:
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert (publish["if"], publish["environment"]) == ("vars.PUBLISH == 'true'", "release")


@pytest.fixture
def call(tmp_path: Path) -> Any:
    """A function that runs a script with a ``gh`` that records its arguments, and returns these."""
    program = tmp_path / "bin/gh"
    program.parent.mkdir()
    program.write_text(GH)
    program.chmod(0o755)

    def run(script: str, *arguments: str, **answers: str) -> list[str]:
        (tmp_path / "calls").write_text("")
        environment = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "GITHUB_REPOSITORY": "me/assay",
            **answers,
        }
        subprocess.run([ROOT / ".ci" / script, *arguments], cwd=tmp_path, env=environment, check=True)
        return (tmp_path / "calls").read_text().splitlines()

    return run


def test_a_failure_opens_an_issue_or_comments_on_the_open_one(call: Any) -> None:
    opened = call("issue", "https://run/1", ISSUE="")
    assert opened[-6:] == ["issue", "create", "--title", "Nightly tests fail", "--body", "https://run/1"]
    assert call("issue", "https://run/2", ISSUE="12")[-5:] == [
        "issue",
        "comment",
        "12",
        "--body",
        "https://run/2",
    ]


def test_text_of_a_pull_request_stays_in_its_code_block(call: Any, tmp_path: Path) -> None:
    hostile = "3 scores differ\r\n```\n@everyone `x`\nPage: /home/changes.html\n"
    (tmp_path / "changes.txt").write_text(hostile + "y" * 100_000)
    calls = call("comment", "changes.txt", PULLS="7\n", HEAD="you:topic", SHA="abc", URL="https://run/1")
    assert "head=you:topic" in calls
    assert calls[-7:] == ["pr", "comment", "7", "--edit-last", "--create-if-none", "--body-file", "-"]
    lines = (tmp_path / "body").read_text().splitlines()
    assert lines[1:5] == ["```", "3 scores differ", "", "@everyone x"]
    assert (lines[-2], lines[-1]) == ("```", "[Page with all differences](https://run/1)")
    assert all("/home" not in line and len(line) < 21_000 for line in lines)


def test_a_pull_request_with_newer_commits_gets_no_comment(call: Any, tmp_path: Path) -> None:
    (tmp_path / "changes.txt").write_text("Nothing differs\n")
    calls = call("comment", "changes.txt", PULLS="", HEAD="you:topic", SHA="abc", URL="https://run/1")
    assert "comment" not in calls

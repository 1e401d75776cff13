"""A server with the part of Kubernetes' interface that Snakemake uses, which runs the command of each job here.

A job gets a folder of its own, the environment variables of its secrets, and the programs of this environment, with a
``pip`` that finds everything installed, as in the image of ``containers/Dockerfile``. A log is refused as by Kubernetes
if it is that of a container before the last one, because no container is started twice.
"""

import base64
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

KILLED = 137
"""Exit status of a container that used more memory than its limit."""


@dataclass
class Pods:
    """Jobs that were submitted, and the server that accepts them."""

    folder: Path
    is_killed: Callable[[str, int], bool] = lambda rule, attempt: False
    """Takes the rule of a job and the number of its jobs so far; True if this one uses too much memory."""
    manifests: list[dict[str, Any]] = field(default_factory=list)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    statuses: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the server; two jobs run at once."""
        self.pool = ThreadPoolExecutor(2)
        (self.folder / "bin").mkdir(parents=True)
        (self.folder / "bin/pip").write_text("#!/bin/sh\n")
        (self.folder / "bin/pip").chmod(0o755)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"pods": self}))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        names = {"cluster": "test", "user": "test"}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}
            ],
            "users": [{"name": "test", "user": {"token": "test"}}],
            "contexts": [{"name": "test", "context": names}],
            "current-context": "test",
        }
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(kubeconfig))

    def close(self) -> None:
        """Stop the server after the jobs that run."""
        self.pool.shutdown(cancel_futures=True)
        self.server.shutdown()
        self.server.server_close()

    def of_rule(self, rule: str) -> list[dict[str, Any]]:
        """Return the containers of the jobs of a rule, in order of submission."""
        containers = [manifest["spec"]["template"]["spec"]["containers"][0] for manifest in self.manifests]
        return [container for container in containers if rule in rules_of(container)]

    def submit(self, manifest: dict[str, Any]) -> None:
        """Record a job and run it."""
        name = manifest["metadata"]["name"]
        (container,) = manifest["spec"]["template"]["spec"]["containers"]
        self.manifests.append(manifest)
        self.statuses[name] = None
        rule = rules_of(container)[0]
        if self.is_killed(rule, len(self.of_rule(rule))):
            self.statuses[name] = KILLED
        else:
            self.pool.submit(self._run, name, container)

    def _run(self, name: str, container: dict[str, Any]) -> None:
        folder = self.folder / name
        folder.mkdir()
        environment = {
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "OMP_NUM_THREADS": "1",
        }
        for variable in container["env"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            value = self.secrets[reference["name"]][reference["key"]]
            environment[variable["name"]] = base64.b64decode(value).decode()
        command = [*container["command"], *container["args"]]
        with (folder / "pod.log").open("w") as log:
            done = subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, check=False)
        self.statuses[name] = done.returncode


def rules_of(container: dict[str, Any]) -> list[str]:
    """Return the rules of a job."""
    match = re.search(r"--allowed-rules ((?:'?\w+'? )+)", f"{container['args'][-1]} ")
    return [] if match is None else match[1].replace("'", "").split()


class _Handler(BaseHTTPRequestHandler):
    pods: Pods

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/secrets"):
            self.pods.secrets[body["metadata"]["name"]] = body["data"]
        else:
            self.pods.submit(body)
        self._answer(body, 201)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        *_, kind, name = url.path.removesuffix("/status").removesuffix("/log").split("/")
        if url.path.endswith("/log"):
            is_previous = query.get("previous", "false").lower() == "true"
            reason = f'previous terminated container "snakemake" in pod "{name}" not found'
            self._answer({"message": reason} if is_previous else "log", 400 if is_previous else 200)
        elif kind == "jobs":
            status = self.pods.statuses[name]
            key = "active" if status is None else "failed" if status else "succeeded"
            self._answer({"metadata": {"name": name}, "status": {key: 1}})
        else:
            self._answer({"items": [self._pod(query["labelSelector"].partition("=")[2])]})

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.pods.deleted.add(urlsplit(self.path).path.rpartition("/")[2])
        self._answer({})

    def _pod(self, job: str) -> dict[str, Any]:
        status = self.pods.statuses[job]
        state = {"running": {}} if status is None else {"terminated": {"exitCode": status}}
        container = {
            "name": "snakemake", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state
        }  # fmt: skip
        return {"metadata": {"name": f"{job}-pod"}, "status": {"containerStatuses": [container]}}

    def _answer(self, content: Any, status: int = 200) -> None:
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""

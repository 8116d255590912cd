"""The unit of systemd and the Deployment of Kubernetes that the pages show: their parts have to fit."""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from n00dles.cli import build_parser
from n00dles.config import lease_ttl
from n00dles.worker import GRACE
from tests.docs.pages import ROOT, Block, blocks_of, parse_yaml

TO_END = GRACE + 5  # seconds: for what has to be released, and for the interpreter
PAGES = ("run-workers.md", "run-on-kubernetes.md")
BLOCKS = [block for page in PAGES for block in blocks_of(ROOT / "docs" / "how-to" / page)]


def only(language: str, text: str) -> Block:
    (found,) = [block for block in BLOCKS if block.language == language and text in block.text]
    return found


def worker_options(command: list[str]) -> argparse.Namespace:
    """Return what the worker would be told; a usage error is a failure."""
    assert Path(command[0]).name == "n00dles"
    return build_parser().parse_args(command[1:])


@pytest.fixture
def unit() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(only("text", "[Service]").text)
    return parser


@pytest.fixture
def manifests() -> dict[str, Any]:
    return {document["kind"]: document for document in parse_yaml(only("yaml", "kind: Deployment"))}


@pytest.fixture
def pod(manifests: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = manifests["Deployment"]["spec"]["template"]["spec"]
    return spec


def test_systemd_waits_longer_than_the_worker_drains(unit: configparser.ConfigParser) -> None:
    options = worker_options(shlex.split(unit["Service"]["ExecStart"]))

    assert float(unit["Service"]["TimeoutStopSec"]) >= options.drain_timeout + TO_END
    assert unit["Service"]["Restart"] == "always"


def test_the_unit_holds_no_secret(unit: configparser.ConfigParser) -> None:
    assert "--store" not in unit["Service"]["ExecStart"]
    assert "Environment" not in unit["Service"]
    assert unit["Service"]["EnvironmentFile"].startswith("/etc/")


def test_kubernetes_waits_longer_than_the_worker_drains(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]

    assert pod["terminationGracePeriodSeconds"] >= worker_options(container["command"]).drain_timeout + TO_END


def test_pods_are_not_root_and_are_told_to_end_as_their_first_process(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["command"][0] == "n00dles"  # a shell in front of it would keep SIGTERM to itself


def test_the_page_says_the_times_that_the_deployment_has(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    page = (ROOT / "docs" / "how-to" / "run-on-kubernetes.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^\| `([\w-]+)` \| (\d+) s", page, re.MULTILINE))

    assert said == {
        "--drain-timeout": f"{worker_options(container['command']).drain_timeout:g}",
        "terminationGracePeriodSeconds": str(pod["terminationGracePeriodSeconds"]),
        "--lease-ttl": f"{lease_ttl():g}",
    }


def test_the_deployment_finds_its_pods_and_its_store(manifests: dict[str, Any], pod: dict[str, Any]) -> None:
    spec, secret = manifests["Deployment"]["spec"], manifests["Secret"]
    (variable,) = pod["containers"][0]["env"]
    reference = variable["valueFrom"]["secretKeyRef"]

    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert (variable["name"], reference["name"]) == ("N00DLES_STORE", secret["metadata"]["name"])
    assert secret["stringData"][reference["key"]].startswith("postgresql://")


def test_pods_keep_nothing_and_listen_to_nobody(manifests: dict[str, Any], pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]

    assert {*manifests} == {"Secret", "Deployment"}
    assert "volumes" not in pod
    assert {"volumeMounts", "ports"}.isdisjoint(container)


@pytest.mark.parametrize(("age", "is_alive"), [(0, True), (150, False), (None, False)])
def test_the_probe_goes_by_the_heartbeat(
    pod: dict[str, Any], tmp_path: Path, age: float | None, is_alive: bool
) -> None:
    (container,) = pod["containers"]
    beat = str(worker_options(container["command"]).heartbeat)
    command = container["livenessProbe"]["exec"]["command"]
    mine = tmp_path / "alive"
    if age is not None:
        mine.touch()
        os.utime(mine, (time.time() - age, time.time() - age))

    done = subprocess.run([part.replace(beat, str(mine)) for part in command], capture_output=True, check=False)

    assert beat in command[-1]
    assert (done.returncode == 0) == is_alive

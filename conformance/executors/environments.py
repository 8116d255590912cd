"""A virtual environment for each subject, made once and kept under `build/executors`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ROOT", "WORK", "InstallError", "interpreter", "prepare"]

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "executors"


class InstallError(Exception):
    """A subject cannot be installed; the message is the last line of pip."""


def interpreter(name: str) -> str:
    """Return the path of the interpreter of an environment, which need not be there."""
    return str(WORK / name / "environment" / "bin" / "python")


def prepare(name: str, packages: Sequence[str], *, with_ours: bool) -> dict[str, str]:
    """Make the environment of a subject if it is not there, and return the versions of all that is installed in it.

    `with_ours` installs this checkout beside it. Raises `InstallError`.
    """
    folder = WORK / name / "environment"
    wanted = [*packages, *(["--editable", str(ROOT)] if with_ours else [])]
    stamp = folder / "installed.json"
    if not (stamp.exists() and json.loads(stamp.read_text("utf-8"))["wanted"] == wanted):
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=False, symlinks=True)
        _pip(name, "install", "-q", *wanted)
        listed = json.loads(_pip(name, "list", "--format=json"))
        versions = {each["name"].lower(): each["version"] for each in listed}
        stamp.write_text(json.dumps({"wanted": wanted, "versions": versions}), "utf-8")
    return dict(json.loads(stamp.read_text("utf-8"))["versions"])


def _pip(name: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--python", interpreter(name), "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
        raise InstallError(errors[-1][:300] or f"pip ended with {done.returncode}")
    return done.stdout

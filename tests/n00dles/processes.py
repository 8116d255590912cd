"""Other processes, for what only they can show: a kill, a second worker, a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["finish", "python", "start"]

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 60
"""Seconds after which a child counts as hanging."""


def start(script: str, *arguments: object, cwd: Path, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a Python script, given as text, whose warnings are errors."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", *options, "-c", script, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child: subprocess.Popen[str], *, code: int = 0) -> str:
    """Wait for a child, and return what it printed. Fails if it ends with another code than `code` (-9: killed)."""
    try:
        out, err = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        raise AssertionError(f"the child hangs.\n{out}\n{err}") from None
    assert child.returncode == code, f"the child ended with {child.returncode}, not {code}.\n{out}\n{err}"
    assert code != 0 or err == "", err
    return out


def python(script: str, *arguments: object, cwd: Path, code: int = 0, **options: Any) -> str:
    """Run a Python script to its end, and return what it printed."""
    return finish(start(script, *arguments, cwd=cwd, **options), code=code)

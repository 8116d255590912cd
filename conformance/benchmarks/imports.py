"""What an import costs: n00dles against pydantic, and the plugin in a pytest run that does not use it.

Each side is a fresh interpreter, taken in turn; the time of a bare interpreter is subtracted from imports.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .figure import Figure, alternated, ratio

__all__ = ["figures"]

ROUNDS = 15
TESTS = 200
"""Of a run that shows what the plugin's hooks cost a test that does not use it."""


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    # `import pydantic` alone loads next to nothing by now (PEP 562); what a user of it pays is BaseModel.
    bare, pydantic, ours = alternated(
        ROUNDS,
        lambda: _python("-c", ""),
        lambda: _python("-c", "from pydantic import BaseModel"),
        lambda: _python("-c", "import n00dles"),
    )
    base = statistics.median(bare)
    yield Figure(
        "import n00dles",
        ratio([side - base for side in ours], [side - base for side in pydantic]),
        "× pydantic's BaseModel",
        f"over a bare interpreter: {_milliseconds(ours, base)} against {_milliseconds(pydantic, base)}",
        at_most=1.5,
    )
    yield _unused_plugin("pytest with the plugin unused", 1)
    yield _unused_plugin(f"{TESTS} tests with the plugin unused", TESTS)


def _unused_plugin(name: str, tests: int) -> Figure:
    """Compare a run of tests that do nothing with and without the plugin."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test_nothing.py"
        file.write_text("".join(f"def test_nothing_{number}():\n    assert True\n\n" for number in range(tests)))
        plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(file))
        without, installed = alternated(
            ROUNDS, lambda: _python(*plain, "-p", "no:n00dles_testing"), lambda: _python(*plain)
        )
    return Figure(
        name,
        ratio(installed, without),
        "× without",
        f"{_milliseconds(installed)} against {_milliseconds(without)}",
        at_most=1.03,
    )


def _python(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def _milliseconds(seconds: list[float], base: float = 0.0) -> str:
    return f"{(statistics.median(seconds) - base) * 1000:.0f} ms"

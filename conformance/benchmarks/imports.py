"""What an import costs: `import n00dles` against `import pydantic`, and the plugin in a pytest run that does not use it.

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


def figures() -> Iterator[Figure]:
    """Measure, and yield each figure as soon as it is known."""
    bare, pydantic, ours = alternated(
        ROUNDS, lambda: _python("-c", ""), lambda: _python("-c", "import pydantic"), lambda: _python("-c", "import n00dles")
    )
    _milliseconds = [statistics.median(side) * 1000 for side in (bare, pydantic, ours)]
    yield Figure(
        "import n00dles",
        (_milliseconds[2] - _milliseconds[0]) / (_milliseconds[1] - _milliseconds[0]),
        "× import pydantic",
        "whole process: bare {:.0f} ms, pydantic {:.0f} ms, n00dles {:.0f} ms".format(*_milliseconds),
        at_most=1.5,
    )
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_nothing.py"
        test.write_text("def test_nothing():\n    assert True\n")
        plain = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(test))
        without, installed = alternated(
            ROUNDS, lambda: _python(*plain, "-p", "no:n00dles_testing"), lambda: _python(*plain)
        )
    yield Figure(
        "pytest with the plugin unused",
        ratio(installed, without),
        "× without",
        f"{statistics.median(installed) * 1000:.0f} ms against {statistics.median(without) * 1000:.0f} ms",
        at_most=1.03,
    )


def _python(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started

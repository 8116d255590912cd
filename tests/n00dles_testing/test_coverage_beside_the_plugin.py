"""The plugin does not hide the coverage of what is tested: it is loaded first, and imports nothing of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_cov")

ROOT = Path(__file__).parents[2]

SHOP = """
from n00dles import agent, pipeline


@agent
def shout(text: str) -> str:
    return text.upper()


@agent
def whisper(text: str) -> str:
    return text.lower()


loud = pipeline(shout, name="loud")
"""

TESTS = """
from shop import loud
from n00dles import run


def test_it(n00dles_store, mock_llm):
    assert run(loud, text="x").output == "X"
"""


def test_what_is_imported_and_run_by_tests_is_counted_and_only_what_is_not_run_is_missed(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "test_shop.py").write_text(TESTS)
    # Neither the settings of this repository, nor a run of it that is itself measured.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    options = ["--cov=shop", "--cov=n00dles.retry", "--cov-report=json:found.json", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    files = json.loads((tmp_path / "found.json").read_text())["files"]
    missing = {Path(name).name: found["missing_lines"] for name, found in files.items()}
    assert missing["shop.py"] == [1 + SHOP.splitlines().index("    return text.lower()")]
    retry = (ROOT / "n00dles" / "retry.py").read_text().splitlines()
    hidden = [retry[line - 1] for line in missing["retry.py"] if not retry[line - 1].startswith("    ")]
    assert hidden == []  # whatever runs at the import of a module of n00dles

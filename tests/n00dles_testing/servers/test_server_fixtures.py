"""The fixtures `postgres_server` and `valkey_server`, as a third party uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from n00dles_testing.servers import why_not_postgres, why_not_valkey

THIRD_PARTY = """
import os

seen = []

def test_one(postgres_server, valkey_server):
    postgres_server.execute("CREATE TABLE runs (id text)", database="n00dles")
    valkey_server.execute("SET", "answer", "42")
    seen.append((postgres_server.port, valkey_server.port))
    postgres_server.pause()
    valkey_server.kill()

def test_two(postgres_server, valkey_server):
    postgres_server.execute("CREATE TABLE runs (id text)", database="n00dles")
    assert valkey_server.execute("EXISTS", "answer") == "0"
    assert seen[0][0] == postgres_server.port  # it was paused, and goes on
    postgres_server.kill()

def test_three(postgres_server):
    postgres_server.execute("CREATE TABLE runs (id text)", database="n00dles")
    with open("folder", "w") as file:
        file.write(str(postgres_server.folder))
"""


def run(tmp_path: Path, text: str, **environment: str) -> str:
    (tmp_path / "test_third_party.py").write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "test_third_party.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_test_finds_the_servers_running_and_empty(tmp_path: Path) -> None:
    if reason := why_not_postgres() or why_not_valkey():
        pytest.skip(reason)

    told = run(tmp_path, THIRD_PARTY)

    assert "3 passed" in told
    assert not Path((tmp_path / "folder").read_text()).exists()


def test_where_there_is_no_server_a_test_is_skipped_with_the_reason(tmp_path: Path) -> None:
    told = run(tmp_path, "def test_one(valkey_server): raise SystemError", N00DLES_VALKEY_SERVER="/nowhere")

    assert "1 skipped" in told
    assert "NOT RUN: N00DLES_VALKEY_SERVER is '/nowhere', which is no program" in told


def test_nothing_is_imported_before_a_test_asks(tmp_path: Path) -> None:
    told = run(
        tmp_path,
        "import sys\n"
        "def test_one(): assert not [name for name in sys.modules if name.startswith('n00dles_testing.servers')]\n",
    )

    assert "1 passed" in told

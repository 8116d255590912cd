"""What is traced is what strace shows of the same program."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.tracing import TracedCall
from n00dles_testing.tracing.machines import CONDITIONAL, this_machine

from .tracing_here import calls, needs_tracing, traced_well

pytestmark = [
    needs_tracing,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

LINE = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def sqlite_in_wal_mode(folder: str) -> None:
    connection = sqlite3.connect(os.path.join(folder, "a.db"), isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE t (x)")
    for number in range(3):
        connection.execute("INSERT INTO t VALUES (?)", (str(number) * 1000,))
    connection.close()


def sqlite_with_a_journal(folder: str) -> None:
    connection = sqlite3.connect(os.path.join(folder, "a.db"))
    connection.execute("CREATE TABLE t (x)")
    for number in range(3):
        connection.execute("INSERT INTO t VALUES (?)", (str(number) * 1000,))
        connection.commit()
    connection.close()


def json_files(folder: str) -> None:
    state, log = os.path.join(folder, "state.json"), os.path.join(folder, "log")
    for number in range(3):
        with open(f"{state}.tmp", "w") as file:
            json.dump({"number": number, "text": "é" * 20}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{state}.tmp", state)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    with open(log, "ab") as end:
        end.write(b"\0\n\xff")
    os.truncate(log, 1)


def json_files_of_threads(folder: str) -> None:
    def work(name: str) -> None:
        os.makedirs(os.path.join(folder, name))
        for number in range(3):
            with open(os.path.join(folder, name, f"{number}.json"), "w") as file:
                json.dump(name, file)

    for name in "abc":
        thread = threading.Thread(target=work, args=(name,))
        thread.start()
        thread.join()


WORKLOADS = [sqlite_in_wal_mode, sqlite_with_a_journal, json_files, json_files_of_threads]


def unquoted(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def seen_by_strace(log: str, folder: str) -> list[tuple[str, int, bytes]]:
    """Name, result and bytes of each call that names the folder, or a descriptor of a file in it."""
    seen = []
    for line in log.splitlines():
        match = LINE.match(line)
        if match is None or match["name"] in (*CONDITIONAL, "fchown"):
            continue
        strings = [unquoted(text) for text in STRING.findall(match["arguments"])]
        described = [unquoted(text).decode() for text in re.findall(r"<((?:\\x[0-9a-f]{2})+)>", match["arguments"])]
        if not any(path.startswith(folder) for path in [*described, *map(os.fsdecode, strings)]):
            continue
        name, result = match["name"], int(match["result"])
        data = strings[0][:result] if "write" in name else b""
        if name.startswith("open") and result > 0:
            result = 0
        seen.append((name, -1 if result < 0 else result, data))
    return seen


def seen_by_us(told: list[TracedCall]) -> list[tuple[str, int, bytes]]:
    seen = []
    for call in told:
        result = -99 if call.result is None else call.result
        result = 0 if call.name.startswith("open") and result > 0 else result
        seen.append((call.name, -1 if result < 0 else result, call.data))
    return seen


@pytest.mark.parametrize("workload", WORKLOADS)
def test_strace_shows_the_same_calls_with_the_same_bytes(workload: Callable[[str], None], tmp_path: Path) -> None:
    machine = this_machine()
    assert machine is not None
    ours, theirs, log = tmp_path / "ours", tmp_path / "their", tmp_path / "log"
    ours.mkdir()
    theirs.mkdir()
    script = (
        f"import sys; sys.path.insert(0, {os.getcwd()!r}); "
        f"from {__name__} import {workload.__name__}; {workload.__name__}({str(theirs)!r})"
    )
    names = ",".join(f"?{name}" for name in machine.numbers)
    command = ["strace", "-f", "-y", "-xx", "-s", "100000", "-e", f"trace={names}", "-e", "signal=none", "-o", str(log)]
    if subprocess.run([*command, sys.executable, "-c", script], check=False).returncode != 0:
        pytest.skip("strace cannot trace here")

    traced = traced_well(lambda: workload(str(ours)), ours)

    mine, shown = seen_by_us(calls(traced)), seen_by_strace(log.read_text(), str(theirs))
    assert [call[:2] for call in mine] == [call[:2] for call in shown]
    assert [len(data) for *_, data in mine] == [len(data) for *_, data in shown]
    if "json" in workload.__name__:  # SQLite writes salts and the number of the process
        assert mine == shown
    assert len(mine) > 10

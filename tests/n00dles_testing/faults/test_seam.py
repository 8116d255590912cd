"""Calls to the outside are heard one by one, in any thread, and can be made to fail before or after their work.

Each is tried in a process of its own: what is installed for it cannot be taken away again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PRELUDE = """
import asyncio, functools, json, logging, os, sqlite3, sys, threading
from pathlib import Path
from n00dles_testing.faults import *

folder = Path(sys.argv[1])

def save(text="new"):
    with open(folder / "aside", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "aside", folder / "record")

def attempt(work):
    try:
        work()
        return "done"
    except (OSError, sqlite3.Error) as error:
        return f"{type(error).__name__} {getattr(error, 'errno', None) or error.sqlite_errorname}"

def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def heard_in(work):
    calls = []
    seam = Seam(lambda number, call, when: calls.append(f"{number} {call.name} {when}"))
    with seam.listening():
        work()
    return calls

def failing(wanted, when, fault="ENOSPC", lasting=False):
    def heard(number, call, now):
        if now == when and (number >= wanted if lasting else number == wanted):
            raise error_of(call, fault)
    return Seam(heard, lasting=lasting)
"""


def told_by(code: str, folder: Path) -> Any:
    program = f"{PRELUDE}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NAMES = ["open", "file.write", "file.flush", "os.fsync", "file.close", "os.replace"]


@pytest.mark.parametrize("how", ["save()", "in_thread(save)", "asyncio.run(asyncio.to_thread(save))"])
def test_each_call_to_the_outside_is_heard_before_and_after(how: str, tmp_path: Path) -> None:
    heard = told_by(f"print(json.dumps(heard_in(lambda: {how})))", tmp_path)

    assert heard == [f"{n} {name} {when}" for n, name in enumerate(NAMES, 1) for when in ("before", "after")]


def test_what_is_not_the_stores_own_is_not_heard(tmp_path: Path) -> None:
    heard = told_by(
        """
def work():
    print("hello", file=sys.stderr)
    sys.stderr.write("hello")
    logging.getLogger("x").warning("hello")
    import xml.dom.minidom
    asyncio.run(asyncio.to_thread(json.dumps, {}))
    (folder / "record").exists()
    {}.pop("x", None); [].append(1); set().update()
print(json.dumps(heard_in(work)))""",
        tmp_path,
    )

    assert heard == []


def test_statements_of_sqlite_that_c_code_calls_are_heard(tmp_path: Path) -> None:
    heard = told_by(
        """
def work():
    connection = sqlite3.connect(folder / "x.db", isolation_level=None)
    connection.execute("CREATE TABLE t (a)")
    functools.partial(connection.execute, "INSERT INTO t VALUES (1)")()
    connection.close()
print(json.dumps([line for line in heard_in(work) if line.endswith("before")]))""",
        tmp_path,
    )

    assert heard == [
        "1 sqlite3.connect before",
        "2 sqlite3.Connection.execute before",
        "3 sqlite3 statement before",
    ]


@pytest.mark.parametrize(
    ("wanted", "when", "came", "left"),
    [
        (1, "before", "OSError 28", {"record": "old"}),
        (4, "before", "OSError 28", {"record": "old", "aside": "new"}),
        (6, "before", "OSError 28", {"record": "old", "aside": "new"}),
        (6, "after", "OSError 28", {"record": "new"}),
        (7, "before", "done", {"record": "new"}),
    ],
)
def test_a_call_fails_before_or_after_its_work(
    wanted: int, when: str, came: str, left: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "record").write_text("old")

    said = told_by(
        f"seam = failing({wanted}, {when!r})\nwith seam.listening(): came = attempt(save)\nprint(json.dumps(came))",
        tmp_path,
    )

    assert said == came
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == left


def test_a_fault_is_over_after_one_call_or_lasts(tmp_path: Path) -> None:
    code = """
seam = failing(1, "before", lasting={lasting})
with seam.listening(): came = [attempt(save), attempt(save)]
print(json.dumps([*came, attempt(save)]))"""

    once, lasting = (told_by(code.format(lasting=lasting), tmp_path) for lasting in (False, True))

    assert once == ["OSError 28", "done", "done"]
    assert lasting == ["OSError 28", "OSError 28", "done"]


def test_sqlite_fails_with_its_own_errors(tmp_path: Path) -> None:
    said = told_by(
        """
connection = sqlite3.connect(folder / "x.db")
came = []
for fault in ("ENOSPC", "EIO"):
    seam = failing(1, "before", fault)
    with seam.listening(): came.append(attempt(lambda: connection.execute("CREATE TABLE t (a)")))
seam = failing(1, "before", "EMFILE")
with seam.listening(): came.append(attempt(lambda: sqlite3.connect(folder / "y.db")))
print(json.dumps(came))""",
        tmp_path,
    )

    assert said == [
        "OperationalError SQLITE_FULL",
        "OperationalError SQLITE_IOERR_FSYNC",
        "OperationalError SQLITE_CANTOPEN",
    ]


def test_only_a_commit_of_sqlite_can_lose_its_reply(tmp_path: Path) -> None:
    said = told_by(
        """
lost, was = [], {}
def heard(number, call, when):
    if when == "before":
        was[number] = in_transaction(call)
    elif can_lose_its_reply(call, was[number]):
        lost.append(number)
def work():
    connection = sqlite3.connect(folder / "x.db", isolation_level=None)
    for statement in ("CREATE TABLE t (a)", "BEGIN", "INSERT INTO t VALUES (1)", "COMMIT", "BEGIN"):
        connection.execute(statement)
    connection.rollback()
with Seam(heard).listening(): work()
print(json.dumps(lost))""",
        tmp_path,
    )

    assert said == [5]


def test_the_kernel_cuts_a_write_and_refuses_an_open(tmp_path: Path) -> None:
    said = told_by(
        """
with limited_size(100): came = [attempt(lambda: save("x" * 300))]
with limited_files(0): came.append(attempt(save))
print(json.dumps([*came, (folder / "aside").stat().st_size, attempt(save)]))""",
        tmp_path,
    )

    assert said == ["OSError 27", "OSError 24", 100, "done"]


def test_the_kernel_kills_in_the_middle_of_a_write(tmp_path: Path) -> None:
    program = f"{PRELUDE}\nwith dying_at_size(100): save('x' * 300)"

    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, timeout=60, check=False)

    assert done.returncode == -25
    assert (tmp_path / "aside").stat().st_size == 100
    assert not (tmp_path / "record").exists()


def test_two_threads_may_find_a_new_connection_at_the_same_moment(tmp_path: Path) -> None:
    heard = told_by(
        """
class Connection(sqlite3.Connection):
    def set_trace_callback(self, callback):
        if threading.current_thread() is threading.main_thread():
            in_thread(os.getpid)
        super().set_trace_callback(callback)
def work():
    connection = sqlite3.connect(folder / "x.db", factory=Connection, check_same_thread=False, isolation_level=None)
    functools.partial(connection.execute, "CREATE TABLE t (a)")()
print(json.dumps([line for line in heard_in(work) if line.endswith("before")]))""",
        tmp_path,
    )

    assert heard == ["1 sqlite3.connect before", "2 sqlite3 statement before"]


@pytest.mark.parametrize("how", ["of the kernel's", "of ours"])
def test_a_commit_of_sqlite_that_meets_a_full_disk_is_rolled_back(how: str, tmp_path: Path) -> None:
    """SQLite ends the transaction: whoever commits again later commits nothing of it."""
    said = told_by(
        f"""
connection = sqlite3.connect(folder / "x.db")
connection.execute("CREATE TABLE t (a)")
connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
def heard(number, call, when):
    if when == "before" and call.name == "sqlite3.Connection.commit":
        undo(call)
        raise error_of(call, "ENOSPC")
if {how == "of ours"}:
    with Seam(heard).listening(): came = attempt(lambda: connection.commit())
else:
    with limited_size(20_000): came = attempt(lambda: connection.commit())
print(json.dumps([came.split()[0], connection.in_transaction]))""",
        tmp_path,
    )

    assert said == ["OperationalError", False]

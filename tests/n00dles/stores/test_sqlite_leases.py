"""Leases of runs in one SQLite file, between processes: who dies, who is stopped, and what becomes of the file."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles import RunLockedError, SQLiteStateStore, StateStoreError
from n00dles.stores import Lease
from n00dles.stores.lease_lines import _GATE
from tests.n00dles.processes import finish, python, start
from tests.n00dles.stores.opened import with_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")

LONG = 3600.0

# Acquires run "r", and then does line by line what it is told.
HOLDER = """
import asyncio, sys
from n00dles import SQLiteStateStore, RunLockedError

async def main():
    store = SQLiteStateStore("runs.db")
    lease = await store.acquire("r", "the child", float(sys.argv[1]))
    print("held", flush=True)
    for line in sys.stdin:
        try:
            if line == "renew\\n":
                lease = await store.renew(lease, float(sys.argv[1]))
            elif line == "release\\n":
                await store.release(lease)
            elif line == "close\\n":
                await store.aclose()
            print("done", flush=True)
        except RunLockedError as error:
            print(error, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(HOLDER, LONG, cwd=tmp_path)
    yield from _alive(process)


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A holder whose lease lasts for an instant."""
    yield from _alive(start(HOLDER, 0.05, cwd=tmp_path))


def _alive(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def told(process: subprocess.Popen[str], line: str) -> str:
    """Tell a holder what to do, and return what it answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def acquire(folder: Path, ttl: float = LONG) -> Lease:
    """Acquire run "r" here, and release it; return what was had."""

    async def work(store: SQLiteStateStore) -> Lease:
        lease = await store.acquire("r", "the parent", ttl)
        await store.release(lease)
        return lease

    return with_store(folder / "runs.db", work)


def lines(folder: Path) -> int:
    return len((folder / "runs.db-leases").read_bytes()) // 512


def test_a_run_held_in_another_process_is_refused_and_named(tmp_path: Path, child: subprocess.Popen[str]) -> None:
    with pytest.raises(RunLockedError) as caught:
        acquire(tmp_path)

    assert caught.value.holder == "the child"
    assert with_store(tmp_path / "runs.db", lambda store: store.list_leases(["r"]))[0].holder == "the child"
    assert told(child, "release") == "done"
    assert acquire(tmp_path).holder == "the parent"


def test_a_killed_holder_frees_its_run_at_once(tmp_path: Path, child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()

    assert with_store(tmp_path / "runs.db", lambda store: store.list_leases(["r"])) == []
    assert acquire(tmp_path).holder == "the parent"


def test_a_stopped_holder_loses_its_run_when_it_expires_and_is_told(
    tmp_path: Path, hasty: subprocess.Popen[str]
) -> None:
    hasty.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, hasty.pid, os.WSTOPPED | os.WNOWAIT)

    async def work(store: SQLiteStateStore) -> tuple[str, Lease]:
        while True:
            try:
                mine = await store.acquire("r", "the parent", LONG)
                break
            except RunLockedError:
                await asyncio.sleep(0.01)
        hasty.send_signal(signal.SIGCONT)
        answer = told(hasty, "renew")
        told(hasty, "release")
        return answer, await store.renew(mine, LONG)

    answer, mine = with_store(tmp_path / "runs.db", work)

    assert "run 'r' was taken over by the parent" in answer
    assert mine.holder == "the parent"


def test_a_holder_that_lives_and_whose_lease_has_expired_untaken_renews_it(
    tmp_path: Path, hasty: subprocess.Popen[str]
) -> None:
    async def free(store: SQLiteStateStore) -> None:
        while await store.list_leases(["r"]):
            await asyncio.sleep(0.01)

    with_store(tmp_path / "runs.db", free)

    assert told(hasty, "renew") == "done"


def test_a_run_that_another_process_has_taken_over_and_left_can_be_acquired_here_again(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> tuple[str, str, Lease]:
        first = await store.acquire("r", "A", 0.01)
        await asyncio.sleep(0.02)
        taken = python(ASKER, cwd=tmp_path)
        second = await store.acquire("r", "C", LONG)
        with pytest.raises(RunLockedError, match="was taken over by C"):
            await store.renew(first, LONG)
        return taken, python(ASKER, cwd=tmp_path), second

    taken, then, second = with_store(tmp_path / "runs.db", work)

    assert (taken, then, second.holder) == ("free\n", "held by C\n", "C")


def test_two_objects_and_a_link_stand_for_one_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)

    async def work(store: SQLiteStateStore) -> None:
        lease = await store.acquire("r", "A", LONG)
        for path in (tmp_path / "runs.db", tmp_path / "link" / "runs.db"):
            other = SQLiteStateStore(path)
            with pytest.raises(RunLockedError, match=r"A \(this process\)"):
                await other.acquire("r", "B", LONG)
            await other.aclose()
        await store.renew(lease, LONG)
        await store.release(lease)

    with_store(tmp_path / "runs.db", work)


COUNTER = """
import asyncio, os, sys
from pathlib import Path
from n00dles import SQLiteStateStore, RunLockedError

async def main():
    store = SQLiteStateStore("runs.db")
    await store.list_runs()
    print("ready", flush=True)
    sys.stdin.readline()
    done = 0
    while done < 40:
        try:
            lease = await store.acquire("r", "x", 3600)
        except RunLockedError:
            await asyncio.sleep(0)
            continue
        count = int(Path("count").read_text())
        Path("count").write_text(str(count + 1))
        done += 1
        await store.release(lease)
        if done % 10 == 0:
            await store.aclose()  # which removes the file, under the others

asyncio.run(main())
"""


def test_of_many_processes_only_one_holds_the_run_at_any_moment(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    children = [start(COUNTER, cwd=tmp_path) for _ in range(4)]
    for each in children:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in children:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in children:
        finish(each)

    assert (tmp_path / "count").read_text() == str(4 * 40)


def test_a_forked_child_has_no_lease_of_its_parent(tmp_path: Path) -> None:
    said = python(
        """
import asyncio, os
from n00dles import SQLiteStateStore, RunLockedError

async def main():
    store = SQLiteStateStore("runs.db")
    lease = await store.acquire("r", "the parent", 3600)
    return store, lease

async def in_child(store, lease):
    await store.release(lease)
    await store.aclose()
    for call in (store.renew(lease, 3600), store.acquire("r", "the child", 3600)):
        try:
            await call
            print("had it")
        except RunLockedError as error:
            print(error.holder)

store, lease = asyncio.run(main())
if os.fork() == 0:
    asyncio.run(in_child(store, lease))
    os._exit(0)
os.wait()
asyncio.run(store.renew(lease, 3600))
print("renewed")
""",
        cwd=tmp_path,
    )

    assert said.splitlines() == ["None", "the parent", "renewed"]


def test_a_child_that_outlives_a_killed_parent_does_not_keep_its_run(tmp_path: Path) -> None:
    parent = start(
        """
import asyncio, os, signal, sys
from n00dles import SQLiteStateStore

store = SQLiteStateStore("runs.db")
asyncio.run(store.acquire("r", "the parent", 3600))
gate, end = os.pipe()
if os.fork() == 0:
    os.write(end, b"x")
    signal.pause()
os.read(gate, 1)
print("held", flush=True)
signal.pause()
""",
        cwd=tmp_path,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "held\n"
    (orphan,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    parent.kill()
    parent.wait()
    try:
        assert acquire(tmp_path).holder == "the parent"
    finally:
        os.kill(int(orphan), signal.SIGKILL)
        parent.communicate()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 5_000,
        os.urandom(3_000),
        b"{" * 1_024,
        b'{"run": "2d4e1f50c09a9d7adce7355ef7fdd27a"}'.ljust(511) + b"\n",
        b'{"run": "2d4e1f50c09a9d7adce7355ef7fdd27a", "holder": "x", "token": "x", "since": 1e999, "until": NaN, '
        b'"expires": 1e999}'.ljust(300),
    ],
    ids=["empty", "zeros", "noise", "braces", "a stump of a line", "a line that is too short"],
)
def test_a_damaged_file_is_no_error_and_holds_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "runs.db-leases").write_bytes(content)

    lease = acquire(tmp_path)

    assert lease.holder == "the parent"


def test_a_file_that_is_removed_under_a_holder_is_made_again(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> str:
        lease = await store.acquire("r", "A", LONG)
        (tmp_path / "runs.db-leases").unlink()
        await store.renew(lease, LONG)
        return python(ASKER, cwd=tmp_path)

    assert with_store(tmp_path / "runs.db", work) == "held by A\n"


ASKER = """
import asyncio
from n00dles import SQLiteStateStore, RunLockedError

try:
    asyncio.run(SQLiteStateStore("runs.db").acquire("r", "B", 3600))
    print("free")
except RunLockedError as error:
    print("held by", error.holder)
"""


def test_a_lock_that_this_process_has_lost_by_reading_the_file_is_had_again_with_the_next_renewal(
    tmp_path: Path,
) -> None:
    async def work(store: SQLiteStateStore) -> str:
        lease = await store.acquire("r", "A", LONG)
        (tmp_path / "runs.db-leases").read_bytes()  # closing it drops every lock of the process: that is POSIX
        await store.renew(lease, LONG)
        return python(ASKER, cwd=tmp_path)

    assert with_store(tmp_path / "runs.db", work) == "held by A\n"


def test_the_file_goes_when_the_store_is_closed_and_nobody_holds_a_run(
    tmp_path: Path, child: subprocess.Popen[str]
) -> None:
    with_store(tmp_path / "runs.db", lambda store: store.list_runs())
    is_kept = (tmp_path / "runs.db-leases").exists()
    told(child, "release")

    told(child, "close")

    assert is_kept
    assert not (tmp_path / "runs.db-leases").exists()


def test_the_file_does_not_grow_with_the_runs_that_were_held(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> int:
        for number in range(300):
            await store.release(await store.acquire(f"r{number}", "A", LONG))
        return lines(tmp_path)

    assert with_store(tmp_path / "runs.db", work) == 1


def test_the_lines_of_killed_workers_are_used_again(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys
from n00dles import SQLiteStateStore

async def main():
    store = SQLiteStateStore("runs.db")
    for number in range(64):
        await store.acquire(f"{sys.argv[1]}-{number}", "x", 3600)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    for name in ("a", "b", "c"):
        python(script, name, cwd=tmp_path, code=-signal.SIGKILL)

    assert lines(tmp_path) == 64


def test_many_runs_are_held_with_one_descriptor(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> Any:
        await store.list_runs()
        before = _descriptors()
        held = [await store.acquire(f"r{number}", "A", LONG) for number in range(300)]
        during = _descriptors()
        listed = await store.list_leases([lease.run_id for lease in held])
        for lease in held:
            await store.release(lease)
        return before, during, _descriptors(), listed == held

    before, during, after, listed = with_store(tmp_path / "runs.db", work)

    assert (during, after) == (before + 1, before)
    assert listed


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


def test_whoever_may_use_the_database_may_use_its_leases(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> int:
        await store.list_runs()
        (tmp_path / "runs.db").chmod(0o660)
        await store.acquire("r", "A", LONG)
        return stat.S_IMODE((tmp_path / "runs.db-leases").stat().st_mode)

    assert with_store(tmp_path / "runs.db", work) == 0o660


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateStoreError, match=r"the folder of the SQLite store '.*none/runs.db' does not exist"):
        acquire(tmp_path / "none")


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs.db-leases").mkdir()

    with pytest.raises(StateStoreError, match=r"the leases of the SQLite store '.*' cannot be kept in '.*-leases'"):
        acquire(tmp_path)


def test_a_process_that_is_stopped_at_the_file_is_waited_for_within_the_bound(
    tmp_path: Path, child: subprocess.Popen[str]
) -> None:
    blocker = _at_the_gate(tmp_path)
    store = SQLiteStateStore(tmp_path / "runs.db", busy_timeout=0.05)
    try:
        with pytest.raises(
            StateStoreError, match=r"another process has been at the file of leases for more than 0\.05 s"
        ):
            asyncio.run(store.acquire("other", "A", LONG))
    finally:
        _let_go(blocker)
        asyncio.run(store.aclose())


def test_an_acquisition_that_is_cancelled_while_it_waits_leaves_no_lease(tmp_path: Path) -> None:
    (tmp_path / "runs.db-leases").touch()
    blocker = _at_the_gate(tmp_path)

    async def work(store: SQLiteStateStore) -> list[Lease]:
        waiting = asyncio.create_task(store.acquire("r", "A", LONG))
        await asyncio.sleep(0.05)
        waiting.cancel()
        _let_go(blocker)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return await store.list_leases(["r"])

    assert with_store(tmp_path / "runs.db", work) == []


def _at_the_gate(folder: Path) -> subprocess.Popen[str]:
    """Start a process that keeps all others out, until it is told to end."""
    process = start(
        f"""
import fcntl, os, sys
fd = os.open("runs.db-leases", os.O_RDWR)
fcntl.lockf(fd, fcntl.LOCK_EX, 1, {_GATE})
print("in", flush=True)
sys.stdin.readline()
""",
        cwd=folder,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    return process


def _let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    finish(process)


def test_a_file_that_has_grown_is_cut_when_nobody_holds_a_run(tmp_path: Path) -> None:
    async def work(store: SQLiteStateStore) -> tuple[int, int]:
        held = [await store.acquire(f"r{number}", "A", LONG) for number in range(300)]
        grown = lines(tmp_path)
        for lease in held:
            await store.release(lease)
        await store.release(await store.acquire("r", "A", LONG))
        return grown, lines(tmp_path)

    assert with_store(tmp_path / "runs.db", work) == (300, 1)

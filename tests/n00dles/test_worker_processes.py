"""Workers that are killed, drained and hurried, in processes of their own, on one SQLite store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles.executor import MAX_STALLED_LIVES
from tests.n00dles.processes import PATIENCE, finish, start
from tests.n00dles.worker_processes import FLOW, calls, loaded, submitted, told, until, worker


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "flow.py").write_text(FLOW)
    yield tmp_path
    for name in ("hold", "stick", "poison"):
        (tmp_path / name).unlink(missing_ok=True)  # so that nothing outlives a test that fails


def of(folder: Path, run_id: str) -> tuple[str, int, list[str]]:
    ctx = asyncio.run(loaded(folder, run_id))
    return ctx.status, ctx.lives, ctx.order


def test_a_worker_runs_what_waits_and_ends_when_idle(folder: Path) -> None:
    asyncio.run(submitted(folder, "r1", "r2"))

    said = told(worker(folder, "--until-idle"))

    assert [kind for kind, _ in said] == ["started", "claimed", "claimed", "finished", "finished", "ended"]
    assert of(folder, "r1") == of(folder, "r2") == ("finished", 1, ["first", "second", "third"])
    assert sorted(calls(folder)) == sorted(
        f"{run} {node}" for run in ("r1", "r2") for node in ("first", "second", "third")
    )


def test_a_worker_that_is_killed_is_followed_by_another_at_once(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "hold").touch()
    victim = worker(folder)
    until(lambda: "r second" in calls(folder), "the second node is called")
    victim.kill()
    assert victim.wait(PATIENCE) == -signal.SIGKILL
    (folder / "hold").unlink()

    started = time.monotonic()
    said = told(worker(folder, "--until-idle", "--lease-ttl", "1h"))  # nothing here waits for a lease to expire

    assert time.monotonic() - started < PATIENCE
    assert ("finished", "r") in said
    assert of(folder, "r") == ("finished", 2, ["first", "second", "third"])
    assert calls(folder) == ["r first", "r second", "r second", "r third"]
    victim.communicate()


def test_a_living_worker_keeps_its_run_longer_than_a_lease_lasts(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "hold").touch()
    holder = worker(folder, "--lease-ttl", "0.3", "--until-idle")
    until(lambda: "r second" in calls(folder), "the second node is called")
    time.sleep(0.6)

    said = told(worker(folder, "--lease-ttl", "0.3", "--until-idle"))
    (folder / "hold").unlink()

    assert [kind for kind, _ in said] == ["started", "ended"]
    assert ("finished", "r") in told(holder)
    assert calls(folder) == ["r first", "r second", "r third"]


def test_a_stopped_worker_loses_its_run_to_another_and_then_works_on_others(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "hold").touch()
    stopped = worker(folder, "--lease-ttl", "0.5")
    until(lambda: "r second" in calls(folder), "the second node is called")

    stopped.send_signal(signal.SIGSTOP)
    (folder / "hold").unlink()
    heir = worker(folder, "--lease-ttl", "0.5")
    until(lambda: of(folder, "r")[0] == "finished", "the other worker has taken the run over and finished it")
    heir.terminate()
    said_by_heir = told(heir)
    stopped.send_signal(signal.SIGCONT)
    asyncio.run(submitted(folder, "next"))
    until(lambda: of(folder, "next")[0] == "finished", "the stopped worker works again")
    stopped.terminate()

    said = told(stopped)
    assert ("finished", "r") in said_by_heir
    assert ("lost", "r") in said
    assert ("finished", "r") not in said
    assert ("finished", "next") in said
    assert [line for line in calls(folder) if line.startswith("r ")] == ["r first", "r second", "r second", "r third"]


def test_sigterm_lets_what_is_under_way_finish_and_claims_nothing_more(folder: Path) -> None:
    (folder / "hold").touch()
    child = worker(folder, "--concurrency", "1")
    asyncio.run(submitted(folder, "r1", "r2"))
    until(lambda: "r1 second" in calls(folder), "the second node is called")

    child.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    (folder / "hold").unlink()

    assert told(child) == [
        ("started", None),
        ("claimed", "r1"),
        ("draining", None),
        ("finished", "r1"),
        ("ended", None),
    ]
    assert of(folder, "r2") == ("waiting", 0, [])


def test_what_is_not_through_in_the_drain_timeout_is_released(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "hold").touch()
    child = worker(folder, "--drain-timeout", "0.2")
    until(lambda: "r second" in calls(folder), "the second node is called")

    child.send_signal(signal.SIGTERM)
    said = told(child)
    ctx = asyncio.run(loaded(folder, "r"))
    (folder / "hold").unlink()

    assert said[2:] == [("draining", None), ("released", "r"), ("ended", None)]
    assert (ctx.status, ctx.order, ctx.stalled) == ("running", ["first"], 0)  # it was no death
    assert ("finished", "r") in told(worker(folder, "--until-idle"))


def test_a_call_that_cannot_be_cancelled_does_not_keep_a_worker_for_ever(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "stick").touch()
    child = worker(folder, "--drain-timeout", "0.1")
    until(lambda: "r third" in calls(folder), "the third node is called")

    child.send_signal(signal.SIGTERM)
    said = told(child, code=1)

    assert said[2:] == [("draining", None), ("cut off", None), ("ended", None)]
    assert of(folder, "r") == ("running", 1, ["first", "second"])


def test_a_second_signal_ends_a_worker_at_once(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    (folder / "stick").touch()
    child = worker(folder, "--drain-timeout", "1h")
    until(lambda: "r third" in calls(folder), "the third node is called")

    child.send_signal(signal.SIGTERM)
    assert child.stdout is not None
    while json.loads(child.stdout.readline())["kind"] != "draining":
        pass
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)

    assert child.returncode == 128 + signal.SIGINT
    assert err == "n00dles: a second signal: ended at once; other workers go on with its runs\n"


FORKING = """
import os, signal, time
from n00dles import agent, pipeline


@agent
def fork(name: str) -> str:
    child = os.fork()
    if not child:
        time.sleep(5)
        os._exit(0)
    os.kill(child, signal.SIGTERM)  # as multiprocessing ends what it has forked
    _, status = os.waitpid(child, 0)
    return f"ended by signal {os.WTERMSIG(status)}"


flow = pipeline(fork, name="flow")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_signal_to_what_a_node_has_forked_ends_that_and_does_not_drain_the_worker(folder: Path) -> None:
    (folder / "flow.py").write_text(FORKING)
    asyncio.run(submitted(folder, "a", "b"))

    said = told(worker(folder, "--until-idle", "--concurrency", "1"))

    assert [kind for kind, _ in said] == ["started", "claimed", "finished", "claimed", "finished", "ended"]
    assert asyncio.run(loaded(folder, "a")).completed == {"fork": "ended by signal 15"}


def test_a_heartbeat_tells_that_a_worker_is_not_stuck(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    beat, began = folder / "alive", time.time()
    script = "from n00dles import cli, worker_command as w; w._SECONDS_A_BEAT = 0.02; raise SystemExit(cli.main())"
    arguments = ["worker", "flow.py:flow", "--store", "sqlite:///runs.db", "--heartbeat", "alive", "--until-idle"]
    (folder / "hold").touch()
    child = start(f"import sys; sys.argv[1:] = {arguments!r}; {script}", cwd=folder)
    until(lambda: "r second" in calls(folder), "the second node is called")
    once = beat.stat().st_mtime_ns
    until(lambda: beat.stat().st_mtime_ns > once, "the file is touched while a run is under way")

    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    stopped = beat.stat().st_mtime_ns
    time.sleep(0.2)
    after = beat.stat().st_mtime_ns
    child.send_signal(signal.SIGCONT)
    (folder / "hold").unlink()

    assert once > began * 1e9 - 1e9
    assert after == stopped
    finish(child)


def test_a_heartbeat_that_cannot_be_written_is_told_before_anything_is_done(folder: Path) -> None:
    asyncio.run(submitted(folder, "r"))
    child = worker(folder, "--until-idle", "--heartbeat", "nowhere/alive")

    _, err = child.communicate(timeout=PATIENCE)

    assert child.returncode == 2
    assert "the heartbeat cannot be written to 'nowhere/alive': No such file or directory." in err
    assert of(folder, "r") == ("waiting", 0, [])


def test_a_run_that_kills_every_worker_ends_as_failed_and_takes_no_other_along(folder: Path) -> None:
    (folder / "poison").touch()
    asyncio.run(submitted(folder, "poison", "slow"))

    codes: list[int] = []
    while not codes or codes[-1] != 0:
        child = worker(folder, "--until-idle")
        out, _ = child.communicate(timeout=PATIENCE)
        codes.append(child.returncode)
        assert len(codes) < 20

    # The first life, in which nodes completed, does not count.
    assert codes == [-signal.SIGKILL] * (1 + MAX_STALLED_LIVES) + [0]
    assert '"kind": "failed"' in out
    ctx = asyncio.run(loaded(folder, "poison"))
    assert (ctx.status, ctx.order) == ("failed", ["first", "second"])
    assert "lives in a row have ended without a completed node" in str(ctx.error)
    assert calls(folder).count("poison third") == 1 + MAX_STALLED_LIVES
    # It needs longer than the other one lets a worker live, and would have shared its fate.
    assert of(folder, "slow")[::2] == ("finished", ["first", "second", "third"])

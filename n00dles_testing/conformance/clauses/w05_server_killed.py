"""W05: the server is killed and started again in the midst of traffic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...servers import Server
from ..disturbed_server import expect_typed, expect_within, loads_again, require_server
from ..elsewhere import Elsewhere
from ..expect import BrokenClause, MisuseError, VacuousCheck
from ..many_workers import workers
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject
from ..used_meanwhile import save_until, use

_PROCESSES = 3
_ATTEMPTS = 3
_MORE = 3
"""Saves that each process has to make when the server is back."""
_BEFORE = 0.1
"""Seconds of traffic of all, before the kill."""
_LOOKED_AT = 0.01
_SHOWN = 5
_DOWN = (0.0, 0.5)
_INPUTS = {"topic": "cats"}


@clause("W05", level=4, title="the server is killed and started again: what was acknowledged is there, and it goes on")
async def server_killed(subject: StoreSubject) -> None:
    """The server is killed by SIGKILL in the midst of traffic, and started again: nothing acknowledged is lost.

    Three processes save node after node of runs of their own when all processes of the server are killed at once; it is
    started again on the same data and port, once immediately and once after half a second. Calls that were under way
    may fail, with an error that says so, or be made again by the store; an `AttributeError` of a client that has lost
    its connection is no such error. Each process goes on with the store object that it has, and must be able to save
    again within the limit for a call. So must one that was idle, whose connections have died without its knowledge.
    Then another process loads all runs: every save that was acknowledged is there, whole. A save whose call failed may
    be there or not.

    That there was traffic before the kill, during it and after the restart is proven, or else the check is VACUOUS. The
    clause needs a server that the suite may kill (`--server`). A store that talks to no server has none to lose.

    Seen in: dbos-inc/dbos-transact-py #716 (the database restarts while runs are recovered, and the rest stay pending
    for ever).
    """
    served = await require_server(subject)
    if served.server is None:
        raise MisuseError(
            "it would kill the server that the URL names. With a server of its own: n00dles-testing check "
            f"{served.service.on_its_own} --clause W05"
        )
    for down in _DOWN:
        await _killed(subject, served.server, down)


async def _killed(subject: StoreSubject, server: Server, down: float) -> None:
    when = f"after {down:g} s" if down else "at once"
    title = f"the server is killed while {_PROCESSES} processes save, and started again {when}"
    for _ in range(_ATTEMPTS):
        was_shown = True
        async with subject.scenario(title) as s, workers(s, _PROCESSES + 2) as processes:
            was_shown = await _in_traffic(s, server, down, processes)
        if was_shown:
            return
    raise VacuousCheck(f"in {_ATTEMPTS} attempts no call was going on while the server was killed and started again")


async def _in_traffic(s: Scenario, server: Server, down: float, processes: Sequence[Elsewhere]) -> bool:
    """Return whether calls were going on before, meanwhile and after."""
    reader, idle, *savers = processes
    idle_run, runs = s.subject.fresh_run_id(), [s.subject.fresh_run_id() for _ in savers]
    await _use_once(idle, idle_run)
    signs = s.subject.fresh_folder("signs")
    sign, started = signs / "server-is-back", [signs / run_id for run_id in runs]
    seconds = s.subject.call_seconds
    traffic = asyncio.gather(
        *(
            saver.perform(
                save_until,
                f"save({run_id!r}) again and again",
                run_id=run_id,
                started=str(first),
                sign=str(sign),
                more=_MORE,
                seconds=seconds,
            )
            for saver, run_id, first in zip(savers, runs, started, strict=True)
        ),
        return_exceptions=True,
    )
    ends = time.monotonic() + seconds
    while not (traffic.done() or all(map(Path.exists, started)) or time.monotonic() > ends):  # noqa: ASYNC110
        await asyncio.sleep(_LOOKED_AT)
    killed, back = await _kill_and_start(s, server, down, sign)
    came: list[dict[str, Any]] = []
    for end in await traffic:
        if isinstance(end, BaseException):
            raise end
        came.append(end)
    for run_id, one in zip(runs, came, strict=True):
        await _is_all_there(s, reader, run_id, one, back)
    step = {"do": "load_or_create", "run": idle_run, "inputs": _INPUTS}
    record = await loads_again(s, idle, step, f"load_or_create({idle_run!r}) by a process that was idle")
    s.expect(record).equals(
        Record.new(_INPUTS).after({"researcher": "purr"}), because="it was acknowledged before the kill"
    )
    return all(_was_shown(one["calls"], killed, back) for one in came)


async def _use_once(idle: Elsewhere, run_id: str) -> None:
    steps: tuple[dict[str, Any], ...] = (
        {"do": "load_or_create", "run": run_id, "inputs": _INPUTS},
        {"do": "save", "run": run_id, "outputs": {"researcher": "purr"}},
    )
    for step in steps:
        came = await idle.perform(use, f"{step['do']}({run_id!r})", step=step)
        if "raised" in came:
            raise BrokenClause(f"{step['do']} raised {came['raised']}")


async def _kill_and_start(s: Scenario, server: Server, down: float, sign: Path) -> tuple[float, float]:
    """Return when the server was killed, and when it was back; the sign says so to the others."""
    await asyncio.sleep(_BEFORE)
    try:
        killed = time.monotonic()
        count = await asyncio.to_thread(server.kill)
        s.tell(f"SIGKILL to the server: {count} process{'es' * (count != 1)} killed")
        await asyncio.sleep(down)
    finally:
        if not server.is_running:
            await asyncio.to_thread(server.start)
        await asyncio.to_thread(sign.touch)
    s.tell("the server is started again, on the same data and port")
    return killed, time.monotonic()


async def _is_all_there(s: Scenario, reader: Elsewhere, run_id: str, one: dict[str, Any], back: float) -> None:
    calls = one["calls"]
    for call in calls:
        expect_typed(call, f"{'save' if call['node'] else 'load_or_create'} while the server was away")
    saved = {call["node"]: call for call in calls if call["node"]}
    least = Record.new(_INPUTS)
    for node, call in saved.items():
        least = least if "raised" in call else least.after({node: _output(node)})
    maybe = {node: _output(node) for node, call in saved.items() if "raised" in call}
    lost = one["lost"]
    s.expect(lost[:_SHOWN]).has_no(
        f"{len(lost)} acknowledged saves are gone after the restart of the server, {lost[0]} for one" if lost else None,
        allowed="all that was acknowledged, before the kill or after the restart",
        because="a worker that is told that a save is done never does it again",
    )
    found = await reader.look_for(run_id, _INPUTS)
    expect_within(s, found, least, maybe, "these saves were acknowledged, before the kill or after the restart")
    after = [call for call in calls if call["node"] and "raised" not in call and call["began"] > back]
    if not after:
        last = next((call["raised"] for call in reversed(calls) if "raised" in call), "nothing")
        raise BrokenClause(
            f"the same store object does not work again after the server is back: it raised {last}",
            (
                ("allowed", f"that it saves again within {s.subject.call_seconds:g} s"),
                ("came", f"{sum('raised' in call for call in calls)} errors, the last of them {last}"),
                ("why", "the server is there again, and nobody restarts a worker for this"),
            ),
        )


def _output(node: str) -> str:
    return f"output {node.removeprefix('node')}"


def _was_shown(calls: Sequence[dict[str, Any]], killed: float, back: float) -> bool:
    acknowledged_before = any(call["node"] and "raised" not in call and call["ended"] < killed for call in calls)
    return acknowledged_before and any(call["began"] < back and call["ended"] > killed for call in calls)

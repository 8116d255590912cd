"""S15: quiet. Over many cycles of open, use and close nothing piles up."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from ..cycles import Held, keep_open, open_use_and_close, wind_down
from ..durability import keeps_nothing
from ..elsewhere import Elsewhere
from ..expect import BrokenClause
from ..idle_sqlite import open_transactions
from ..records import Record
from ..registry import clause
from ..scenario import Scenario
from ..subject import StoreSubject

_CYCLES = 200
_FEWEST_CYCLES = 20
_BATCH = 25
_SECONDS = 3.0
"""Time for the cycles of a slow store: it gets fewer than 200, and the report says how many."""
_WARM_UP = 5
"""Cycles after which a pool, a cache and whatever else is made once is there."""
_FEWEST = 5
_SHARE = 10
"""It grows if there is one more for every tenth cycle, and five at least."""
_SECONDS_TO_WIND_DOWN = 2.0
_SHOWN = 3


@clause("S15", level=1, title="quiet: nothing piles up, and nothing is held between calls")
async def quiet(subject: StoreSubject) -> None:
    """Over 200 cycles of open, use and close nothing piles up; between two calls no transaction is open.

    A process of its own opens the store, loads a run, saves it, saves it once more from an older state, creates another
    run, deletes that, and closes the store, again and again. The number of its descriptors (files and connections) and
    of its threads may grow at first, not with the cycles. What nobody closed, Python tells by a `ResourceWarning`. When
    the runs are deleted, the location has no more files than before, and so has the folder for temporary files. A store
    that is slow gets fewer cycles, 20 at least, and the report says so.

    Then one process sits idle between its calls, as it does for minutes while a model answers: after a creation, a
    load, a save and a delete. Meanwhile a second process saves the same run and another one. A transaction that the
    first has left open would keep it waiting until it raises "database is locked". Of SQLite's files it is also tried,
    from the outside, whether anybody holds a lock, or keeps the write-ahead log from being emptied. (A store that only
    one process can have open is not tried: whether several may is asked by S16.)

    Seen in: python/cpython PR #108015 and fox-it/flow.record #209 (a connection that is used in a `with`, and never
    closed), langchain-ai/langgraph #8136 and mem0ai/mem0 #7196 ("database is locked" for whoever shares the file).
    """
    await _many_cycles(subject)
    await _idle_between_calls(subject)


async def _many_cycles(subject: StoreSubject) -> None:
    async with subject.scenario(f"{_CYCLES} cycles of open, use and close") as s:
        beside = None if s.folder is None else Path(s.folder).parent
        with tempfile.TemporaryDirectory(prefix="temporary-", dir=beside) as temporary:
            await _open_use_and_close(s, temporary)


async def _open_use_and_close(s: Scenario, temporary: str) -> None:
    async with s.elsewhere() as other:
        first = await other.create({"topic": "dogs"})
        await other.save(first, {"researcher": "bark"})
        await other.delete(first)
        await other.close()
        before = _files(s.folder, temporary)
        run_ids = [s.subject.fresh_run_id() for _ in range(-(-_CYCLES // _BATCH))]
        s.acknowledged.update((run_id, Record.new({"topic": "cats"})) for run_id in run_ids)
        s.tell("each cycle: open, load_or_create twice, save, save what is older, create and delete a short run, close")
        samples = await _samples(s, other, run_ids, temporary)
        cycles = samples[-1].cycles
        for run_id in run_ids[: -(-cycles // _BATCH)]:
            await other.delete(run_id)
        await other.close()

    if cycles < _CYCLES:
        s.subject.notes.append(f"{cycles} cycles of open, use and close, not {_CYCLES}: no more in {_SECONDS:g} s")
    _expect_no_warning(s, samples)
    _expect_flat(s, samples)
    _expect_no_files(before, _files(s.folder, temporary), cycles)


async def _samples(s: Scenario, other: Elsewhere, run_ids: list[str], temporary: str) -> list[Held]:
    """Return what the process held after the warm-up, and after each further batch of cycles."""
    samples: list[Held] = []
    started = time.monotonic()
    while not samples or samples[-1].cycles < _CYCLES:
        done = samples[-1].cycles if samples else 0
        if done >= _FEWEST_CYCLES and time.monotonic() - started > _SECONDS:
            break
        came = await other.perform(
            open_use_and_close,
            run_ids=run_ids,
            runs_of=_BATCH,
            first=done,
            most=min(_BATCH, _CYCLES - done) if samples else _WARM_UP,
            seconds=_SECONDS / 4,
            temporary=temporary,
        )
        samples.append(Held(**came))
    return [*samples, await _settled(other, samples)]


async def _settled(other: Elsewhere, samples: list[Held]) -> Held:
    """Wait for what ends by itself a moment after a close; return what is held then."""
    start = next(each for each in samples if each.cycles >= _WARM_UP)
    came = await other.perform(
        wind_down,
        cycles=samples[-1].cycles,
        descriptors=(start.descriptors or 0) + _FEWEST,
        threads=start.threads + _FEWEST,
        seconds=_SECONDS_TO_WIND_DOWN,
    )
    return Held(**came)


def _expect_flat(s: Scenario, samples: list[Held]) -> None:
    start = next(each for each in samples if each.cycles >= _WARM_UP)
    end = samples[-1]
    cycles = end.cycles - start.cycles
    if end.descriptors is None or start.descriptors is None:
        s.subject.notes.append("descriptors were not counted: this system has no /dev/fd")
    else:
        more = Counter(end.open_files) - Counter(start.open_files)
        _expect_few("descriptors", start.descriptors, end.descriptors, cycles, list(more))
    names = Counter(end.names) - Counter(start.names)
    _expect_few("threads", start.threads, end.threads, cycles, list(names))


def _expect_few(what: str, start: int, end: int, cycles: int, which: list[str]) -> None:
    if end - start < max(_FEWEST, cycles // _SHARE):
        return
    raise BrokenClause(
        f"{what} pile up: {start} after the warm-up, {end} after {cycles} more cycles of open, use and close",
        (
            ("allowed", f"as many as after the warm-up, {start}, or a few more"),
            ("came", f"{end}, for example {', '.join(which[:_SHOWN]) or 'unnamed ones'}"),
            ("why", "each cycle closed the store; a worker that runs for weeks meets the limit of its system"),
        ),
    )


def _expect_no_warning(s: Scenario, samples: list[Held]) -> None:
    told = [text for held in samples for text in held.warned]
    s.expect(sum(held.warnings for held in samples)).equals(
        0,
        what=f"the number of ResourceWarnings ({'; '.join(told[:_SHOWN]) or 'none'})",
        because="what the store has opened it closes; a test suite that turns warnings into errors fails otherwise",
    )


def _expect_no_files(before: list[str], after: list[str], cycles: int) -> None:
    """A few may stay, as marks of the deleted runs; not one a cycle."""
    if len(after) - len(before) < max(_FEWEST, cycles // _SHARE):
        return
    left = sorted(set(after) - set(before))
    raise BrokenClause(
        f"files are left: {len(before)} before, {len(after)} after {cycles} cycles and the deletion of all runs",
        (
            ("allowed", f"as many as before, {len(before)}, or a few more"),
            ("came", f"{len(after)}, for example {', '.join(left[:_SHOWN])}"),
            ("why", "no run is left, so these belong to nobody, and nobody will remove them"),
        ),
    )


def _files(location: str | None, temporary: str) -> list[str]:
    folders = [Path(folder) for folder in (location, temporary) if folder is not None]
    return [str(path.relative_to(folder.parent)) for folder in folders for path in folder.rglob("*")]


async def _idle_between_calls(subject: StoreSubject) -> None:
    if await keeps_nothing(subject):
        return
    async with (
        subject.scenario("one process is idle between its calls, while a second one saves") as s,
        s.elsewhere() as idle,
    ):
        run_id = await idle.create({"topic": "cats"})
        is_tried = await _saves_meanwhile(s, idle, run_id, "a creation")
        for after, deed in _DEEDS.items():
            if not is_tried:
                return
            try:
                await deed(idle, run_id)
            except BrokenClause as broken:
                # What two processes do to each other is for level 4.
                subject.notes.append(f"idle after {after} was not tried: {broken.message}")
                return
            is_tried = await _saves_meanwhile(s, idle, run_id, after)


async def _load(idle: Elsewhere, run_id: str) -> None:
    await idle.load(run_id)


async def _save(idle: Elsewhere, run_id: str) -> None:
    await idle.load(run_id)
    await idle.save(run_id, {"writer": "On Cats"})


async def _delete(idle: Elsewhere, run_id: str) -> None:
    await idle.delete(await idle.create({"topic": "birds"}))


_DEEDS: dict[str, Callable[[Elsewhere, str], Awaitable[None]]] = {"a load": _load, "a save": _save, "a delete": _delete}


async def _saves_meanwhile(s: Scenario, idle: Elsewhere, run_id: str, after: str) -> bool:
    """Return False if it could not be tried, which is noted."""
    s.tell(f"a second process saves, while the first is idle after {after}")
    try:
        await _works(s, run_id, s.subject.call_seconds)
    except BrokenClause as broken:
        other_cause = await _cause_but_for_a_transaction(s, idle, run_id)
        if other_cause is None:
            raise _blocked(broken, after) from broken
        s.subject.notes.append(f"idle between calls was not tried: {other_cause}")
        return False
    s.expect(open_transactions(s.folder)).equals(
        [], what="the transactions that are open", because=f"the process is idle, after {after}"
    )
    return True


async def _works(s: Scenario, run_id: str, patience: float) -> None:
    """A process of its own saves another run, and this one; none of its calls may take longer than `patience`."""
    number = s.subject.draw.token()
    async with s.elsewhere(patience=patience) as busy:
        other_run = await busy.create({"topic": "dogs"})
        await busy.save(other_run, {f"researcher-{number}": "bark"})
        await busy.load(run_id)
        await busy.save(run_id, {f"reviewer-{number}": "approved"})


async def _cause_but_for_a_transaction(s: Scenario, idle: Elsewhere, run_id: str) -> str | None:
    """Return what else keeps a second process from saving: it cannot do so alone, or not with the store merely open."""
    with suppress(BrokenClause):
        await idle.close()
    try:
        await _works(s, run_id, s.subject.patience)
    except BrokenClause as broken:
        return f"with nobody idle, {broken.message}"
    async with s.subject.probe("may two processes have the store open?") as probe, probe.elsewhere() as first:
        await first.perform(keep_open)
        await _works(probe, await _created(probe), s.subject.patience)
        return None
    return "while one process has the store open, a second one cannot open it"


async def _created(s: Scenario) -> str:
    async with s.elsewhere(patience=s.subject.patience) as other:
        return await other.create({"topic": "cats"})


def _blocked(broken: BrokenClause, after: str) -> BrokenClause:
    return BrokenClause(
        f"while another process is idle after {after}: {broken.message}",
        (
            *broken.details,
            ("allowed", "the call is acknowledged"),
            ("came", broken.message),
            ("why", "the other process waits for its next call, maybe for minutes; it must hold no transaction"),
        ),
    )

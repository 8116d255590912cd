"""Playing a sequence of operations on a store, and judging each reply by the model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from ..clock import WallClock
from ..elsewhere import Elsewhere
from ..expect import BrokenClause
from ..journal import Journal
from ..location import files_in
from ..overlap import save_in_one_loop
from ..records import Record
from ..scenario import Handle, Scenario
from ..spoil import spoil, spoil_run
from .model import ImpossibleError, Model, Worker
from .offers import Offers
from .operations import INPUTS, Operation, Plan, describe, value_of

__all__ = ["Player"]

_TOO_MANY_STATES = 8
"""Beyond this many the run is loaded, which leaves one: what may be anything is judged by nobody."""
_LAST_LOOK = {"looked for": "at the end"}


@dataclass(slots=True)
class _Grip:
    """A worker as the store knows it, and as the model does; `was_refused` tells of its last save."""

    handle: Handle
    worker: Worker
    was_refused: bool = False


class _SecondJournal(Journal):
    """Tells the calls of the second instance in the same story."""

    def __init__(self, first: Journal) -> None:
        self._first = first

    def write(self, text: str) -> int:
        return self._first.write(f"second instance: {text}")

    def outcome(self, step: int, text: str) -> None:
        self._first.outcome(step, text)


class Player:
    """One playing of one sequence. `counts` says how often each kind of thing has really happened.

    What the store does not offer is left out, so that one sequence can be played on every store.
    """

    def __init__(self, scenario: Scenario, plan: Plan, offers: Offers) -> None:
        self.counts: Counter[str] = Counter()
        self._scenario = scenario
        self._plan = plan
        self._offers = offers
        self._model = Model(keeps_revisions=offers.revisions)
        self._grips: dict[int, list[_Grip]] = {}
        self._base = scenario.subject.fresh_run_id()
        self._ids = list(plan.run_ids(self._base))
        self._taken: set[int] = set()
        self._clock: WallClock | None = None
        self._second: Scenario | None = None

    async def play(self) -> None:
        """Do all of it, look at every run, and close. Raises `BrokenClause`, with what was on disk."""
        try:
            with ExitStack() as stack:
                if any(operation["do"] == "clock" for operation in self._plan.operations):
                    self._clock = WallClock()
                    stack.enter_context(self._clock.installed())
                for number, operation in enumerate(self._plan.operations, start=1):
                    self._scenario.tell(f"{number}. {describe(self._as_played(operation))}")
                    await self._do(operation)
                for run in sorted(self._grips):
                    await self._look(run)
            await self._close()
        except BrokenClause as broken:
            details = (
                ("on disk", files_in(self._scenario.location) or "not looked at: the store takes no location"),
                *broken.details,
            )
            with suppress(BrokenClause):
                await self._close()
            raise BrokenClause(broken.message, details) from broken.__cause__

    def _as_played(self, operation: Operation) -> Operation:
        """Return it with the workers that are there: who is further back than the oldest one is that one."""
        oldest = max(0, len(self._grips.get(operation.get("run", 0), ())) - 1)
        played = dict(operation)
        if "back" in operation:
            played["back"] = min(operation["back"], oldest)
        if "backs" in operation:
            played["backs"] = [min(back, oldest) for back in operation["backs"]]
        return played

    async def _do(self, operation: Operation) -> None:
        match operation["do"]:
            case "load":
                await self._load(operation["run"], operation["inputs"], is_second=operation["second"])
            case "save":
                await self._save(operation)
            case "overlap":
                await self._overlap(operation)
            case "cancel":
                await self._cancel(operation)
            case "delete":
                await self._delete(operation["run"], is_second=operation["second"])
            case "reopen" if self._offers.durable:
                await self._scenario.reopen()
                self.counts["reopening"] += 1
            case "elsewhere" if self._offers.durable:
                await self._elsewhere(operation)
            case "clock" if self._clock is not None:
                self._clock.offset += operation["seconds"]
                self._scenario.tell(f"the clock shows {self._clock.offset:+} s")
                self.counts["clock step"] += 1
            case "edit":
                await self._edit(operation)
        run = operation.get("run")
        if run is not None and self._model.states(run) > _TOO_MANY_STATES:
            await self._look(run)

    # Loading, and comparing with what the model allows.

    async def _load(self, run: int, inputs: int, *, is_second: bool = False) -> _Grip:
        handle = await self._load_or_create(run, INPUTS[inputs], is_second=is_second)
        grip = _Grip(handle, self._judged(run, INPUTS[inputs], handle.record))
        self._grips.setdefault(run, []).append(grip)
        return grip

    async def _look(self, run: int) -> None:
        """See whether the run is as it may be, through every open instance."""
        for is_second in (False, True) if self._second is not None else (False,):
            handle = await self._load_or_create(run, _LAST_LOOK, is_second=is_second)
            self._judged(run, _LAST_LOOK, handle.record)

    async def _load_or_create(self, run: int, inputs: Mapping[str, Any], *, is_second: bool) -> Handle:
        s = await self._through(is_second=is_second)
        if run not in self._taken and self._plan.ids != "plain":
            came = await s.creates_or_refuses(inputs, self._ids[run])
            if isinstance(came, Exception):
                # A store may have no room for such an id; the run then has a plain one.
                self.counts["run id refused"] += 1
                self._ids[run] = f"{self._base}-plain-{run}"
                came = await s.create(inputs, self._ids[run])
        else:
            came = await s.create(inputs, self._ids[run])
        self._keep(run)
        return came

    def _keep(self, run: int) -> None:
        """Have the run deleted at the end, where the location is the user's own."""
        self._taken.add(run)
        self._scenario.acknowledged.setdefault(self._ids[run], Record({}))

    def _judged(self, run: int, inputs: Mapping[str, Any], came: Record) -> Worker:
        """Return the worker that has loaded this. Raises `BrokenClause` if it is not what may be there."""
        was_absent = self._model.is_absent(run)
        try:
            worker = self._model.loaded(run, inputs, came)
        except ImpossibleError as wrong:
            others = f", or {wrong.allowed - 1} more" if wrong.allowed > 1 else ""
            why = f"the last that has happened to it: {wrong}{others}"
            self._scenario.expect(came).equals(wrong.wanted, because=why)
            raise BrokenClause(f"{came} is none of what is allowed", (("why", why),)) from None
        self._scenario.judged()
        self.counts["load" if not was_absent else "creation" if run not in self._grips else "creation anew"] += 1
        return worker

    async def _through(self, *, is_second: bool) -> Scenario:
        """Return the scenario whose instance is to be called."""
        if not is_second or not self._offers.instances:
            return self._scenario
        if self._second is None:
            first = self._scenario
            self._second = Scenario(
                first.subject, first.title, _SecondJournal(first.journal), first.location, is_probe=True
            )
        self.counts["second instance"] += 1
        return self._second

    # Saving.

    async def _grip(self, operation: Operation, back: int) -> _Grip:
        """Return a worker of the run, counted from the newest; if there is none, the run is created."""
        run = operation["run"]
        if not self._grips.get(run):
            return await self._load(run, 0)
        grips = self._grips[run]
        return grips[-1 - min(back, len(grips) - 1)]

    async def _save(self, operation: Operation) -> None:
        run, grip = operation["run"], await self._grip(operation, operation["back"])
        outputs = self._outputs(operation["nodes"], grip)
        s = await self._through(is_second=operation["second"])
        kind = self._kind_of_save(run, grip)
        is_taken = await s.late_save(grip.handle, outputs)
        self._learn_save(run, grip, outputs, is_taken)
        self.counts[kind] += 1
        self.counts["save again after an error"] += grip.was_refused
        grip.was_refused = not is_taken

    def _learn_save(self, run: int, grip: _Grip, outputs: Mapping[str, Any], is_taken: bool | None) -> None:
        if not self._model.saved(run, grip.worker, outputs, is_taken):
            raise BrokenClause(
                f"the save of {', '.join(outputs) or 'nothing new'} was refused",
                (
                    ("allowed", "the save is acknowledged"),
                    ("came", "it was refused"),
                    ("why", "this worker continues the newest state: nobody else has saved the run since"),
                ),
            )

    def _outputs(self, nodes: Sequence[Sequence[Any]], grip: _Grip) -> dict[str, Any]:
        """Return what is completed; a name that the worker has completed already gets an x behind it."""
        outputs: dict[str, Any] = {}
        for name, form in nodes:
            node = name
            while node in outputs or node in grip.worker.completed:
                node += "x"
            outputs[node] = value_of(form)
            if "hostile" in form:
                grip.worker.is_refusable = True
                self.counts["hostile value"] += 1
        return outputs

    def _kind_of_save(self, run: int, grip: _Grip) -> str:
        if self._model.is_absent(run):
            return "late save"
        if self._model.is_of_another_life(run, grip.worker):
            return "late save into the next run"
        return "stale save" if self._model.is_stale(run, grip.worker) else "save"

    async def _overlap(self, operation: Operation) -> None:
        run, node_forms = operation["run"], operation["nodes"]
        grips = [await self._grip(operation, back) for back in operation["backs"]]
        saves: list[tuple[_Grip, str, Any]] = []
        for grip, form in zip(grips, node_forms, strict=True):
            [(node, output)] = self._outputs([form], grip).items()
            while any(node in (name, *other.worker.completed) for other, name, _ in saves):
                node += "x"
            saves.append((grip, node, output))
        ends = await save_in_one_loop(self._scenario, [(grip.handle, node, output) for grip, node, output in saves])
        self._model.overlapped(
            run, [(grip.worker, {node: output}, node in ends.acknowledged) for grip, node, output in saves]
        )
        self.counts["overlap" if ends.is_proven else "saves in turn, though begun at once"] += 1

    async def _cancel(self, operation: Operation) -> None:
        run, grip = operation["run"], await self._grip(operation, operation["back"])
        outputs = self._outputs(operation["nodes"], grip)
        task = asyncio.ensure_future(self._scenario.late_save(grip.handle, outputs))
        for _ in range(1 + operation["after"]):  # once at least, so that it has begun
            await asyncio.sleep(0)
        was_cancelled = task.cancel()
        is_taken: bool | None = None
        try:
            is_taken = await task
        except asyncio.CancelledError:
            self._scenario.tell("the save was cancelled")
        if was_cancelled and not is_taken:
            is_taken = None
        self._learn_save(run, grip, outputs, is_taken)
        self.counts["cancelled save" if is_taken is None else "save that ended before it was cancelled"] += 1

    # All else.

    async def _delete(self, run: int, *, is_second: bool) -> None:
        s = await self._through(is_second=is_second)
        await s.delete(self._ids[run])
        self._model.deleted(run)
        self.counts["delete"] += 1

    async def _elsewhere(self, operation: Operation) -> None:
        """Have another process do it. If it may not share the location, the store is closed here first."""
        run, inputs = operation["run"], INPUTS[operation["inputs"]]
        if not self._offers.processes:
            await self._close()
        if run not in self._taken:
            await self._load(run, operation["inputs"])
            if not self._offers.processes:
                await self._close()
        self._keep(run)
        async with self._scenario.elsewhere() as other:
            await self._in(other, operation, inputs)
            if operation["kill"] and operation["what"] != "load":
                self.counts["kill"] += 1
            else:
                await other.close()
        self.counts["another process"] += 1

    async def _in(self, other: Elsewhere, operation: Operation, inputs: Mapping[str, Any]) -> None:
        run, run_id = operation["run"], self._ids[operation["run"]]
        if operation["what"] == "delete":
            await other.delete(run_id, then_die=operation["kill"])
            self._model.deleted(run)
            return
        came = await other.look_for(run_id, inputs)
        worker = self._judged(run, inputs, came)
        if operation["what"] == "save":
            its_context: Any = None  # it is there, not here
            grip = _Grip(Handle(run_id, {}, None, came, its_context), worker)
            outputs = self._outputs([pair for pair in operation["nodes"] if "json" in pair[1]], grip)
            await other.save(run_id, outputs, then_die=operation["kill"])
            self._learn_save(run, grip, outputs, True)

    async def _edit(self, operation: Operation) -> None:
        """Edit what was handed in or out. Nobody saves with it any more: it is no longer what the worker had."""
        grip = await self._grip(operation, operation["back"])
        match operation["what"]:
            case "handed":
                edits = spoil(lambda: grip.handle.handed)
            case "reply":
                edits = spoil_run(grip.handle.reply)
            case _:
                edits = spoil_run(grip.handle.context)
        self._grips[operation["run"]].remove(grip)
        self._scenario.tell(f"a worker of run {self._ids[operation['run']]!r} edits its {operation['what']} ({edits})")
        self.counts["edit"] += edits > 0

    async def _close(self) -> None:
        second, self._second = self._second, None
        if second is not None:
            await second.close()
        await self._scenario.close()

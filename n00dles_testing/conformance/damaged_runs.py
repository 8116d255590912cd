"""Loading a run whose record is damaged, and judging what came of it: an error, the run itself, or a fault."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from n00dles.context import PipelineContext

from .child import still_alive
from .damage import Damage, holds
from .elsewhere import Elsewhere
from .expect import BrokenClause
from .instance import Instance
from .records import Record, UnreadableReplyError, difference, show
from .refusals import text_of
from .scenario import Scenario, describe
from .stored_runs import StoredRun, StoredRuns, contents_of
from .target import StoreTarget

__all__ = ["ERROR", "OTHER_INPUTS", "WHY", "Came", "expect_it_stays", "fault_of", "is_first", "is_older", "load"]

OTHER_INPUTS = {"topic": "passed by a following run"}

ERROR = "an error, or the run as it was acknowledged"
WHY = "whoever has paid for the run must learn that its record is damaged, and may be able to restore it"
_SIGNALS_OF_A_CUT_MAP = ("SIGBUS", "SIGSEGV")


@dataclass(frozen=True, slots=True)
class Came:
    """What a load has given: a record, or an error; `says` is all that this says. Neither: the process has died."""

    record: Record | None = None
    error: str = ""
    says: str = ""

    @property
    def has_died(self) -> bool:
        """Whether the system has ended the process, which read a memory map behind the end of its file."""
        return self.record is None and not self.error

    def is_exactly(self, run: StoredRun) -> bool:
        """Whether it is the run as it was acknowledged."""
        return self.record is not None and difference(run.record, self.record) is None

    def __str__(self) -> str:
        return str(self.record) if self.record is not None else self.error or "the process died of a cut memory map"


async def load(s: Scenario, other: Elsewhere, run: StoredRun, inputs: dict[str, Any]) -> Came:
    """Load a run in another process, and tell what came."""
    try:
        form = await other.perform(load_a_run, run_id=run.run_id, inputs=inputs)
    except BrokenClause as broken:
        if not any(f"was killed by {signal}" in broken.message for signal in _SIGNALS_OF_A_CUT_MAP):
            raise
        return Came()
    return _told(s, form, run.run_id, f"load_or_create({show(run.run_id)}, {show(inputs)})")


async def load_a_run(target: StoreTarget, location: str | None, run_id: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Open the store and load a run; a procedure for another process."""
    return await _used(target, location, run_id, inputs, saves=False)


async def run_again(target: StoreTarget, location: str | None, run_id: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Load the run, and save what has come, as a following run does; a procedure for another process.

    Where the load raises, there is nothing to save: an executor stops there.
    """
    return await _used(target, location, run_id, inputs, saves=True)


async def _used(
    target: StoreTarget, location: str | None, run_id: str, inputs: dict[str, Any], *, saves: bool
) -> dict[str, Any]:
    instance = None
    try:
        instance = await target.open(location)
        came, context = await _loaded(instance, run_id, inputs)
        if saves and context is not None:
            still_alive()
            came["saved"] = await _saved(instance, run_id, context)
    except Exception as error:
        return _raised(error)
    else:
        return came
    finally:
        if instance is not None:
            with suppress(Exception):
                await instance.close()


def fault_of(came: Came, damage: Damage, run: StoredRun, runs: StoredRuns) -> str | None:
    """Return what is wrong with what came, or None: an error, the run itself, or what no store can see."""
    if came.record is None or came.is_exactly(run):
        return None
    is_alone = damage.file in runs.own or damage.kind == "foreign"
    is_cut = damage.kind == "cut"
    if is_first(came):
        if is_cut and not is_alone and not holds(damage.content, run.tokens[0]):
            return None
        return "the damaged run was taken for a first run"
    if is_older(came, run):
        return None if is_cut else "an older state came without an error: an acknowledged save is lost"
    if damage.kind == "foreign":
        return "another run came under this run's id"
    if is_cut or not _has_shape_of(run.record.to_dict(), came.record.to_dict()):
        return "the damaged run was read as something that was never saved"
    return None


def is_first(came: Came) -> bool:
    """Whether the run was created."""
    return came.record is not None and came.record.inputs == OTHER_INPUTS and not came.record.completed


def is_older(came: Came, run: StoredRun) -> bool:
    """Whether the run is as it was before its last save."""
    return came.record is not None and any(difference(state, came.record) is None for state in run.history[:-1])


async def expect_it_stays(s: Scenario, other: Elsewhere, runs: StoredRuns, damage: Damage, run: StoredRun) -> None:
    """Have a following run load what has raised, and save if that gives a run: it raises again, and the bytes stay."""
    assert s.location is not None
    form = await other.perform(run_again, run_id=run.run_id, inputs=OTHER_INPUTS)
    came = _told(s, form, run.run_id, f"once more: load_or_create({show(run.run_id)}, {show(OTHER_INPUTS)})")
    began_anew = came.record is not None and not came.is_exactly(run)
    fault = "the damaged run raised once, and then began anew" if began_anew else None
    s.expect(str(came)).has_no(fault, allowed=ERROR, because=WHY)
    files = contents_of(s.location)
    if damage.file in runs.own:
        is_kept = files.get(damage.file) == damage.content or (damage.content and damage.content in files.values())
    else:
        held = [token for token in run.tokens if holds(damage.content, token)]
        is_kept = all(any(holds(content, token) for content in files.values()) for token in held)
    fault = None if is_kept else "a following run has overwritten the damaged bytes"
    s.expect(f"{', '.join(files) or 'no file'}, with other bytes").has_no(
        fault, allowed=f"the bytes of {damage.file} as they were", because=WHY
    )


def _told(s: Scenario, form: dict[str, Any], run_id: str, call: str) -> Came:
    if "unreadable" in form:
        raise BrokenClause(form["unreadable"], (("allowed", ERROR), ("came", "no run, and no error"), ("why", WHY)))
    record = Record.from_dict(form["record"]) if "record" in form else None
    came = Came(record, form.get("error", ""), form.get("says", ""))
    s.tell(f"{call} → {came}")
    if "saved" in form:
        s.tell(f"save({show(run_id)}) of what that gave, with one more output → {form['saved']}")
    return came


async def _loaded(
    instance: Instance, run_id: str, inputs: dict[str, Any]
) -> tuple[dict[str, Any], PipelineContext | None]:
    reply = await instance.load_or_create(run_id, inputs)
    try:
        record = Record.read(reply).to_dict()
    except UnreadableReplyError as error:
        return {"unreadable": str(error)}, None
    context = instance.context(reply, run_id)
    return {"record": json.loads(json.dumps(record, default=repr))}, context


async def _saved(instance: Instance, run_id: str, context: PipelineContext) -> str:
    """Save a run with one more output; return what came, for the story."""
    try:
        context.checkpoint("following", "run")
        await instance.save(run_id, context)
    except Exception as error:
        return f"raised {describe(error)}"
    return "acknowledged"


def _raised(error: Exception) -> dict[str, Any]:
    return {"error": f"raised {describe(error)}", "says": text_of(error)}


def _has_shape_of(wanted: Any, came: Any) -> bool:
    """Whether only texts and numbers differ, which a flipped bit makes of valid ones, and not what holds them."""
    if type(wanted) is not type(came):
        return False
    if isinstance(wanted, dict):
        return wanted.keys() == came.keys() and all(_has_shape_of(wanted[key], came[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(wanted) == len(came) and all(map(_has_shape_of, wanted, came))
    return True

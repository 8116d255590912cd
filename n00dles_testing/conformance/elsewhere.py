"""The store under test in another process, driven from a scenario."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .child import Procedure, TracingProcedure, name_of
from .ended import not_called
from .expect import BrokenClause, MisuseError, VacuousCheck
from .nursery import NurseryGoneError
from .printed import end_of
from .processes import HelperProcess, OtherProcess, describe_exit
from .records import Record, show
from .stopping import go_on, stop, until_stopped

if TYPE_CHECKING:
    from .scenario import Scenario

__all__ = ["Elsewhere", "Lasted"]

_TIME_TO_DIE = 10.0
_TIME_TO_CALL = 60.0
_KILLED = -signal.SIGKILL
_PRINTED_TAIL = 500


class Lasted(NamedTuple):
    """When a call began and ended, by the monotonic clock that all processes of a host share, in seconds."""

    began: float
    ended: float


class Elsewhere:
    """A process that opens the location of a scenario; its calls are told in the scenario's story.

    What the store acknowledges there counts as acknowledged. With `then_die` the process kills itself with SIGKILL
    right after the acknowledgement has been sent; `VacuousCheck` is raised if that did not happen.
    """

    def __init__(self, scenario: Scenario, process: OtherProcess, patience: float | None = None) -> None:
        """With `patience`, a call that takes more seconds is broken, and its process killed."""
        self._patience = patience
        self._scenario = scenario
        self._process = process

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @classmethod
    @asynccontextmanager
    async def started(
        cls, scenario: Scenario, *, fresh: bool = False, tracing: bool = False, patience: float | None = None
    ) -> AsyncIterator[Self]:
        """Start the process, a fork or a fresh interpreter, and end it on leaving.

        One for `tracing` has no event loop, and does nothing but `perform` (see `tracer`).
        """
        with scenario.subject.own_work():
            process = _fresh(scenario, tracing) if fresh else _forked(scenario, tracing)
        with process:
            yield cls(scenario, process, patience)

    async def perform(
        self, procedure: Procedure | TracingProcedure, text: str = "", /, **arguments: Any
    ) -> dict[str, Any]:
        """Run a function of the suite there: `await procedure(target, location, **arguments)`, JSON in and out.

        For what needs a process of its own: threads, event loops, forks, kills. `text` tells it in the story, else the
        name of the procedure does. What it returns as `told` stands in the
        story, else only that it has ended. Raises `BrokenClause` or `VacuousCheck`
        if the procedure does, and `BrokenClause` if it raises anything else, or the process ends.
        """
        text = text or procedure.__name__.replace("_", " ").strip()
        came: dict[str, Any] = (await self._ask(text, _performing(procedure, arguments)))["came"]
        return came

    async def perform_and_die(
        self, text: str, procedure: Procedure, *, by: int = signal.SIGKILL, **arguments: Any
    ) -> tuple[bool, dict[str, Any]]:
        """Run a procedure that is to be ended by the signal `by`.

        Returns True and its last words, or False and what the procedure returned, if it came through.

        `text` tells it in the story. Raises as `perform` does, and `VacuousCheck` for an end by anything else. SIGKILL
        without last words comes from elsewhere: from a system that is short of memory, say.
        """
        step = self._scenario.journal.write(f"process {self.pid}: {text}")
        reply = await self._exchange(_performing(procedure, arguments), step)
        if reply is not None and "dying" not in reply:
            self._judge(text, step, reply)
            return False, reply["came"]
        status = await self._end()
        if reply is None and status == _KILLED:
            raise VacuousCheck(
                "a process was killed by SIGKILL, but not where it was to be: something else has killed it, so nothing "
                "was shown"
            )
        if status != -by:
            if reply is None:
                raise self._ended(text, step, status)
            name = signal.Signals(by).name
            raise VacuousCheck(f"the process that was to die by {name} {describe_exit(status)}, so nothing was shown")
        words: dict[str, Any] = {} if reply is None else reply["dying"]
        self._scenario.journal.outcome(step, " ".join([describe_exit(status), *map(str, words.values())]))
        return True, words

    async def create(self, inputs: Mapping[str, Any], *, then_die: bool = False) -> str:
        """Create a run that the store does not know; return its id."""
        run_id = self._scenario.subject.fresh_run_id()
        await self._load_or_create(run_id, inputs, then_die=then_die)
        self._scenario.acknowledged[run_id] = Record.new(inputs)
        return run_id

    async def load(self, run_id: str, inputs: Mapping[str, Any] | None = None) -> Record:
        """Load a known run; return what the store said."""
        known = self._scenario.acknowledged[run_id].inputs
        return await self._load_or_create(run_id, known if inputs is None else inputs)

    async def look_for(self, run_id: str, inputs: Mapping[str, Any]) -> Record:
        """Load a run that may not be there."""
        return await self._load_or_create(run_id, inputs)

    async def save(self, run_id: str, outputs: Mapping[str, Any], *, then_die: bool = False) -> None:
        """Complete nodes of a run that was loaded or created there, in this order, and save it."""
        text = f"save({run_id!r}) with {show(dict(outputs))}"
        await self._ask(text, {"do": "save", "run_id": run_id, "outputs": dict(outputs)}, then_die=then_die)
        acknowledged = self._scenario.acknowledged
        acknowledged[run_id] = acknowledged[run_id].after(outputs)
        await self._scenario.look_out_of_band(run_id)

    async def delete(self, run_id: str, *, then_die: bool = False) -> None:
        """Delete a run."""
        await self._ask(f"delete({run_id!r})", {"do": "delete", "run_id": run_id}, then_die=then_die)
        self._scenario.acknowledged.pop(run_id, None)
        await self._scenario.look_out_of_band(run_id)

    async def close(self) -> None:
        """Close the store there; the next call opens it again."""
        await self._ask("close()", {"do": "close"})

    async def late_save(self, run_id: str, outputs: Mapping[str, Any]) -> bool:
        """Save what others have gone on with or deleted: what it changes, and may not, is for the check to say.

        Returns False if the store raised an exception.
        """
        text = f"save({run_id!r}) with {show(dict(outputs))}"
        return await self._tries(text, {"do": "save", "run_id": run_id, "outputs": dict(outputs)}) is not None

    async def acquire(self, run_id: str, ttl: float, *, then_die: bool = False) -> Lasted | None:
        """Ask for a lease of a run, in the name of this process; return None if the store refused it."""
        message = {"do": "acquire", "run_id": run_id, "ttl": ttl}
        if then_die:
            return Lasted(*(await self._ask(f"acquire({run_id!r}, …, {ttl:g})", message, then_die=True))["lasted"])
        return await self._times(f"acquire({run_id!r}, …, {ttl:g})", message)

    async def renew(self, run_id: str, ttl: float) -> Lasted | None:
        """Renew the lease that this process was given of a run; return None if the store refused it."""
        return await self._times(f"renew(…, {ttl:g}) of {run_id!r}", {"do": "renew", "run_id": run_id, "ttl": ttl})

    async def release(self, run_id: str) -> None:
        """Give up the lease that this process was given of a run; it may be that of another by now, and raise."""
        await self._tries(f"release(…) of {run_id!r}", {"do": "release", "run_id": run_id})

    async def set_clock(self, seconds: int) -> None:
        """Have the wall clock of the process show so many seconds more than that of this one, from now on."""
        await self._ask(f"its clock is set {seconds:+} s off", {"do": "clock", "seconds": seconds})

    async def stop(self) -> None:
        """Stop the process by SIGSTOP. Raises `VacuousCheck` if it does not stand still then."""
        await stop(self.pid)
        self._scenario.tell(f"process {self.pid}: stopped by SIGSTOP")

    def go_on(self) -> None:
        """Let the process go on by SIGCONT. Raises `VacuousCheck` if it was not standing still until now."""
        self._scenario.tell(f"process {self.pid}: continued by SIGCONT")
        go_on(self.pid)

    async def until_it_stops(self, doing: asyncio.Task[Any]) -> bool:
        """Wait until the process has stopped itself in the midst of something; return False if that ended before.

        Raises `VacuousCheck` if neither comes.
        """
        if await until_stopped(self.pid, doing):
            self._scenario.tell(f"process {self.pid}: stopped by SIGSTOP")
            return True
        if not doing.done():
            raise VacuousCheck(f"process {self.pid} was to be stopped in the midst of something, and was not seen so")
        return False

    async def watch(self) -> None:
        """Note from now on what the process touches outside its memory."""
        await self._exchange({"do": "watch"})

    async def touched(self) -> tuple[list[str], bool]:
        """Return what was touched since `watch`, and whether an empty list proves that nothing was."""
        reply = await self._exchange({"do": "touched"}) or {"touched": [], "is_proof": False}
        return list(reply["touched"]), reply["is_proof"]

    async def _load_or_create(self, run_id: str, inputs: Mapping[str, Any], *, then_die: bool = False) -> Record:
        text = f"load_or_create({run_id!r}, {show(dict(inputs))})"
        message = {"do": "load_or_create", "run_id": run_id, "inputs": dict(inputs)}
        return Record.from_dict((await self._ask(text, message, then_die=then_die))["record"])

    async def _tries(self, text: str, message: dict[str, Any]) -> dict[str, Any] | None:
        """Make a call that the store may refuse; return the reply, or None if it raised."""
        step = self._scenario.journal.write(f"process {self.pid}: {text}")
        reply = await self._exchange(message, step)
        if reply is None:
            raise self._ended(text, step, await self._end())
        if "raised" in reply:
            self._scenario.journal.outcome(step, f"raised {reply['raised']}")
            return None
        self._judge(text, step, reply)
        return reply

    async def _times(self, text: str, message: dict[str, Any]) -> Lasted | None:
        reply = await self._tries(text, message)
        return None if reply is None else Lasted(*reply["lasted"])

    async def _ask(self, text: str, message: dict[str, Any], *, then_die: bool = False) -> dict[str, Any]:
        step = self._scenario.journal.write(f"process {self.pid}: {text}")
        reply = await self._exchange({**message, "die": then_die}, step)
        if reply is None:
            raise self._ended(text, step, await self._end())
        self._judge(text, step, reply)
        if then_die:
            await self._see_it_die()
        return reply

    def _ended(self, text: str, step: int, status: int | None) -> BrokenClause:
        self._scenario.journal.outcome(step, f"the process {describe_exit(status)}")
        details = (("printed", end_of(self._process.output(), _PRINTED_TAIL) or "nothing"),)
        return BrokenClause(f"the process {describe_exit(status)} during {text.partition('(')[0]}", details)

    def _judge(self, text: str, step: int, reply: dict[str, Any]) -> None:
        """Tell the outcome of a call, and raise if it is a bad one."""
        journal = self._scenario.journal
        if "vacuous" in reply:
            raise VacuousCheck(reply["vacuous"])
        if "broken" in reply:
            journal.outcome(step, "broken")
            raise BrokenClause(reply["broken"], tuple((label, text) for label, text in reply["details"]))
        if "raised" in reply:
            journal.outcome(step, f"raised {reply['raised']}")
            raise BrokenClause(f"{text.partition('(')[0]} in another process raised {reply['raised']}")
        if "record" in reply:
            journal.outcome(step, str(Record.from_dict(reply["record"])))
        else:
            came = reply.get("came", {"told": "acknowledged"})
            journal.outcome(step, came.get("told", "done"))

    async def _exchange(self, message: dict[str, Any], step: int | None = None) -> dict[str, Any] | None:
        """Send a message and return the reply; None if the process has ended. A sign of life tells the step again."""
        location = self._scenario.location
        with self._scenario.subject.own_work():  # until it has come to its call
            reply = await self._first_word({**message, "location": location, "tells_call": True})
        with self._scenario.subject.call_elsewhere():
            while reply is not None and "alive" in reply:
                if step is not None:
                    self._scenario.journal.goes_on(step)
                reply = await self._within_patience(self._process.channel.receive, step)
        return reply

    async def _first_word(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Send a message, and return what comes first. Raises `MisuseError` if it does not come to its call."""
        try:
            return await asyncio.to_thread(self._process.request, message, _TIME_TO_CALL)
        except TimeoutError:
            raise MisuseError(not_called(_TIME_TO_CALL)) from None

    async def _within_patience(
        self, receive: Callable[[float | None], dict[str, Any] | None], step: int | None
    ) -> dict[str, Any] | None:
        """Return what `receive` does. Raises `BrokenClause`, the process killed, if that takes too long."""
        if self._patience is None:
            return await asyncio.to_thread(receive, None)
        half = self._patience / 2
        with suppress(TimeoutError):
            return await asyncio.to_thread(receive, half)
        if step is not None:
            self._scenario.journal.goes_on(step)  # whoever listens has no more patience than this
        with suppress(TimeoutError):
            return await asyncio.to_thread(self._process.channel.receive, half)
        await asyncio.to_thread(self._process.kill)
        waited = f"did not return within {self._patience:g} s"
        if step is not None:
            self._scenario.journal.outcome(step, waited)
        raise BrokenClause(f"a call in another process {waited}")

    async def _end(self) -> int | None:
        """Wait for the end of the process, and return how it ended. Raises `VacuousCheck` if nobody can tell."""
        try:
            return await asyncio.to_thread(self._process.wait, _TIME_TO_DIE)
        except NurseryGoneError as gone:
            raise VacuousCheck(f"{gone}, and its forks with it, so nothing was shown") from gone

    async def _see_it_die(self) -> None:
        status = await self._end()
        self._scenario.tell(f"process {self.pid}: {describe_exit(status)} right after its acknowledgement")
        if status != _KILLED:
            raise VacuousCheck(
                f"the process that was to die by SIGKILL after its acknowledgement {describe_exit(status)}, so nothing "
                "was shown"
            )


def _performing(procedure: Procedure | TracingProcedure, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"do": "perform", "procedure": name_of(procedure), "arguments": arguments}


def _fresh(scenario: Scenario, tracing: bool) -> OtherProcess:
    target = scenario.subject.target
    process = HelperProcess(f"{__package__}.{'tracer' if tracing else 'child'}", folder=target.folder)
    process.channel.send({"target": target.text})
    return process


def _forked(scenario: Scenario, tracing: bool) -> OtherProcess:
    """Fork the nursery, or start a fresh interpreter and note why."""
    subject = scenario.subject
    nursery = subject.nursery()
    if nursery.unfit is None:
        try:
            return nursery.fork(tracing=tracing)
        except NurseryGoneError:
            nursery.unfit = "the process that is forked has ended"
    note = f"other processes are fresh interpreters, no forks: {nursery.unfit}"
    if note not in subject.notes:
        subject.notes.append(note)
    return _fresh(scenario, tracing)

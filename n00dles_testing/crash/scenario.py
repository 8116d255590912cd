"""A scenario: one run of one pipeline, through as many lives as it takes, one crash point a life.

How a life is started (a fork, a fresh interpreter, a call) is the affair of a backend; which lives there are is decided
here, the same way for all of them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self

from .ledger import Entry
from .points import How, Point

__all__ = ["Backend", "BackendError", "LifeEnd", "LifeRequest", "PlannedRun", "Subject", "lives", "play_one"]

EXIT_FINISHED = 0
"""The run returned a result, which is in the ledger."""
EXIT_FAILED = 3
"""The run raised an error, which is in the ledger."""

_SIGKILL = int(getattr(signal, "SIGKILL", 9))


class BackendError(RuntimeError):
    """Lives cannot be started at all: the target cannot be imported, or it cannot be forked. The message says why."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is put to the test, by names that another process can follow.

    `target` is a pipeline as in `targets.load_target`; `executor` an object with `run` and `resume` (see
    `life.Executor`), None for the one of n00dles; `store` what the user named, None for the default.
    """

    target: str
    executor: str | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run and its plan: where each life is killed, in order. Lives beyond the plan are left alone.

    `id` tells it from all others; `run_id` need not, since a run may depend on its id and has to be comparable.
    `store` is a URL or a factory target; `location` a folder that is this scenario's own, `ledger` a file, or nothing
    if it is lived in this process. `lines` says, for each point during a body, at which line executed (counting from 1)
    its middle is. `environment` is put into that of each life. `record` has each body's lines counted, `forget` has the
    run deleted after a good end, since the store is somebody's. `time_limit` is seconds a life.
    """

    id: str
    run_id: str
    inputs: Mapping[str, Any]
    store: str
    location: str
    ledger: str
    plan: tuple[Point | None, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    record: bool = False
    forget: bool = False
    time_limit: float = 30.0

    def line_of(self, point: Point | None) -> int | None:
        """Return the line at which the middle of the body is, if `point` is during one."""
        return None if point is None else self.lines.get(str(point.moment), self.lines.get(str(point)))

    def to_dict(self) -> dict[str, Any]:
        """Return it in JSON types, to be sent to another process."""
        return {**asdict(self), "plan": [None if point is None else str(point) for point in self.plan]}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Read what `to_dict` made."""
        plan = tuple(None if text is None else Point.parse(text) for text in form["plan"])
        return cls(**{**form, "plan": plan})


@dataclass(frozen=True, slots=True)
class LifeRequest:
    """One life to be lived: `point` is where it is disturbed, None to let it be.

    `again` is the life after the end: the run is finished, and is resumed and run once more. `goes_on` has that follow
    in the same process.
    """

    scenario: PlannedRun
    life: int
    point: Point | None = None
    again: bool = False
    goes_on: bool = False

    @classmethod
    def planned(cls, scenario: PlannedRun, life: int, *, goes_on: bool = False) -> Self:
        """Return the request for a life, with what the plan says about it."""
        point = _point(scenario, life)
        return cls(scenario, life, point, goes_on=goes_on and (point is None or point.how is not How.KILL))

    @property
    def same_process(self) -> bool:
        """Whether the life before this one was lived in this process: its store failed, and the process did not."""
        before = _point(self.scenario, self.life - 1)
        return not self.again and before is not None and before.how.stays

    def following(self, finished: bool) -> LifeRequest | None:
        """Return the life that comes next in the same process, if there is one, when this one has `finished` the run.

        A store that fails is followed by one that works again: what the nodes returned is still in hand.
        """
        if self.again:
            return None
        if finished:
            return LifeRequest(self.scenario, self.life + 1, again=True) if self.goes_on else None
        if self.point is None or not self.point.how.stays:
            return None
        following = LifeRequest.planned(self.scenario, self.life + 1)
        return replace(following, goes_on=self.goes_on and following.point is None)

    @property
    def last(self) -> LifeRequest:
        """The life that the process of this one is to end with, if none of them finishes the run."""
        following = self.following(finished=False)
        return self if following is None else following.last

    @property
    def time_limit(self) -> float:
        """Seconds that the process of this life may take."""
        return (self.last.life - self.life + 1) * self.scenario.time_limit


def _point(scenario: PlannedRun, life: int) -> Point | None:
    return scenario.plan[life - 1] if 1 <= life <= len(scenario.plan) else None


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """How a life ended, by the word of the operating system: a signal, or an exit code, or our time limit.

    `simulated` is a death by an exception, in the in-process mode.
    """

    life: int
    pid: int
    point: str | None
    signal: int | None
    exit_code: int | None
    timed_out: bool
    seconds: float
    simulated: bool = False

    @property
    def was_killed(self) -> bool:
        """Whether it died by signal 9 (or what stands for it), and not because we ended its waiting."""
        return (self.signal == _SIGKILL or self.simulated) and not self.timed_out

    @property
    def leaves_a_run(self) -> bool:
        """Whether it ended as its plan has it, and the run is there to be resumed."""
        if self.point is None or self.timed_out:
            return False
        if Point.parse(self.point).how is How.KILL:
            return self.was_killed
        return self.exit_code == EXIT_FAILED


class Backend(Protocol):
    """Something that can start lives. `description` says what the target looks like (see `dependencies.describe`)."""

    description: dict[str, Any]

    def play(self, scenarios: Iterable[PlannedRun], lanes: int = 1) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        """Live scenarios to their ends, up to `lanes` at a time, and yield each as it is done.

        The next ones go on while the caller looks at one that is done. Raises `BackendError` if lives cannot be
        started.
        """

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        """Return the ledger of a scenario that was lived, once."""

    def close(self) -> None:
        """End every process that was started. May be called twice."""


def lives(scenario: PlannedRun, *, thrifty: bool = False) -> Generator[LifeRequest, Sequence[LifeEnd], list[LifeEnd]]:
    """Ask for one process of lives after the other, be told how they ended, and return all the ends.

    Most processes have one life; see `LifeRequest.following` for those that have more. While a life is disturbed as
    planned, the next follows. A finished run lives once more; with `thrifty`, a process that has finished a disturbed
    run does that itself, on a new event loop and with the store opened anew. Undisturbed runs always have a process of
    their own for it.
    """
    ends: list[LifeEnd] = []
    goes_on = thrifty and bool(scenario.plan)
    life = 1
    while True:
        ends += yield LifeRequest.planned(scenario, life, goes_on=goes_on)
        if not ends[-1].leaves_a_run:
            break
        life = ends[-1].life + 1
    if ends[-1].exit_code == EXIT_FINISHED and not goes_on:
        ends += yield LifeRequest(scenario, ends[-1].life + 1, again=True)
    return ends


def play_one(scenario: PlannedRun, live: Callable[[LifeRequest], Sequence[LifeEnd]]) -> list[LifeEnd]:
    """Live `scenario` by calling `live` for each process of its lives."""
    steps = lives(scenario)
    request = next(steps)
    while True:
        try:
            request = steps.send(live(request))
        except StopIteration as stop:
            ends: list[LifeEnd] = stop.value
            return ends

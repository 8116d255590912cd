"""The store under test, as a check sees it: fresh locations, scenarios on them, other processes, and what was found."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..verdicts import Finding
from .draw import Draw
from .ended import STEPS_OF_A_JOURNAL, not_through
from .expect import BrokenClause, MisuseError
from .journal import Journal
from .location import files_in
from .nursery import Nursery
from .out_of_band import COMPARED_IN, OutOfBandReader
from .replay import faults_line, replay_line
from .scenario import Scenario
from .served import ServedLocations, password_hidden
from .tally import Tally

if TYPE_CHECKING:
    from .target import StoreTarget

__all__ = ["CALLS_WORTH", "DEFAULT_SECONDS", "Listener", "StoreSubject"]

CALLS_WORTH = 10
"""A whole check may take as long as this many calls at their limit."""
DEFAULT_SECONDS = 200.0


T = TypeVar("T")

_TOLD_RUNS = 2


class Listener(Protocol):
    """Who hears how a check goes on."""

    def scenario(self, number: int, title: str) -> None:
        """A scenario begins; numbers count from 1."""

    def step(self, number: int, text: str) -> None:
        """A step of the current scenario begins, or its outcome is known.

        Numbers count from a multiple of `STEPS_OF_A_JOURNAL`, another one for each scenario and each probe.
        """


class StoreSubject:
    """One store for one check.

    `draw` is the check's source of values; `findings` is what was found so far, and `notes` what is worth saying.
    `untried` is what was left out because the store failed at it already without what the check does to it.
    `most` is how many disturbances a check may try, None for as many as it likes to, and `on_tally` hears how many of
    each kind it has tried.
    `on_own_work` hears True when something of the suite begins that is no call of the store, and False at its end;
    `on_call_elsewhere` hears the same of a call in another process.
    `scenarios` counts those that came as far as an expectation.
    """

    def __init__(
        self,
        target: StoreTarget,
        locations: Path,
        *,
        clause: str,
        seed: int,
        nonce: str,
        listener: Listener,
        memory: dict[str, Any],
        only_location: str | None = None,
        reader: OutOfBandReader | None = None,
        replay_options: Sequence[str] = (),
        plan: dict[str, Any] | None = None,
        seconds: float = DEFAULT_SECONDS,
        most: int | None = None,
        served: ServedLocations | None = None,
    ) -> None:
        """Prepare one check.

        `locations` is a folder for fresh locations, or for what else is to be kept in files; with `served`, locations
        are URLs on its server; `nonce` keeps run ids apart from those of earlier checks; `memory`
        is shared by the checks of one store. `only_location` is what a factory gets whose stores share their data
        wherever they are opened. `reader` is used by the clauses that compare with it. `replay_options` belong to the
        command that shows a finding again. `plan` is what is to be replayed (see `machine`), None to draw something.
        After so many `seconds` no further scenario begins, and the check is killed soon after.
        """
        self.target = target
        self.clause = clause
        self.seed = seed
        self.plan = plan
        self.seconds = seconds
        self._ends = time.monotonic() + seconds
        self.draw = Draw(f"{clause}:{seed}")
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.untried: list[str] = []
        self.most = most
        self.on_tally: Callable[[Tally], None] = lambda _: None
        self.on_own_work: Callable[[bool], None] = lambda _: None
        self.on_call_elsewhere: Callable[[bool], None] = lambda _: None
        self.scenarios = 0
        self._opened = 0
        self._journals = 0
        self._locations = locations
        self.served = served if target.takes_location else None
        self._nonce = nonce
        self._listener = listener
        self._memory = memory
        self._only_location = only_location
        self.reader = reader if clause in COMPARED_IN else None
        self._tells_raw_records = reader
        shown = password_hidden(target.text)
        again = replay_line(shown, clause, seed, replay_options)
        self._replay = again if most is None else faults_line(shown, clause, seed, most, replay_options)

    def scenario(self, title: str) -> Scenario:
        """Return a new scenario on a fresh location; enter it with `async with`.

        A broken clause in it is kept as a finding, and the check goes on behind the scenario. It counts once it has
        compared something. Raises `MisuseError` if the time for the check is over: it is NOT RUN to its end.
        """
        self._expect_time()
        self._opened += 1
        self._listener.scenario(self._opened, title)
        return Scenario(self, title, self._journal(title), self.fresh_location())

    def probe(self, title: str) -> Scenario:
        """Return a scenario that counts for nothing: it finds out what the store offers. Raises as `scenario` does."""
        self._expect_time()
        return Scenario(self, title, self._journal(title), self.fresh_location(), is_probe=True)

    def _journal(self, title: str) -> Journal:
        """Return a journal with numbers of its own: a probe may be in the midst of a scenario."""
        self._journals += 1
        first = self._journals * STEPS_OF_A_JOURNAL
        return Journal(title, lambda number, text: self._listener.step(first + number, text))

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """What is done in this block is the suite's own work, as to start a process: no call of the store lasts."""
        self.on_own_work(True)
        try:
            yield
        finally:
            self.on_own_work(False)

    @contextmanager
    def call_elsewhere(self) -> Iterator[None]:
        """What is waited for in this block is a call in another process; there may be several at once."""
        self.on_call_elsewhere(True)
        try:
            yield
        finally:
            self.on_call_elsewhere(False)

    @property
    def call_seconds(self) -> float:
        """How long a call of the store may take."""
        return self.seconds / CALLS_WORTH

    @property
    def patience(self) -> float:
        """How long a probe lets a call wait for its turn: one that waits longer cannot be made."""
        return self.call_seconds / 2

    def _expect_time(self) -> None:
        if time.monotonic() > self._ends:
            raise MisuseError(not_through(self.seconds))

    async def once(self, name: str, find_out: Callable[[], Awaitable[T]]) -> T:
        """Return what `find_out` returns, from memory if another check of the same store has asked already."""
        if name not in self._memory:
            self._memory[name] = await find_out()
        return self._memory[name]  # type: ignore[no-any-return]

    def nursery(self) -> Nursery:
        """Return the process that is forked for other processes; the first call starts it."""
        # Not `once`: it is started at once or not at all, so that two scenarios side by side share it.
        if "nursery" not in self._memory:
            self._memory["nursery"] = Nursery(self.target.text, self.target.folder)
        nursery: Nursery = self._memory["nursery"]
        return nursery

    @property
    def has_folders(self) -> bool:
        """Whether each location is a folder of the suite's, in which the store's files can be looked at."""
        return self.target.takes_location and self.served is None

    def fresh_location(self) -> str | None:
        """Return a fresh location: an empty folder, or the URL of an empty place on a server.

        The only location, or None, if the target cannot be opened on fresh ones.
        """
        if not self.target.takes_location:
            return self._only_location
        return str(self.fresh_folder(self.clause)) if self.served is None else self.served.fresh()

    def fresh_folder(self, name: str) -> Path:
        """Return a fresh, empty folder for files of the suite's own, which is removed with the check's."""
        number = 1
        while (folder := self._locations / f"{name}-{number}").exists():
            number += 1
        folder.mkdir(parents=True)
        return folder

    def fresh_run_id(self) -> str:
        """Return the id of a run that no store knows."""
        return f"run-{self._nonce}-{self.draw.token()}"

    async def raw_records(self, scenario: Scenario) -> list[str]:
        """Return what the out-of-band reader sees of the scenario's last runs, for a story; nothing without one."""
        reader = self._tells_raw_records
        return [] if reader is None else await reader.tell(scenario.location, list(scenario.acknowledged)[-_TOLD_RUNS:])

    def found(
        self, broken: BrokenClause, journal: Journal, location: str | None = None, raw: Sequence[str] = ()
    ) -> None:
        """Keep what a scenario has found, with what lay in its location at that moment, and raw records if known."""
        on_disk = files_in(location)
        details = [("on disk", text) for text in [*([] if on_disk is None else [on_disk]), *raw]]
        lines = [f"{label:<8} {text}" for label, text in [*details, *broken.details]]
        story = (*journal.story, *lines)
        self.findings.append(Finding(self.clause, broken.message, story, self._replay, broken.picture))

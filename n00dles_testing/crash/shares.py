"""Scenarios that are lived by the workers of any `concurrent.futures.Executor`: processes here, or on other machines.

What is tried, and in which order it is told, is decided here, and judged here. A worker only has scenarios lived, in a
folder and by a fork server of its own, and sends back what happened. So a report does not depend on who lived what.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

from ..on_executors import Home, handed_out, size_of, why_lost
from ..temporary_folder import TemporaryFolder
from .fork_server import ForkServer
from .ledger import Entry
from .scenario import Backend, BackendError, LifeEnd, PlannedRun, Subject

__all__ = ["Lived", "Share", "SharedOut", "live_share"]

_SCENARIOS_A_SHARE = 2
"""Enough that a fork server begins the next one while the first is sent back, and few enough that all end together."""

_SHARES_AHEAD = 2
"""How many shares a worker has at a time, so that it never waits for its next one."""

_SECONDS_AT_REST = 10.0
"""How long a worker keeps what it has imported, when no share comes."""

_FOLDER = "n00dles-share-"


@dataclass(frozen=True, slots=True)
class Share:
    """Some scenarios, and all that another process needs to live them.

    `home` is where the names of `subject` mean something, `start_limit` how many seconds the import may take.
    """

    subject: Subject
    variables: tuple[tuple[str, str], ...]
    start_limit: float
    home: Home
    scenarios: tuple[PlannedRun, ...] = ()

    @classmethod
    def of(cls, subject: Subject, variables: Mapping[str, str], start_limit: float) -> Self:
        """Return a share without scenarios, with what this process knows."""
        return cls(subject, tuple(sorted(variables.items())), start_limit, Home.here())

    @property
    def backend_key(self) -> tuple[Any, ...]:
        """What two shares have in common that can use one backend."""
        return self.subject, self.variables, self.home.folder


@dataclass(frozen=True, slots=True)
class Lived:
    """What came of one scenario."""

    id: str
    ends: list[LifeEnd]
    entries: list[Entry]


class SharedOut:
    """A backend whose scenarios are lived by the workers of `executor`, and the undisturbed ones by `own`.

    A share whose worker is lost, or cannot do it, is lived by `own` as well, and `notes` says so. The executor stays
    open: it is somebody else's. `share` has all but the scenarios.
    """

    def __init__(self, own: Backend, executor: Executor, share: Share, notes: list[str]) -> None:
        self.description = own.description
        self._own = own
        self._executor = executor
        self._share = share
        self._notes = notes
        self._at_once = _SHARES_AHEAD * size_of(executor)
        self._entries: dict[str, list[Entry]] = {}
        self._handed_out: Generator[tuple[Share, Future[list[Lived]]], None, None] | None = None
        self._lost = 0

    def play(
        self, scenarios: Iterable[PlannedRun], lanes: int = 1
    ) -> Generator[tuple[PlannedRun, list[LifeEnd]], None, None]:
        """Have scenarios lived and yield each as it is done; `lanes` is for those that are lived here."""
        source = iter(scenarios)
        first = next(source, None)
        if first is None:
            return
        source = chain([first], source)
        if first.record:
            yield from self._own.play(source, lanes)
            return
        self._handed_out = handed_out(self._executor, live_share, self._shares(source), self._at_once)
        try:
            for share, future in self._handed_out:
                yield from self._received(future, share.scenarios, lanes)
        finally:
            self._give_up()

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        """Return the ledger of a scenario that was lived, once."""
        found = self._entries.pop(scenario.id, None)
        return self._own.entries(scenario) if found is None else found

    def close(self) -> None:
        """Take back what no worker has begun, and end what was started here."""
        self._give_up()
        self._own.close()

    def _shares(self, source: Iterator[PlannedRun]) -> Iterator[Share]:
        while some := tuple(islice(source, _SCENARIOS_A_SHARE)):
            yield replace(self._share, scenarios=some)

    def _received(
        self, future: Future[list[Lived]], scenarios: tuple[PlannedRun, ...], lanes: int
    ) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        try:
            lived = {each.id: each for each in future.result()}
        except BackendError:
            raise
        except (Exception, CancelledError) as error:
            self._note_loss(error, len(scenarios))
            yield from self._lived_here(scenarios, lanes)
            return
        for scenario in scenarios:
            self._entries[scenario.id] = lived[scenario.id].entries
            yield scenario, lived[scenario.id].ends

    def _lived_here(self, scenarios: tuple[PlannedRun, ...], lanes: int) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        by_id = {scenario.id: scenario for scenario in scenarios}
        # The lost worker has perhaps begun: what it wrote stays where it is.
        again = [_moved(scenario, Path(f"{scenario.location}-again")) for scenario in scenarios]
        for done, ends in self._own.play(again, lanes):
            self._entries[done.id] = self._own.entries(done)
            yield by_id[done.id], ends

    def _note_loss(self, error: BaseException, count: int) -> None:
        if self._lost:
            self._notes.pop()
        self._lost += count
        self._notes.append(
            f"{self._lost} scenarios were lived again in this process, since their workers were lost "
            f"({why_lost(error)})"
        )

    def _give_up(self) -> None:
        if self._handed_out is not None:
            self._handed_out.close()


def live_share(share: Share) -> list[Lived]:
    """Live scenarios in this process, a worker's, and return what happened. Raises `BackendError` if it cannot."""
    kept = _kept_for(share, share.home.bring())
    backend = kept.backend
    try:
        with ExitStack() as stack:
            # Where the scenarios have their folders on this machine, these are removed by whoever made them.
            if all(Path(scenario.location).is_dir() for scenario in share.scenarios):
                here = list(share.scenarios)
            else:
                folder = stack.enter_context(TemporaryFolder(_FOLDER)).path
                here = [_moved(scenario, folder / str(number)) for number, scenario in enumerate(share.scenarios)]
            lived = [Lived(done.id, ends, backend.entries(done)) for done, ends in backend.play(here)]
    except BaseException:
        _forget_backend()  # what it has in hand belongs to nobody any more
        raise
    kept.rest()
    return lived


def _moved(scenario: PlannedRun, folder: Path) -> PlannedRun:
    """Return a scenario with another folder, which is made, and a ledger beside it."""
    folder.mkdir()
    return replace(
        scenario,
        store=scenario.store.replace(scenario.location, str(folder)),
        location=str(folder),
        ledger=str(folder.with_suffix(".ledger")),
    )


class _Kept:
    """A backend that is kept for whatever share comes next. It ends if none comes for a while: nobody else tells it."""

    def __init__(self, key: tuple[Any, ...], backend: Backend) -> None:
        self.key = key
        self.backend = backend
        self.has_ended = False
        self._is_at_rest = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def take(self) -> bool:
        """Return whether it is still there, and then for whoever asks."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_at_rest = False
            return not self.has_ended

    def rest(self) -> None:
        """Say that it is not used now."""
        self._is_at_rest = True
        self._timer = threading.Timer(_SECONDS_AT_REST, self._end_at_rest)
        self._timer.daemon = True
        self._timer.start()

    def _end_at_rest(self) -> None:
        with self._lock:
            if self._is_at_rest:
                self.end()

    def end(self) -> None:
        """End it, once."""
        if not self.has_ended:
            self.has_ended = True
            self.backend.close()


_of_thread = threading.local()
"""Each thread of a worker has a backend of its own, that of the last target."""


def _kept_for(share: Share, folder: str | None) -> _Kept:
    kept: _Kept | None = getattr(_of_thread, "kept", None)
    if kept is not None and kept.key == share.backend_key and kept.take():
        return kept
    _forget_backend()
    server = ForkServer(share.subject, dict(share.variables), start_limit=share.start_limit, folder=folder)
    kept = _of_thread.kept = _Kept(share.backend_key, server)
    return kept


def _forget_backend() -> None:
    kept: _Kept | None = getattr(_of_thread, "kept", None)
    _of_thread.kept = None
    if kept is not None and kept.take():
        kept.end()

"""Running the clauses on one store, whatever the store does: each has a hard time limit and ends with a verdict."""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles.errors import ConfigurationError

from ..interpreters import working_folder
from ..verdicts import ClauseResult, Finding, Verdict
from .capabilities import CAPABILITIES, Capability, Outcome
from .claims import Claims
from .ended import EndedError, Story, not_called, not_through
from .gaps import judge_gaps
from .location import files_in
from .out_of_band import COMPARED_IN, READING
from .printed import end_of
from .processes import HelperProcess, describe_exit
from .progress import Progress, nobody
from .registry import Clause
from .replay import faults_line, replay_line
from .report import ReaderReport, StoreReport, grade
from .served import Service, password_hidden
from .shortened import shorten
from .subject import CALLS_WORTH
from .tally import Tally
from .target import Workspace

__all__ = ["DEFAULT_LIMIT", "Aside", "Progress", "Runner", "open_runner"]

DEFAULT_LIMIT = 20.0
_CALLS_TO_END = 2
"""A clause ends by itself when its time is over; it is killed if it has not after this many calls at their limit."""
_TIME_TO_SETTLE = 2.0
_TIME_TO_START = 60.0
_TIME_FOR_OWN_WORK = 90.0
"""For what the suite does between two calls of the store, as to start a process; its own limit for that is less."""
_TIME_TO_DIE = 5.0
_TIME_TO_CLOSE = 5.0
_PRINTED_TAIL = 400


@contextmanager
def open_runner(
    target: str,
    *,
    seed: int = 0,
    limit: float = DEFAULT_LIMIT,
    folder: Path | None = None,
    claims: Path | Claims | None = None,
    reader: str | None = None,
    server: str | None = None,
    progress: Progress | None = None,
    home: str | None = None,
    start: bool = True,
) -> Iterator[Runner]:
    """Open a store and yield what checks it, clause by clause; its processes are ended on leaving.

    Locations are made in `folder`, which is the caller's and is left as it is; without one, in a temporary folder that
    is removed. Relative names begin in `home`, by default where we are. With `start` off, the store opens when the
    runner is started. Raises `ConfigurationError` if the target cannot be opened at all. For the rest see
    `check_store`.
    """
    if not 0 < limit < math.inf:
        raise ConfigurationError(f"the limit {limit} is no number of seconds that a call may take")
    service = Service.of(target, server)
    said = claims if isinstance(claims, Claims) else Claims() if claims is None else Claims.from_file(claims)
    said_limit = None if limit == DEFAULT_LIMIT else f"{limit:.12g}"
    options = [*_option("--claims", said.source or None), *_option("--reader", reader), *_option("--limit", said_limit)]
    options += _option("--server", server)
    home = home or working_folder()
    with contextlib.ExitStack() as stack:
        root = folder or stack.enter_context(Workspace(target, home)).root
        runner = stack.enter_context(
            Runner(
                target,
                root,
                seed=seed,
                limit=limit,
                claims=said,
                reader=reader or said.reader,
                server=server,
                service=service,
                replay_options=options,
                progress=progress or nobody(),
                home=home,
            )
        )
        if start:
            runner.start()
        yield runner


def _option(name: str, value: object) -> list[str]:
    return [] if value is None else [name, str(value)]


@dataclass(frozen=True, slots=True)
class Aside:
    """What a check comes to besides its verdicts: what the store has `printed`, notes, and what was compared."""

    printed: str = ""
    notes: tuple[str, ...] = ()
    read: ReaderReport | None = None


class _TooSlowError(ConfigurationError):
    """A worker did not come as far as an answer in its time: that may be the machine."""


class Runner:
    """Listens to a worker process, and starts another one when the store has ended it.

    Once it is started, `note` says what is done with the target, `takes_location` whether it can be opened where the
    suite likes, and `claims` what the store claims. `shares_data` says how two locations were found to be one; empty if
    they were not. `on_tally` hears how often a clause has disturbed a deed.
    """

    def __init__(
        self,
        target: str,
        folder: Path,
        *,
        seed: int,
        limit: float,
        claims: Claims,
        reader: str | None,
        server: str | None,
        service: Service | None,
        replay_options: Sequence[str],
        progress: Progress,
        home: str | None,
    ) -> None:
        self.note = ""
        self.claims = claims
        self.shares_data = ""
        self.takes_location = False
        self.on_tally: Callable[[Tally], None] = lambda _: None
        self._target = target
        self._folder = folder
        self._seed = seed
        self._limit = limit
        self._progress = progress
        self._reader = reader
        self._server = server
        self._service = service
        self._replay_options = list(replay_options)
        self._read: ReaderReport | None = None
        self._nonce = secrets.token_hex(3)
        self._worker: HelperProcess | None = None
        self._home = home
        self._is_given_up = False
        self._starts = 0
        self._asked = 0
        self._printed = ""
        self._notes: tuple[str, ...] = ()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._left_behind()

    @property
    def read(self) -> ReaderReport | None:
        """What the out-of-band reader was good for so far, if there is one."""
        return self._read

    def run(
        self, clauses: Sequence[Clause], *, most: int | None = None, seconds: float | None = None
    ) -> list[ClauseResult]:
        """Check these clauses, one after the other, and tell the progress. For the rest see `check`."""
        self._progress.started([(clause.id, clause.title) for clause in clauses], self.note)
        results = []
        for clause in clauses:
            self._progress.clause_started(clause.id)
            results.append(self.check(clause, most=most, seconds=seconds))
            self._progress.clause_ended(results[-1])
        return results

    def run_probes(self) -> tuple[Capability, ...]:
        """Probe every capability, and tell the progress."""
        found = []
        for name in CAPABILITIES:
            self._progress.probing(name)
            found.append(self.probe(name))
            self._progress.probed(found[-1])
        return tuple(found)

    def report(
        self, results: Sequence[ClauseResult], capabilities: Sequence[Capability], seconds: float
    ) -> StoreReport:
        """End the worker, and return all that was found."""
        notes = (self.note, *self.notes())
        gaps = judge_gaps(self.claims.gaps, results, self.claims.source)
        return StoreReport(
            password_hidden(self._target),
            tuple(results),
            grade(results),
            notes,
            self._seed,
            seconds,
            self.claims,
            tuple(capabilities),
            gaps,
            self._what_was_read(results),
            self.shares_data,
        )

    def _what_was_read(self, results: Sequence[ClauseResult]) -> ReaderReport | None:
        """A reader with which nothing was compared, where it should have been, has shown nothing."""
        read = self._read
        passed = [
            result.clause for result in results if result.verdict is Verdict.PASS and result.clause in COMPARED_IN
        ]
        if read is None or read.compared or not passed:
            return read
        return read.with_more(
            0, f"nothing was compared with the out-of-band reader {read.name}, though {passed[0]} passed"
        )

    def notes(self) -> tuple[str, ...]:
        """Return what is worth knowing besides the verdicts."""
        self._stop()
        printed = end_of(self._printed, _PRINTED_TAIL)
        printed = printed and f"printed while it was checked: {printed}"
        return (*dict.fromkeys(self._notes), *filter(None, [self._left_behind(), printed]))

    def aside(self) -> Aside:
        """End the worker, and return what another runner of the same store has to add to its own."""
        self._stop()
        return Aside(self._printed, (*self._notes, *filter(None, [self._left_behind()])), self._read)

    def add(self, aside: Aside) -> None:
        """Take over what another runner, or a process without one, has to say."""
        self._printed += aside.printed
        self._notes += aside.notes
        if self._read is not None and aside.read is not None:
            self._read = self._read.with_more(aside.read.compared, aside.read.fault)

    def give_up(self) -> None:
        """Have whatever another thread does with it end at once, and start no process any more."""
        self._is_given_up = True
        if (worker := self._worker) is not None:
            worker.kill()

    def _left_behind(self) -> str:
        """Remove what lies on the user's own server; say what could not be removed, or nothing."""
        service, self._service = self._service, None
        return "" if service is None else service.remove(self._nonce)

    def start(self) -> None:
        """Open the store, and see what it is. Raises `ConfigurationError` if it does not open at all."""
        worker = self._new_worker()
        answer = self._first_answer(worker)
        self._see_it_closed(worker)
        self.note = answer["note"]
        self.claims = self.claims.over(Claims.from_dict(answer["claims"]))
        self._read = None if answer["reader"] is None else ReaderReport(answer["reader"], 0)
        self.takes_location = answer["takes_location"]
        if self.takes_location:
            self._see_whether_locations_are_apart()

    def check(
        self,
        clause: Clause,
        plan: Mapping[str, Any] | None = None,
        *,
        most: int | None = None,
        seconds: float | None = None,
    ) -> ClauseResult:
        """Have one clause checked; whatever happens to the worker, a result comes out.

        With a `plan`, S17 plays that sequence of operations instead of those that it draws. C03 and C04 try at most
        `most` disturbances. The clause may take so many `seconds`, by default as long as ten calls at their limit.
        After one that sets the clock, the next one gets a worker of its own.
        """
        began = time.monotonic()
        try:
            seconds = CALLS_WORTH * self._limit if seconds is None else seconds
            message = self._ask({"clause": clause.id, "plan": plan, "seconds": seconds, "most": most}, seconds)
        except EndedError as end:
            return self._died(clause, end, time.monotonic() - began, most)
        if clause.sets_the_clock:
            self._stop()
        if self._read is not None and message["reader"] is not None:
            self._read = self._read.with_more(**message["reader"])
        return ClauseResult.from_dict(message["result"]).with_seconds(time.monotonic() - began)

    def probe(self, name: str) -> Capability:
        """Have one capability probed; one that ends or blocks its process is offered, and wrong."""
        claimed = name in self.claims.capabilities
        try:
            found = self._ask({"capability": name}, CALLS_WORTH * self._limit)["result"]
        except EndedError as end:
            outcome = Outcome.BROKEN if end.verdict is Verdict.FAIL else Outcome.UNTOLD
            return Capability(name, claimed, outcome, end.sentence)
        return Capability(name, claimed, Outcome(found["outcome"]), found["proof"])

    def _new_worker(self) -> HelperProcess:
        self._starts += 1
        self._worker = HelperProcess("n00dles_testing.conformance.worker", own_group=True, folder=self._home)
        if self._is_given_up:
            self._stop()
            raise ConfigurationError(f"the check of {password_hidden(self._target)} was given up.")
        return self._worker

    def _running(self, story: Story) -> HelperProcess:
        """Return the worker, or another one if the store has ended it. Raises `EndedError` if that does not open."""
        if self._worker is not None:
            return self._worker
        try:
            return self._another_worker()
        except ConfigurationError:
            self._stop()  # once more: what was too slow may have been the machine
        try:
            return self._another_worker()
        except ConfigurationError as error:
            self._stop()
            verdict = Verdict.NOT_RUN if isinstance(error, _TooSlowError) else Verdict.FAIL
            raise EndedError(f"the store could not be opened in a new process: {error}", story, [], verdict) from error

    def _see_it_closed(self, worker: HelperProcess) -> None:
        """Wait until the store is closed after the first opening; one that hangs there, or dies, gets a new process."""
        try:
            closed = worker.channel.receive(min(self._limit, _TIME_TO_CLOSE))
        except TimeoutError:
            closed = None
        if closed is None or "closed" not in closed:
            self._stop()

    def _another_worker(self) -> HelperProcess:
        worker = self._new_worker()
        self._first_answer(worker)
        return worker

    def _first_answer(self, worker: HelperProcess) -> dict[str, Any]:
        """Tell a new worker what to check. Raises `ConfigurationError` if the store cannot be opened."""
        start = {
            "target": self._target,
            "locations": str(self._folder / f"worker-{self._starts}"),
            "only_location": self._only_location if self.shares_data else None,
            "seed": self._seed,
            "limit": self._limit,
            "nonce": self._nonce,
            "reader": self._reader,
            "server": self._server,
            "replay_options": self._replay_options,
            "try_to_open": self._starts == 1,
        }
        try:
            worker.channel.receive(_TIME_TO_START)
        except TimeoutError:
            raise _TooSlowError(f"the process for the checks did not start within {_TIME_TO_START:g} s.") from None
        doing, seconds = "importing", max(self._limit, _TIME_TO_START)
        try:
            answer = worker.request(start, seconds)
            if answer is not None and "opening" in answer:
                doing, seconds = "opening", self._limit
                answer = worker.channel.receive(seconds)
        except TimeoutError:
            places = "; ".join(worker.where_it_hangs()[:2])
            at = f" (it is at {places})" if places else ""
            raise _TooSlowError(f"{doing} {self._target} did not return within {seconds:g} s{at}.") from None
        if answer is None:
            status = describe_exit(worker.wait(_TIME_TO_DIE))
            printed = end_of(worker.output(), _PRINTED_TAIL)
            raise ConfigurationError(
                f"opening {self._target}: its process {status}{f', having printed: {printed}' if printed else ''}."
            )
        if "unusable" in answer:
            raise ConfigurationError(answer["unusable"])
        return answer

    def _see_whether_locations_are_apart(self) -> None:
        """A store that hangs or dies over this is for the clauses to judge."""
        try:
            self.shares_data = self._ask({"apart": True}, CALLS_WORTH * self._limit)["result"]
        except EndedError as end:
            self._notes = (f"not found out whether locations are apart: {end.sentence}",)
        if self.shares_data:
            self.note = self.shares_data
            Path(self._only_location).mkdir()
            self._stop()

    @property
    def _only_location(self) -> str:
        return str(self._folder / "only-location")

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            with worker:
                self._printed += worker.output()

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Ask the worker, listen to its story, and return its answer. Raises `EndedError` if none comes."""
        story = Story()
        worker = self._running(story)
        ends = time.monotonic() + seconds + _CALLS_TO_END * self._limit
        own_work = elsewhere = 0
        with contextlib.suppress(BrokenPipeError):
            self._asked += 1
            worker.channel.send({**request, "number": self._asked})
        while True:
            is_called = (story.is_in_a_call or elsewhere) and not own_work
            patience = self._limit if is_called else max(self._limit, _TIME_FOR_OWN_WORK)
            try:
                message = worker.channel.receive(patience)
            except TimeoutError:
                if own_work or not story.lines:
                    self._stop()
                    raise EndedError(not_called(patience), story, [], Verdict.NOT_RUN) from None
                raise self._hung(worker, story, patience) from None
            if message is None:
                raise self._ended(worker, story)
            if "result" in message and message["number"] == self._asked:
                self._settle(worker)
                return message
            if time.monotonic() > ends:
                self._stop()
                raise EndedError(not_through(seconds), story, [], Verdict.NOT_RUN)
            if "scenario" in message:
                story = Story(message["scenario"])
                self._progress.scenario(message["scenario"], message["title"])
            elif "step" in message:
                story.tell(message["step"], message["text"])
            elif "own_work" in message:
                own_work += 1 if message["own_work"] else -1
            elif "call_elsewhere" in message:
                elsewhere += 1 if message["call_elsewhere"] else -1
            elif "tally" in message:
                self.on_tally(Tally.from_dict(message["tally"]))

    def _settle(self, worker: HelperProcess) -> None:
        """Wait until nothing of a check is left: what a store leaves running is not held against the next clause.

        A call that was left may still end, and tell its step.
        """
        deadline = time.monotonic() + _TIME_TO_SETTLE
        try:
            while (message := worker.channel.receive(max(0.0, deadline - time.monotonic()))) is not None:
                if "idle" in message:
                    return
        except TimeoutError:
            pass
        self._stop()

    def _hung(self, worker: HelperProcess, story: Story, seconds: float) -> EndedError:
        details = [f"hangs at {line}" for line in worker.where_it_hangs()[:3]]
        what = f"the store did not answer within {seconds:g} s, and was killed"
        self._stop()
        return EndedError(what, story, details)

    def _ended(self, worker: HelperProcess, story: Story) -> EndedError:
        status = describe_exit(worker.wait(_TIME_TO_DIE))
        printed = end_of(worker.output(), _PRINTED_TAIL)
        self._stop()
        return EndedError(f"the store's process {status}", story, [f"printed  {printed}"] if printed else [])

    def _died(self, clause: Clause, end: EndedError, seconds: float, most: int | None) -> ClauseResult:
        number = end.story.scenario
        if self._read is not None and end.last.startswith(READING):
            # Asked no more, so that the store gets a verdict on the other clauses.
            self._read, self._reader = self._read.with_more(0, f"the out-of-band {end.last} ended its process"), ""
            reason = f"the out-of-band reader ended the check, and not the store: {end.sentence}"
            return ClauseResult(clause.id, clause.title, Verdict.VACUOUS, reason, number, seconds)
        if end.verdict is not Verdict.FAIL:
            return ClauseResult(clause.id, clause.title, end.verdict, end.sentence, number, seconds)
        target = password_hidden(self._target)
        replay = replay_line(target, clause.id, self._seed, self._replay_options)
        if most is not None:
            replay = faults_line(target, clause.id, self._seed, most, self._replay_options)
        on_disk = files_in(self._last_location(clause.id))
        details = [*([f"on disk  {on_disk}"] if on_disk else []), *end.details]
        finding = Finding(clause.id, end.sentence, (*shorten(end.story.lines), *details), replay)
        return ClauseResult(clause.id, clause.title, Verdict.FAIL, end.sentence, number, seconds, (finding,))

    def _last_location(self, clause: str) -> Path | None:
        found = (self._folder / f"worker-{self._starts}").glob(f"{clause}-*")
        return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

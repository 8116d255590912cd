"""Running the clauses on one store, whatever the store does: each has a hard time limit and ends with a verdict."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from n00dles.errors import ConfigurationError

from ..verdicts import ClauseResult, Finding, Verdict
from .capabilities import Capability
from .journal import shorten
from .processes import HelperProcess, describe_exit
from .registry import Clause, select
from .report import StoreReport, grade
from .target import Workspace

__all__ = ["DEFAULT_LIMIT", "Progress", "Runner", "check_store", "open_runner"]

DEFAULT_LIMIT = 20.0
_CALLS_WORTH = 10
"""A whole clause may take as long as this many calls at their limit."""
_TIME_TO_SETTLE = 2.0
_TIME_TO_START = 60.0
_TIME_TO_DIE = 5.0
_PRINTED_TAIL = 400


class Progress(Protocol):
    """Who watches a check of a store."""

    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None:
        """The store opens; these clauses (id and title) follow. `note` says what is done with the target."""

    def clause_started(self, clause: str) -> None:
        """A check begins."""

    def scenario(self, number: int, title: str) -> None:
        """A scenario of the check begins."""

    def clause_ended(self, result: ClauseResult) -> None:
        """A check has ended."""

    def probing(self, capability: str) -> None:
        """A capability is probed; all clauses have ended then."""

    def probed(self, capability: Capability) -> None:
        """A probe has ended."""


class _Nobody:
    def started(self, clauses: Sequence[tuple[str, str]], note: str) -> None: ...

    def clause_started(self, clause: str) -> None: ...

    def scenario(self, number: int, title: str) -> None: ...

    def clause_ended(self, result: ClauseResult) -> None: ...

    def probing(self, capability: str) -> None: ...

    def probed(self, capability: Capability) -> None: ...


def check_store(
    target: str,
    *,
    clauses: Iterable[str] = (),
    seed: int = 0,
    limit: float = DEFAULT_LIMIT,
    claims: Path | None = None,
    reader: str | None = None,
    progress: Progress | None = None,
) -> StoreReport:
    """Check a store and return what became of each clause, and what was not tried.

    `target` is a URL, `module:factory`, `path/to/file.py:factory`, or the name of an entry point; `clauses` are ids,
    all if empty, and only then the capabilities are probed. A call of the store that takes longer than `limit` seconds,
    or a clause that takes ten times as long, is killed and FAILs. The seed decides the values that are drawn. `claims`
    is a TOML file (see `claims`), `reader` the `module:function` of an out-of-band reader. Raises `ConfigurationError`
    if the target cannot be opened at all, or the claims or the reader mean nothing, and `KeyError` for an unknown
    clause.
    """
    selected = select(clauses)
    started = time.monotonic()
    with open_runner(target, seed=seed, limit=limit, progress=progress) as runner:
        results = runner.run(selected)
        notes = (runner.note, *runner.notes())
    return StoreReport(target, tuple(results), grade(results), notes, seed, time.monotonic() - started)


@contextmanager
def open_runner(
    target: str,
    *,
    seed: int = 0,
    limit: float = DEFAULT_LIMIT,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Runner]:
    """Open a store and yield what checks it, clause by clause; its processes are ended on leaving.

    Locations are made in `folder`, which is the caller's and is left as it is; without one, in a temporary folder that
    is removed. Raises `ConfigurationError` if the target cannot be opened at all. For the rest see `check_store`.
    """
    with contextlib.ExitStack() as stack:
        root = folder or stack.enter_context(Workspace(target)).root
        runner = stack.enter_context(Runner(target, root, seed, limit, progress or _Nobody()))
        runner.start()
        yield runner


class Runner:
    """Listens to a worker process, and starts another one when the store has ended it."""

    def __init__(self, target: str, folder: Path, seed: int, limit: float, progress: Progress) -> None:
        self.note = ""
        self._target = target
        self._folder = folder
        self._seed = seed
        self._limit = limit
        self._progress = progress
        self._nonce = secrets.token_hex(3)
        self._worker: HelperProcess | None = None
        self._starts = 0
        self._printed = ""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def run(self, clauses: Sequence[Clause]) -> list[ClauseResult]:
        """Check these clauses, one after the other, and tell the progress."""
        self._progress.started([(clause.id, clause.title) for clause in clauses], self.note)
        results = []
        for clause in clauses:
            self._progress.clause_started(clause.id)
            results.append(self.check(clause))
            self._progress.clause_ended(results[-1])
        return results

    def notes(self) -> tuple[str, ...]:
        """Return what is worth knowing besides the verdicts."""
        self._stop()
        if not self._printed.strip():
            return ()
        return (f"printed while it was checked: {self._printed.strip()[-_PRINTED_TAIL:]}",)

    def start(self) -> HelperProcess:
        """Start a worker; the first one also tries whether the store opens at all."""
        if self._worker is not None:
            return self._worker
        self._starts += 1
        folder = self._folder / f"worker-{self._starts}"
        self._worker = HelperProcess("n00dles_testing.conformance.worker", own_group=True)
        start = {
            "target": self._target,
            "locations": str(folder),
            "seed": self._seed,
            "nonce": self._nonce,
            "try_to_open": self._starts == 1,
        }
        try:
            self._worker.channel.receive(_TIME_TO_START)
        except TimeoutError:
            raise ConfigurationError(f"the process for the checks did not start within {_TIME_TO_START:g} s.") from None
        try:
            answer = self._worker.request(start, self._limit)
        except TimeoutError:
            places = "; ".join(self._worker.where_it_hangs()[:2])
            at = f" (it is at {places})" if places else ""
            raise ConfigurationError(f"opening {self._target} did not return within {self._limit:g} s{at}.") from None
        if answer is None:
            status = describe_exit(self._worker.wait(_TIME_TO_DIE))
            printed = self._worker.output().strip()[-_PRINTED_TAIL:]
            raise ConfigurationError(
                f"opening {self._target}: its process {status}{f', having printed: {printed}' if printed else ''}."
            )
        if "unusable" in answer:
            raise ConfigurationError(answer["unusable"])
        self.note = answer["note"]
        return self._worker

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            with worker:
                self._printed += worker.output()

    def check(self, clause: Clause) -> ClauseResult:
        """Have one clause checked; whatever happens to the worker, a result comes out."""
        began = time.monotonic()
        story = _Story()
        worker = self.start()
        with contextlib.suppress(BrokenPipeError):
            worker.channel.send({"clause": clause.id})
        while True:
            left = began + _CALLS_WORTH * self._limit - time.monotonic()
            try:
                message = worker.channel.receive(min(max(0.0, left), self._limit))
            except TimeoutError:
                return self._died(clause, story, began, self._hung(worker, late=left < self._limit))
            if message is None:
                status = describe_exit(worker.wait(_TIME_TO_DIE))
                printed = worker.output().strip()[-_PRINTED_TAIL:]
                details = [f"printed  {printed}"] if printed else []
                return self._died(clause, story, began, (f"the store's process {status}", details))
            if "result" in message:
                self._settle(worker)
                return ClauseResult.from_dict(message["result"]).with_seconds(time.monotonic() - began)
            if "scenario" in message:
                story = _Story(message["scenario"])
                self._progress.scenario(message["scenario"], message["title"])
            else:
                story.steps[message["step"]] = message["text"]

    def _settle(self, worker: HelperProcess) -> None:
        """Wait until nothing of a check is left: what a store leaves running is not held against the next clause."""
        try:
            idle = worker.channel.receive(_TIME_TO_SETTLE)
        except TimeoutError:
            idle = None
        if idle is None:
            self._stop()

    def _hung(self, worker: HelperProcess, *, late: bool) -> tuple[str, list[str]]:
        details = [f"hangs at {line}" for line in worker.where_it_hangs()[:3]]
        if late:
            return f"the clause was not through after {_CALLS_WORTH * self._limit:g} s, and was killed", details
        return f"the store did not answer within {self._limit:g} s, and was killed", details

    def _died(self, clause: Clause, story: _Story, began: float, end: tuple[str, list[str]]) -> ClauseResult:
        what, details = end
        self._stop()
        steps = [story.steps[number] for number in sorted(story.steps)]
        message = f"{what}, during: {steps[-1]}" if steps else what
        replay = f"n00dles-testing check {shlex.quote(self._target)} --clause {clause.id} --seed {self._seed}"
        finding = Finding(clause.id, message, (*shorten(steps), *details), replay)
        seconds = time.monotonic() - began
        return ClauseResult(clause.id, clause.title, Verdict.FAIL, message, story.scenario, seconds, (finding,))


class _Story:
    def __init__(self, scenario: int = 0) -> None:
        self.scenario = scenario
        self.steps: dict[int, str] = {}

"""A fresh interpreter for every life: slower than a fork by an order of magnitude, and free of all it shares.

Forked children have one hash seed, one set of imports and one set of caches in common; here nothing is. It is also what
runs where a process cannot be copied.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict
from itertools import islice
from tempfile import NamedTemporaryFile
from typing import Any

from ..interpreters import start_interpreter
from ..temporary_folder import TemporaryFolder
from .ledger import Entry, read_ledger
from .processes import LIFE_VARIABLE, end_group, end_marked
from .scenario import BackendError, LifeEnd, LifeRequest, PlannedRun, Subject, play_one

__all__ = ["Spawn"]

_CHILD = f"{__package__}.child"
_GRACE_SECONDS = 5.0
"""How much later we end an import that could not end itself."""


class Spawn:
    """Starts fresh interpreters. Starting it imports the target in one; `BackendError` says why that failed.

    With a `description` that another backend has made, nothing is imported for it.
    """

    def __init__(
        self,
        subject: Subject,
        environment: Mapping[str, str] | None = None,
        *,
        start_limit: float = 120.0,
        description: dict[str, Any] | None = None,
    ) -> None:
        self._subject = asdict(subject)
        self._environment = environment
        self._idle = threading.Condition()
        self._running = 0
        self._is_closed = False
        self._alive: set[subprocess.Popen[bytes]] = set()
        self._pool: ThreadPoolExecutor | None = None
        self._folder = TemporaryFolder("n00dles-spawn-")
        try:
            self.description: dict[str, Any] = description or self._describe(start_limit)
        except BaseException:
            self.close()
            raise

    def play(self, scenarios: Iterable[PlannedRun], lanes: int = 1) -> Iterator[tuple[PlannedRun, list[LifeEnd]]]:
        """Live scenarios in fresh interpreters, up to `lanes` at a time."""
        waiting = iter(scenarios)
        with ThreadPoolExecutor(lanes, thread_name_prefix="n00dles-lane") as pool:
            self._pool = pool
            running = {pool.submit(self._play_one, scenario) for scenario in islice(waiting, lanes)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(self._play_one, scenario) for scenario in islice(waiting, len(done))}
                for job in done:
                    yield job.result()

    def _play_one(self, scenario: PlannedRun) -> tuple[PlannedRun, list[LifeEnd]]:
        return scenario, play_one(scenario, self._live)

    def entries(self, scenario: PlannedRun) -> list[Entry]:
        """Return the ledger of a scenario that was lived."""
        return read_ledger(scenario.ledger)

    def close(self) -> None:
        """End every process, and remove the files that requests were passed in.

        Whoever is interrupted comes here while lives go on in threads of the pool. That these threads have ended is
        counted, since their `join` cannot be trusted after a second Ctrl-C: an interrupted one takes its thread for
        ended (Python 3.11 and 3.12, since bpo-45274), and the folder would be removed while a life still writes its
        request there.
        """
        with self._idle:
            self._is_closed = True
            for process in self._alive:
                process.kill()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        with self._idle:
            self._idle.wait_for(lambda: self._running == 0)
        self._folder.remove()

    def _live(self, request: LifeRequest) -> list[LifeEnd]:
        form = {
            "subject": self._subject,
            "scenario": request.scenario.to_dict(),
            "life": request.life,
            "again": request.again,
        }
        started = time.monotonic()
        pid, code, timed_out = self._run(form, request.time_limit)
        last = request.last
        return [
            LifeEnd(
                life=last.life,
                pid=pid,
                point=None if last.point is None else str(last.point),
                signal=-code if code < 0 else None,
                exit_code=code if code >= 0 else None,
                timed_out=timed_out,
                seconds=time.monotonic() - started,
            )
        ]

    def _describe(self, limit: float) -> dict[str, Any]:
        answer = self._folder.path / "description.json"
        _, code, timed_out = self._run(
            {"subject": self._subject, "describe": str(answer), "seconds": limit}, limit + _GRACE_SECONDS
        )
        if timed_out:
            raise BackendError(f"importing {self._subject['target']} took more than {limit:.0f} s, and was ended.")
        if not answer.exists():
            raise BackendError(
                f"the process that imports {self._subject['target']} ended with exit code {code}; what it printed "
                "stands on stderr. Does the module end the process while it is imported?"
            )
        form: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        if "error" in form:
            raise BackendError(form["error"])
        return form

    def _run(self, form: Mapping[str, Any], limit: float) -> tuple[int, int, bool]:
        with self._idle:
            if self._is_closed:
                raise BackendError("the exploration is over, so no more lives are started.")
            with NamedTemporaryFile("w", dir=self._folder.path, suffix=".json", delete=False) as file:
                json.dump(form, file)
            life = uuid.uuid4().hex
            environment = {**(self._environment or {}), LIFE_VARIABLE: life}
            process = start_interpreter(_CHILD, [file.name], environment=environment)
            self._alive.add(process)
            self._running += 1
        try:
            return process.pid, process.wait(limit), False
        except subprocess.TimeoutExpired:
            process.kill()
            return process.pid, process.wait(), True
        finally:
            try:
                if process.poll() is None:  # Ctrl-C: leave nothing running
                    process.kill()
                    process.wait()
                end_group(process.pid)  # what a body has started, too
                end_marked(life)
            finally:
                with self._idle:
                    self._alive.discard(process)
                    self._running -= 1
                    self._idle.notify_all()

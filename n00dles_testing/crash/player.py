"""Having scenarios lived: each gets a run id, a folder and a ledger of its own, and what was paid for it is counted."""

from __future__ import annotations

import itertools
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from .assessment import Played
from .backends import Environment, Setup
from .exploration import ExplorationError
from .history import History
from .ledger import read_ledger
from .points import Point
from .scenario import Backend, Scenario
from .story import tell

__all__ = ["Paid", "Player"]

Paid = Callable[[str], int]
Plan = tuple[Point | None, ...]


class Player:
    """Plays scenarios of one pipeline with the same inputs. `lines` says where each body is halfway, once that is known."""

    def __init__(
        self,
        setup: Setup,
        inputs: dict[str, Any],
        folder: Path,
        *,
        environment: Environment,
        paid: Paid | None,
        time_limit: float,
    ) -> None:
        self.setup = setup
        self.inputs = inputs
        self.lines: dict[str, int] = {}
        self._folder = folder
        self._environment = environment
        self._paid = paid
        self._time_limit = time_limit
        self._numbers = itertools.count(1)
        self._token = uuid.uuid4().hex[:8]

    def undisturbed(self) -> Played:
        """Play a scenario without a kill. Raises `ExplorationError` if the pipeline fails in it."""
        played = self._play(self.setup.backend, (), record=True)
        outcome, end = played.history.outcome, played.history.lives[0].end
        if outcome is not None and outcome["ok"]:
            return played
        if outcome is not None:
            raise ExplorationError(
                f"{self.setup.target} fails undisturbed, so there is nothing to compare with: {outcome['error']}: "
                f"{outcome['message']}\n{outcome['traceback']}"
            )
        timed_out = end is not None and end.timed_out
        how = f"was not done within {self._time_limit:.0f} s" if timed_out else "ended its process without a result"
        story = "\n".join(f"  {line}" for line in tell(played.history))
        raise ExplorationError(f"{self.setup.target} {how}, though nobody disturbed it:\n{story}")

    def play_all(self, plans: Sequence[Plan], workers: int) -> Iterator[Played]:
        """Play scenarios, `workers` at a time, and yield each as it is done."""
        workers = min(workers, len(plans))
        if workers <= 1:
            for plan in plans:
                yield self._play(self.setup.backend, plan)
            return
        idle: SimpleQueue[Backend] = SimpleQueue()
        idle.put(self.setup.backend)
        for _ in range(workers - 1):
            idle.put(self.setup.another())

        def work(plan: Plan) -> Played:
            backend = idle.get()
            try:
                return self._play(backend, plan)
            finally:
                idle.put(backend)

        with ThreadPoolExecutor(workers, thread_name_prefix="n00dles-explorer") as pool:
            jobs = [pool.submit(work, plan) for plan in plans]
            try:
                for job in as_completed(jobs):
                    yield job.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def replay(self, plan: Plan) -> str | None:
        """Return the command that plays `plan` again; None if no command can name the pipeline."""
        if ":" not in self.setup.target:
            return None
        words = ["n00dles-testing", "explore", self.setup.target]
        for name, value in self.inputs.items():
            words += ["--input", f"{name}={value}"]
        for point in plan:
            if point is not None:
                words += ["--at", str(point)]
        return shlex.join(words)

    def _play(self, backend: Backend, plan: Plan, *, record: bool = False) -> Played:
        number = next(self._numbers)
        scenario_id = f"crash-{self._token}-{number}"
        location = self._folder / str(number)
        location.mkdir()
        ledger = self._folder / f"{number}.ledger"
        environment = self._environment(scenario_id) if callable(self._environment) else self._environment or {}
        scenario = Scenario(
            run_id=scenario_id,
            inputs=self.inputs,
            store=self.setup.store_at(str(location)),
            location=str(location),
            ledger=str(ledger),
            plan=plan,
            lines=self.lines,
            environment=dict(environment),
            record=record,
            forget=not self.setup.is_private,
            time_limit=self._time_limit,
        )
        paid_before = self._paid(scenario_id) if self._paid is not None else 0
        started = time.monotonic()
        ends = backend.play(scenario)
        seconds = time.monotonic() - started
        paid = self._paid(scenario_id) - paid_before if self._paid is not None else None
        return Played(plan, History(read_ledger(ledger), ends), paid, seconds)

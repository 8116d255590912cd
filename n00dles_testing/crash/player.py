"""Having scenarios lived: each gets a run id, a folder and a ledger of its own, and what was paid for it is counted."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .assessment import Played
from .backends import Environment, Setup
from .exploration import ExplorationError
from .history import History
from .points import Plan
from .scenario import Backend, PlannedRun
from .story import tell
from .tokens import Token, import_path

__all__ = ["Paid", "Player"]

Paid = Callable[[str], int]
_RUN_ID = "crash"
"""The id of every run that has a store to itself: what a node makes of it is then the same in all of them."""


class Player:
    """Plays scenarios of one pipeline with the same inputs. Ids of scenarios begin with `prefix`."""

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
        self.prefix = f"crash-{uuid.uuid4().hex[:8]}-"
        self._folder = folder
        self._environment = environment
        self._paid = paid
        self._time_limit = time_limit
        self._import_path = import_path()
        self._numbers = itertools.count(1)
        self.bodies = 0
        """How often bodies were run, and no model."""

    def undisturbed(self, *, fresh: bool = False) -> Played:
        """Play a scenario without a kill. Raises `ExplorationError` if the pipeline fails in it.

        With `fresh` it shares no import, hash seed or cache with the others, where the platform lets them share those.
        """
        if fresh and self.setup.fresh is not None:
            backend = self.setup.fresh()
            try:
                played = next(self._play([()], lanes=1, lines={}, record=True, backend=backend))
            finally:
                backend.close()
        else:
            played = next(self._play([()], lanes=1, lines={}, record=True))
        outcome, end = played.history.outcome, played.history.lives[0].end
        if outcome is not None and outcome["ok"]:
            return played
        if outcome is not None:
            raise ExplorationError(self._told(outcome))
        timed_out = end is not None and end.timed_out
        how = "ended its process without a result"
        if timed_out:
            how = f"was not done within {self._time_limit:g} s (time_limit= gives it more)"
        story = "\n".join(f"  {line}" for line in tell(played.history))
        raise ExplorationError(f"{self.setup.target} {how}, though nobody disturbed it:\n{story}")

    def _told(self, outcome: Mapping[str, Any]) -> str:
        """Say why an undisturbed run failed: the fault is in the inputs, in the store, or in the pipeline."""
        target, message = self.setup.target, outcome["message"]
        if outcome["error"] == "InputsError":
            return f"{message} Inputs are given as --input name=value, or as keyword arguments of check."
        if outcome["blame"] == "store":
            return f"the store {self.setup.store_name} cannot be used for {target}: {outcome['error']}: {message}"
        undisturbed = f"{target} fails undisturbed, so there is nothing to compare with:"
        if outcome["blame"] == "node":
            return f"{undisturbed} {outcome['cause']}"
        return f"{undisturbed} {outcome['error']}: {message}"

    def play(self, plans: Iterable[Plan], *, lanes: int, lines: Mapping[str, int] | None = None) -> Iterator[Played]:
        """Play scenarios, `lanes` at a time, and yield each as it is done. `lines` see `PlannedRun`.

        Where what was paid for one scenario cannot be told from what was paid for another, none begins before the last
        one has been counted.
        """
        if self._paid is not None and not callable(self._environment):
            for plan in plans:
                yield from self._play([plan], lanes=1, lines=lines or {})
        else:
            yield from self._play(plans, lanes=lanes, lines=lines or {})

    def _play(
        self,
        plans: Iterable[Plan],
        *,
        lanes: int,
        lines: Mapping[str, int],
        record: bool = False,
        backend: Backend | None = None,
    ) -> Iterator[Played]:
        chosen = backend or self.setup.backend
        begun: dict[str, tuple[Plan, float, int]] = {}

        def scenarios() -> Iterator[PlannedRun]:
            for plan in plans:
                scenario = self._scenario(plan, lines, record=record)
                begun[scenario.id] = (plan, time.monotonic(), self._count_paid(scenario))
                yield scenario

        for scenario, ends in chosen.play(scenarios(), lanes):
            plan, started, before = begun.pop(scenario.id)
            paid = None if self._paid is None else self._count_paid(scenario) - before
            history = History(chosen.entries(scenario), ends)
            self.bodies += sum(call.request is None for call in history.calls)
            yield Played(plan, history, paid, time.monotonic() - started)

    def replay(self, plan: Plan) -> str | None:
        """Return the command that plays `plan` again; None if no command can name the pipeline."""
        setup = self.setup
        if not setup.is_typed:
            return None
        store = None if setup.is_default_store else setup.store_name
        token = Token(setup.target, self.inputs, store, setup.mode, plan, path=self._import_path)
        return f"n00dles-testing replay {token.encode()}"

    def _count_paid(self, scenario: PlannedRun) -> int:
        return 0 if self._paid is None else self._paid(scenario.id)

    def _scenario(self, plan: Plan, lines: Mapping[str, int], *, record: bool) -> PlannedRun:
        number = next(self._numbers)
        scenario_id = f"{self.prefix}{number}"
        location = self._folder / str(number)
        if not self.setup.is_in_memory:
            location.mkdir()
        environment = self._environment(scenario_id) if callable(self._environment) else self._environment or {}
        return PlannedRun(
            id=scenario_id,
            run_id=_RUN_ID if self.setup.is_private else scenario_id,
            inputs=self.inputs,
            store=self.setup.store_at(str(location)),
            location=str(location),
            ledger="" if self.setup.is_in_memory else str(self._folder / f"{number}.ledger"),
            plan=plan,
            lines=lines,
            environment=dict(environment),
            record=record,
            forget=not self.setup.is_private,
            time_limit=self._time_limit,
        )

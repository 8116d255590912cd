"""Kill or disturb a pipeline at each of its crash points, resume it, and judge what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from n00dles.context import stored_inputs
from n00dles.errors import ConfigurationError, SerializationError

from ..on_executors import no_workers
from ..verdicts import Verdict
from .assessment import clause_results
from .backends import Environment, prepare
from .budget import Budget
from .clauses.advice import advice
from .exploration import ExplorationError, ExplorationReport, Progress
from .player import Paid, Player
from .points import How, Plan
from .scenario import BackendError
from .tidiness import tidied
from .trial import Trial
from .undisturbed import observe

__all__ = ["DEFAULT_TIME_LIMIT", "explore"]

_LONGEST_TIME_LIMIT = 86_400.0

DEFAULT_TIME_LIMIT = 30.0
"""Seconds that a life may take."""


def explore(
    target: Any,
    inputs: Mapping[str, Any],
    *,
    store: Any = None,
    mode: str | None = None,
    at: str | Sequence[str] | None = None,
    how: str | Sequence[str] | None = None,
    budget: int | str | None = None,
    plans: Sequence[Plan] | None = None,
    lives: int = 1,
    workers: int | Executor | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    environment: Environment = None,
    paid: Paid | None = None,
    executor: Any = None,
    time_limit: float = DEFAULT_TIME_LIMIT,
    allow_unknown: bool = False,
) -> ExplorationReport:
    """Run `target` undisturbed, then once for every crash point: kill it there, resume it, and judge.

    Bodies are run for real, a few times more often than there are points; `report.bodies` says how often. A process
    that is killed has imported the target anew, so that nothing that was patched in this one is patched there.

    `target` is `module:pipeline`, `path/to/file.py:pipeline`, or a pipeline object. `store` is a URL, a factory target
    (`module:factory`, called with a fresh folder), or an object, which only `mode="in-process"` can use; by default
    each scenario has a SQLite file of its own, or memory in-process. `mode` is "fork" (the default where there is
    fork), "spawn" or "in-process".

    `how` names what is done at the points (see `points.How`), or is "all" of it: a kill, if it is not given. `at` names
    the point or points to try (see `points.choose`), `budget` how many at most (200) or for how long ("30s"; the
    undisturbed runs do not count). `workers` is how many at a time (by default one a processor, at most two), or an
    executor of `concurrent.futures` whose workers live them, as a process pool or Dask have it: in mode "fork" only,
    and a share whose worker is lost is done again here. `plans` are tried instead of every point, each with one point a
    life that is disturbed. With `lives`, so many lives in a row are disturbed: the resumed run too, at each of its own
    points; a `budget` is then shared among the first ones, the second ones and so on. `time_limit` is seconds a life;
    one that takes longer is ended, and judged. The import of the target may take four times as long.

    `environment` is put into every life's environment; a function of a scenario's id gives each its own. `paid` returns
    how many calls the LLM server has been paid for in the scenario of that id. `executor` is another than n00dles' (see
    `life.Executor`), as a target or an object. `allow_unknown` lets a report be `ok` in which a clause is UNKNOWN.

    Raises `ExplorationError` if there is nothing to explore: the target cannot be imported, or fails undisturbed.
    """
    started = time.monotonic()
    if not 0 < time_limit <= _LONGEST_TIME_LIMIT:
        raise ExplorationError(
            f"time_limit={time_limit!r} is no time for a life; it is in seconds, at most {_LONGEST_TIME_LIMIT:g}."
        )
    if lives < 1:
        raise ExplorationError(f"lives={lives} kills nothing; it counts the lives that are killed, from 1.")
    if workers is not None and (refused := no_workers(workers)):
        raise ExplorationError(refused)
    at = [at] if isinstance(at, str) else at
    try:
        hows, allowed = How.read(how, at), Budget.read(budget)
    except ValueError as error:
        raise ExplorationError(str(error)) from error
    try:
        stored = stored_inputs(inputs)
    except SerializationError as error:
        raise ExplorationError(f"{error}. A run keeps its inputs, so they have to be data.") from error
    setup = prepare(target, store=store, mode=mode, environment=environment, executor=executor, time_limit=time_limit)
    if not callable(environment) and (paid is not None or setup.pays_before_death):
        workers = 1  # one count and one armed kill for all, see `Player.play`
    try:
        with tidied(setup) as folder:
            if isinstance(workers, Executor):
                setup.share_out(workers)
                workers = None
            hows = setup.hows(hows)
            player = Player(setup, stored, folder, environment=environment, paid=paid, time_limit=time_limit)
            told = on_progress or _ignore
            told(Progress(0, 0))
            usual = observe(player, hows)
            trial = Trial(player, usual, hows=hows, workers=setup.lanes(workers), on_progress=told)
            begun = time.monotonic()
            first = allowed.share(0, begun, lives)
            trial.as_planned(usual.plans if plans is None else plans, at=at, budget=first)
            trial.more_lives(lives, allowed, begun)
            trial.doubt()
            return _report(player, trial, started, allow_unknown=allow_unknown)
    except (BackendError, ConfigurationError) as error:
        raise ExplorationError(str(error)) from error


def _report(player: Player, trial: Trial, started: float, *, allow_unknown: bool) -> ExplorationReport:
    setup, rows, usual = player.setup, trial.rows, trial.usual
    clauses = clause_results(rows, [run.history for run in usual.runs], usual.baseline, player.replay(()))
    may_run_twice = tuple(advice(trial.histories))
    notes = [*setup.notes, *usual.notes, *trial.notes, *may_run_twice]
    if not setup.is_private and any(row.verdict is not Verdict.PASS for row in rows):
        notes.append(
            f"runs that came to no good end are left in {setup.store_name}; their ids begin with {player.prefix}"
        )
    return ExplorationReport(
        target=setup.target,
        mode=setup.mode,
        store=setup.store_name,
        inputs=player.inputs,
        nodes=tuple(usual.baseline.calls),
        calls=len(usual.runs[0].history.calls),
        paid=usual.paid,
        points=trial.offered,
        left_out=trial.offered - len(rows),
        rows=rows,
        clauses=tuple(clauses),
        notes=tuple(notes),
        workers=trial.workers,
        seconds=time.monotonic() - started,
        scenario_seconds=trial.seconds,
        allow_unknown=allow_unknown,
        bodies=player.bodies,
        may_run_twice=may_run_twice,
        has_models=usual.baseline.requests > 0,
    )


def _ignore(progress: Progress) -> None:
    """Show nothing."""

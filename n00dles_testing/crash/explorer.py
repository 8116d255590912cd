"""Kill a pipeline at each of its crash points, resume it, and judge what came of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from n00dles.context import stored_inputs
from n00dles.errors import ConfigurationError

from ..verdicts import Verdict
from .assessment import Played, assess, clause_results, undisturbed_findings
from .backends import Environment, prepare
from .case import Baseline
from .exploration import ExplorationError, ExplorationReport, ExplorationRow, Progress
from .history import History
from .player import Paid, Player
from .points import OPENING, Kind, Occurrences, Plan, Point, choose, enumerate_points
from .scenario import BackendError

__all__ = ["DEFAULT_TIME_LIMIT", "explore"]

DEFAULT_TIME_LIMIT = 30.0
"""Seconds that a life may take."""


def explore(
    target: Any,
    inputs: Mapping[str, Any],
    *,
    store: Any = None,
    mode: str | None = None,
    at: Sequence[str] | None = None,
    budget: int | None = None,
    plans: Sequence[Plan] | None = None,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    environment: Environment = None,
    paid: Paid | None = None,
    executor: Any = None,
    time_limit: float = DEFAULT_TIME_LIMIT,
) -> ExplorationReport:
    """Run `target` undisturbed, then once for every crash point: kill it there, resume it, and judge.

    `target` is `module:pipeline`, `path/to/file.py:pipeline`, or a pipeline object. `store` is a URL, a factory target
    (`module:factory`, called with a fresh folder), or an object, which only `mode="in-process"` can use; by default
    each scenario has a SQLite file of its own, or memory in-process. `mode` is "fork" (the default where there is
    fork), "spawn" or "in-process".

    `at` names the points to try (see `points.choose`), `budget` how many at most, `workers` how many at a time (by
    default one a processor, at most two). `plans` are tried instead of every crash point, each with one point a life
    that is killed. `time_limit` is seconds a life; one that takes longer is ended, and judged.

    `environment` is put into every life's environment; a function of a scenario's id gives each its own. `paid` returns
    how many calls the LLM server has been paid for in the scenario of that id. `executor` is another than n00dles' (see
    `life.Executor`), as a target or an object.

    Raises `ExplorationError` if there is nothing to explore: the target cannot be imported, or fails undisturbed.
    """
    started = time.monotonic()
    stored = stored_inputs(inputs)
    setup = prepare(target, store=store, mode=mode, environment=environment, executor=executor)
    if paid is not None and not callable(environment):
        workers = 1  # one count for all, see `Player.play`
    try:
        with tempfile.TemporaryDirectory(prefix="n00dles-crash-", ignore_cleanup_errors=True) as folder:
            player = Player(setup, stored, Path(folder), environment=environment, paid=paid, time_limit=time_limit)
            return _explore(
                player,
                at=at,
                budget=budget,
                plans=plans,
                workers=setup.lanes(workers),
                on_progress=on_progress or _ignore,
                started=started,
            )
    except (BackendError, ConfigurationError) as error:
        raise ExplorationError(str(error)) from error
    finally:
        setup.close()


@dataclass(frozen=True, slots=True)
class _Usual:
    """What the pipeline does when nobody disturbs it, twice, and the ways to kill it."""

    runs: tuple[Played, Played]
    baseline: Baseline
    plans: list[Plan]
    notes: list[str]


def _explore(
    player: Player,
    *,
    at: Sequence[str] | None,
    budget: int | None,
    plans: Sequence[Plan] | None,
    workers: int,
    on_progress: Callable[[Progress], None],
    started: float,
) -> ExplorationReport:
    setup = player.setup
    on_progress(Progress(0, 0))
    usual = _usual(player)
    paid = usual.runs[0].paid
    offered = usual.plans if plans is None else list(plans)
    try:
        chosen = choose(offered, at, budget)
    except ValueError as error:
        raise ExplorationError(str(error)) from error
    begun = time.monotonic()
    rows = _rows(player, usual, chosen, workers, on_progress)
    seconds = time.monotonic() - begun
    if not setup.is_private and any(row.verdict is not Verdict.PASS for row in rows):
        usual.notes.append(
            f"runs that came to no good end are left in {setup.store_name}; their ids begin with {player.prefix}"
        )
    undisturbed = [
        finding
        for run in usual.runs
        for finding in undisturbed_findings(run.history, usual.baseline, player.replay(()))
    ]
    return ExplorationReport(
        target=setup.target,
        mode=setup.mode,
        store=setup.store_name,
        inputs=player.inputs,
        nodes=tuple(usual.baseline.calls),
        calls=len(usual.runs[0].history.calls),
        paid=paid,
        points=len(offered),
        left_out=len(offered) - len(chosen),
        rows=tuple(rows),
        clauses=tuple(clause_results(rows, undisturbed, usual.baseline, seconds)),
        notes=(*setup.notes, *usual.notes),
        workers=workers,
        seconds=time.monotonic() - started,
        scenario_seconds=seconds,
    )


def _usual(player: Player) -> _Usual:
    first, second = player.undisturbed(), player.undisturbed()
    needs = {name: node["needs"] for name, node in player.setup.backend.description["nodes"].items()}
    baseline = Baseline(first.history, second.history, needs)
    points, notes = _points(first.history)
    player.lines = _middles(first.history)
    if baseline.requests and not player.setup.pays_before_death:
        notes.append(
            "during a model's node the process dies as the reply has come, paid and not yet used: there is no local "
            "LLM server that could kill it before"
        )
    if baseline.unsettled:
        notes.append(f"{baseline.unsettled}; so whether the output is the same (E04, E05) cannot be told")
    if first.paid is not None and first.paid < baseline.requests:
        notes.append(
            f"the LLM server was paid for {first.paid} calls where the pipeline made {baseline.requests}: it does not "
            "see them all, so what was paid is not to be relied on"
        )
    return _Usual((first, second), baseline, [*((point,) for point in points), *_resumed(player, points)], notes)


def _resumed(player: Player, points: list[Point]) -> list[Plan]:
    """Return the plans for what only a resumed life does: the save with which it begins.

    One is killed after its first save, to see whether there is such a save.
    """
    saved = next((point for point in points if point.kind is Kind.AFTER_SAVE), None)
    if saved is None:
        return []
    (probe,) = player.play([(saved,)], lanes=1)
    return [(saved, point) for point in _passed(probe.history, 2) if point.kind in OPENING]


def _rows(
    player: Player, usual: _Usual, chosen: list[Plan], workers: int, on_progress: Callable[[Progress], None]
) -> list[ExplorationRow]:
    """Try every point. A kill that did not happen gets a second chance: where calls overlap, the order is not given."""
    rows: dict[Plan, ExplorationRow] = {}
    done = 0
    for is_last_chance in (False, True):
        missing = [plan for plan in chosen if plan not in rows or rows[plan].verdict is Verdict.VACUOUS]
        for played in player.play(missing, lanes=workers):
            row = assess(played, usual.baseline, usual.runs[0].paid, player.replay(played.plan))
            rows[played.plan] = row
            if is_last_chance or row.verdict is not Verdict.VACUOUS:
                done += 1
                on_progress(Progress(done, len(chosen), row))
    return [rows[plan] for plan in chosen]


def _points(history: History) -> tuple[list[Point], list[str]]:
    """Return the crash points of an undisturbed run, and what has to be said about those that are not offered."""
    points = _passed(history, 1)
    middles = _middles(history)
    models = {call.node for call in history.calls if call.request is not None}
    hidden = [p for p in points if p.kind is Kind.DURING and p.subject not in models and str(p) not in middles]
    notes = [f"{point} is not offered: no line of its body could be seen (it is not Python code)" for point in hidden]
    return [point for point in points if point not in hidden], notes


def _passed(history: History, life: int) -> list[Point]:
    return enumerate_points(
        (entry["event"] if entry.kind == "event" else entry.kind, entry.data)
        for entry in history.entries
        if entry.life == life
    )


def _middles(history: History) -> dict[str, int]:
    """Return, for each point during a body, which of the lines that it executes is in the middle, counted from 1."""
    occurrences = Occurrences()
    points = [(occurrences.number(Point(Kind.DURING, call.node)), call.lines) for call in history.calls]
    return {str(point): lines // 2 + 1 for point, lines in points if lines}


def _ignore(progress: Progress) -> None:
    """Show nothing."""

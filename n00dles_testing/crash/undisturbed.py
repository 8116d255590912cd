"""What a pipeline does when nobody disturbs it: what all scenarios are held against, and where they can be killed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from .assessment import Played
from .case import Baseline
from .clauses.wording import named
from .exploration import ExplorationError
from .history import History
from .player import Player
from .points import OPENING, How, Kind, Occurrences, Plan, Point, enumerate_points
from .shape import Shape

__all__ = ["Usual", "doubted", "middles", "observe", "points_of_life", "ways_to_disturb"]


_DOUBTS = 3


@dataclass(frozen=True, slots=True)
class Usual:
    """The undisturbed runs (two at least), the ways to kill a run (`plans`), and `lines` as in `PlannedRun`.

    Nothing here changes once it is known.
    """

    runs: tuple[Played, ...]
    baseline: Baseline
    plans: list[Plan]
    lines: dict[str, int]
    notes: list[str]

    @property
    def paid(self) -> int | None:
        """What the LLM server was paid for, None if nobody counts."""
        return self.runs[0].paid

    @property
    def overlaps(self) -> bool:
        """Whether two of its nodes may run at the same time, so that the order of what happens is not given."""
        needs = self.baseline.needs
        return any(
            one not in needs.get(other, ()) and other not in needs.get(one, ())
            for one, other in combinations(self.baseline.calls, 2)
        )


def observe(player: Player, hows: Sequence[How] = (How.KILL,)) -> Usual:
    """Run the pipeline twice, and list where it can be disturbed, as `hows` say.

    The second run shares nothing with the first one: no import, hash seed or cache. Raises `ExplorationError` if one
    fails.
    """
    first = player.undisturbed()
    second = _again(player, first)
    needs = {name: node["needs"] for name, node in player.setup.backend.description["nodes"].items()}
    baseline = Baseline(first.history, [second.history], needs, Shape.of(player.setup.backend.description))
    lines = middles(first.history)
    hidden = [point for point in points_of_life(first.history, 1) if _is_hidden(point, first.history, lines)]
    ways, each_time = (ways_to_disturb(run.history, 1, hows, lines) for run in (first, second))
    plans: list[Plan] = [(point,) for point in ways if point in each_time or not _depends_on_time(point)]
    notes = [f"{point} is not offered: no line of its body could be seen (it is not Python code)" for point in hidden]
    notes += _about_models(player, first, baseline)
    if not baseline.shape.sees_saves and (missing := [node for node in needs if node not in baseline.calls]):
        notes.append(f"{', '.join(f'`{node}`' for node in missing)} was not called, so nothing is said of it")
    return Usual((first, second), baseline, [*plans, *_resumed(player, first.history, hows)], lines, notes)


def _again(player: Player, first: Played) -> Played:
    try:
        # What a process makes anew, a key at import or the hash of a text, is the same in all that are forked from one.
        return player.undisturbed(fresh=True)
    except ExplorationError as error:
        if player.setup.backend.description.get("sees_saves", True) or not first.history.calls:
            raise
        raise ExplorationError(
            f"{error} (This was the second undisturbed run, in a fresh folder. The first one went through, and called "
            f"{named(dict.fromkeys(call.node for call in first.history.calls))}.)"
        ) from error


def doubted(player: Player, usual: Usual) -> Usual:
    """Run the pipeline undisturbed a few times more, until one run differs, and return it with those runs.

    Two runs may be the same by chance: a coin came up twice the same way, a clock of whole seconds had not moved on.
    """
    for _ in range(_DOUBTS):
        if usual.baseline.unsettled_output:
            break
        runs = (*usual.runs, player.undisturbed())
        first, *others = (run.history for run in runs)
        usual = replace(usual, runs=runs, baseline=Baseline(first, others, usual.baseline.needs, usual.baseline.shape))
    return usual


def points_of_life(history: History, life: int, until: float = float("inf")) -> list[Point]:
    """Return the crash points that a life has passed, in order; `until` some time by the clock of the ledger."""
    return enumerate_points(
        (entry["event"] if entry.kind == "event" else entry.kind, entry.data)
        for entry in history.entries
        if entry.life == life and (entry.at < until or entry.kind == "awaits")
    )


def ways_to_disturb(history: History, life: int, hows: Sequence[How], lines: Mapping[str, int]) -> list[Point]:
    """Return where a life that was left alone can be disturbed, and how; nowhere in one after the end of the run.

    `lines` see `PlannedRun`.
    """
    if history.again is not None and history.again.number == life:
        return []
    moments = [point for point in points_of_life(history, life) if not _is_hidden(point, history, lines)]
    in_time = set(points_of_life(history, life, _went_on_until(history, life)))
    return [
        moment.disturbed(how)
        for how in hows
        for moment in moments
        if moment.allows(how) and (how is not How.TIMEOUT or moment in in_time)
    ]


def _depends_on_time(point: Point) -> bool:
    """Whether it may be there in one run and not in the next: a task that finds its work done need not give way."""
    return point.kind is Kind.AWAIT or point.how is How.TIMEOUT


def _went_on_until(history: History, life: int) -> float:
    """Return when the run's task went on for the last time: a time limit that ends later reaches it no more."""
    told = next((entry for entry in history.entries if entry.life == life and entry.kind == "awaits"), None)
    return float("inf") if told is None else float(told["until"])


def _resumed(player: Player, history: History, hows: Sequence[How]) -> list[Plan]:
    """Return the plans for what only a resumed life does: the save with which it begins.

    One is killed after its first save, to see whether there is such a save.
    """
    saved = next((point for point in points_of_life(history, 1) if point.kind is Kind.AFTER_SAVE), None)
    if saved is None:
        return []
    (probe,) = player.play([(saved,)], lanes=1)
    return [(saved, point) for point in ways_to_disturb(probe.history, 2, hows, {}) if point.kind in OPENING]


def _is_hidden(point: Point, history: History, lines: Mapping[str, int]) -> bool:
    """Whether it is during a body of which no line was seen."""
    models = {call.node for call in history.calls if call.request is not None}
    return point.kind is Kind.DURING and point.subject not in models and str(point) not in lines


def middles(history: History) -> dict[str, int]:
    """Return, for each point during a body, which of the lines that it executes is in the middle, counted from 1."""
    occurrences = Occurrences()
    points = [(occurrences.number(Point(Kind.DURING, call.node)), call.lines) for call in history.calls]
    return {str(point): lines // 2 + 1 for point, lines in points if lines}


def _about_models(player: Player, run: Played, baseline: Baseline) -> list[str]:
    notes = []
    if baseline.requests and not player.setup.pays_before_death:
        notes.append(
            "during a model's node the process dies as the reply has come, paid and not yet used: there is no local "
            "LLM server that could kill it before"
        )
    if run.paid is not None and run.paid < baseline.requests:
        notes.append(
            f"the LLM server was paid for {run.paid} calls where the pipeline made {baseline.requests}: it does not "
            "see them all, so what was paid is not to be relied on"
        )
    return notes

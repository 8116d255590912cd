"""Trying plans: each is lived and judged, and shows where its last life can be killed as well."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from ..verdicts import Verdict
from .assessment import TOO_LATE, Played, assess
from .budget import Budget
from .exploration import ExplorationError, ExplorationRow, Progress
from .history import History
from .player import Player
from .points import How, Kind, Plan, choose
from .undisturbed import Usual, doubted, ways_to_disturb

__all__ = ["Trial"]

_COMPARING = ("E04", "E05")


class Trial:
    """All that was tried of one pipeline: `offered` counts the plans there were to choose from."""

    def __init__(
        self,
        player: Player,
        usual: Usual,
        *,
        hows: Sequence[How],
        workers: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.offered = 0
        self.notes: list[str] = []
        self.seconds = 0.0
        self.workers = workers
        self._hows = hows
        self._player = player
        self.usual = usual
        self._on_progress = on_progress
        self._plans: list[Plan] = []
        self._rows: dict[Plan, ExplorationRow] = {}
        self._played: dict[Plan, Played] = {}
        self._later: dict[Plan, list[Plan]] = {}

    @property
    def rows(self) -> tuple[ExplorationRow, ...]:
        """What was tried, in the order of the plans."""
        return tuple(self._rows[plan] for plan in self._plans)

    @property
    def histories(self) -> list[History]:
        """What happened in each of them."""
        return [self._played[plan].history for plan in self._plans]

    def as_planned(self, plans: Sequence[Plan], *, at: Sequence[str] | None, budget: Budget) -> None:
        """Try the chosen ones of `plans`. Raises `ExplorationError` for an entry of `at` that fits none."""
        try:
            chosen = choose(plans, at, budget.scenarios)
        except ValueError as error:
            raise ExplorationError(str(error)) from error
        self._try(chosen, budget, offered=len(plans))

    def more_lives(self, lives: int, budget: Budget, started: float) -> None:
        """Disturb what was resumed as well, at each of its own points, until `lives` in a row were disturbed.

        `started` is when the first plan was begun, in monotonic seconds.
        """
        for killed in range(1, lives):
            earlier = [plan for plan in self._plans if len(plan) == killed]
            further = [plan for each in earlier for plan in self._later[each] if plan not in self._rows]
            left = budget.share(len(self._plans), started, lives - killed)
            if further:
                self._try(choose(further, None, left.scenarios), left, offered=len(further), lives=killed + 1)
        self._leave_out_what_does_not_repeat()

    def _note_what_is_not_kept(self, played: Played) -> None:
        note = (
            "the store keeps no more than the four fields that it must, so whether tokens and attempts add up over all "
            "lives (a part of E05) cannot be told"
        )
        if not played.history.keeps_counts and note not in self.notes:
            self.notes.append(note)

    def _try(self, plans: list[Plan], budget: Budget, *, offered: int, lives: int = 1) -> None:
        """Live and judge `plans`; a kill or disturbance that did not happen gets another chance.

        `lives` is how many in a row they end, as the user counts.
        """
        begun = time.monotonic()
        self.offered += offered
        done, expected = len(self._rows), len(self._rows) + len(plans)
        given: Iterable[Plan] = budget.spend(plans)
        for is_last_chance in (False, False, True):
            tried, missing = given, []
            for played in self._player.play(tried, lanes=self.workers, lines=self.usual.lines):
                row = self._assess(played)
                if row.verdict is Verdict.VACUOUS and not is_last_chance:
                    missing.append(played.plan)
                    continue
                self._note_what_is_not_kept(played)
                self._later[played.plan] = self._next_kills(played)
                done += 1
                self._on_progress(Progress(done, expected, row))
            given = missing
        in_time = [plan for plan in plans if plan in self._rows]
        self._plans += in_time
        if len(in_time) < len(plans):
            self.notes.append(
                f"the budget of {budget.given} left no time for {len(plans) - len(in_time)} scenarios"
                f"{f' in which {lives} lives in a row are ended' if lives > 1 else ''}"
            )
        self.seconds += time.monotonic() - begun

    def _assess(self, played: Played) -> ExplorationRow:
        row = assess(played, self.usual.baseline, self.usual.paid, self._player.replay(played.plan))
        self._played[played.plan], self._rows[played.plan] = played, row
        return row

    def doubt(self) -> None:
        """Where a scenario differs from the undisturbed runs, see if these differ by themselves, and judge anew."""
        if not any(finding.clause in _COMPARING for row in self.rows for finding in row.findings):
            return
        self.usual = doubted(self._player, self.usual)
        if self.usual.baseline.unsettled:
            for plan in self._plans:
                self._assess(self._played[plan])

    def _next_kills(self, played: Played) -> list[Plan]:
        """Return the plans that begin like this one, and kill the life that was left alone in it."""
        points = ways_to_disturb(played.history, len(played.plan) + 1, self._hows, self.usual.lines)
        return [(*played.plan, point) for point in points]

    def _leave_out_what_does_not_repeat(self) -> None:
        """Drop what is not there in each run, and could not be hit: the report says so.

        In chains siblings do not end in the same order each time; a task that waits for a thread need not give way, if
        that is done already, and then its awaits are fewer.
        """
        gone: dict[str, list[Plan]] = {}
        for row in self.rows:
            if row.verdict is Verdict.VACUOUS and (reason := self._may_not_repeat(row)):
                gone.setdefault(reason, []).append(row.plan)
        for reason, plans in gone.items():
            self._plans = [plan for plan in self._plans if plan not in plans]
            others = f" (and {len(plans) - 1} like it)" if len(plans) > 1 else ""
            self.notes.append(f"{' and then '.join(map(str, plans[0]))}{others} was not tried: {reason}")

    def _may_not_repeat(self, row: ExplorationRow) -> str:
        plan = row.plan
        if (len(plan) > 1 or plan[-1].kind is Kind.DURING_SAVE) and self.usual.overlaps:
            return "siblings end in another order each time, and it could not be repeated"
        if any(point.how is not How.KILL for point in plan[:-1]):
            return "how far a life comes that is told to end is not the same each time, and it could not be repeated"
        if plan[-1].kind is Kind.AWAIT:
            return "the run does not give way equally often each time, and it could not be repeated"
        if plan[-1].how is How.TIMEOUT and row.reason.endswith(TOO_LATE):
            return "the run was over before the time limit could end it"
        return ""

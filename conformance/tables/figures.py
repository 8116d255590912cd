"""The figures of the tables, from the outcomes of the cells."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from n00dles_testing.conformance.mutants import Mutant
from n00dles_testing.verdicts import Verdict

from .cells import Cell, Subjects
from .results import Outcome

__all__ = ["ClauseRow", "MutantRow", "StoreRow", "Tables"]

Outcomes = Mapping[Cell, Outcome]
_CALM = (Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)


@dataclass(frozen=True, slots=True)
class MutantRow:
    """One broken store: in how many of the runs its clause caught it, and which unrelated clause did.

    `also` has the clauses that are said to see it as well, with the runs in which they did.
    """

    mutant: str
    breaks: str
    caught: int
    runs: int
    also: dict[str, int]
    unrelated: tuple[str, ...]

    @classmethod
    def of(cls, mutant: Mutant, subjects: Subjects, outcomes: Outcomes, seeds: int) -> MutantRow:
        """Count."""

        def caught(clause: str) -> int:
            verdicts = [outcomes[Cell(seed, mutant.target, clause)].verdict for seed in range(seeds)]
            return verdicts.count(Verdict.FAIL)

        others = mutant.let_pass_by(subjects.clauses)
        return cls(
            mutant.target.rpartition("mutants.")[2],
            mutant.breaks,
            caught(mutant.breaks),
            seeds,
            {clause: caught(clause) for clause in mutant.also_breaks},
            tuple(each for each in others if outcomes[Cell(0, mutant.target, each)].verdict not in _CALM),
        )

    @property
    def ok(self) -> bool:
        """Whether it was caught in every run, by what is said to catch it and by nothing else."""
        return self.caught == self.runs and not self.unrelated and all(each == self.runs for each in self.also.values())


@dataclass(frozen=True, slots=True)
class StoreRow:
    """One correct store: in how many runs nothing was found, and what was found in the others.

    `passed` and `left_out` count the clauses of the first run: those that passed, and those that do not apply or could
    not be run.
    """

    store: str
    clean: int
    runs: int
    passed: int
    left_out: tuple[str, ...]
    alarms: tuple[str, ...]

    @classmethod
    def of(cls, store: str, subjects: Subjects, outcomes: Outcomes, seeds: int) -> StoreRow:
        """Count."""
        cells = [[Cell(seed, store, clause) for clause in subjects.clauses] for seed in range(seeds)]
        bad = [[cell for cell in run if outcomes[cell].verdict not in _CALM] for run in cells]
        first = [outcomes[cell].verdict for cell in cells[0]]
        return cls(
            store.rpartition("mutants.")[2],
            sum(not run for run in bad),
            seeds,
            first.count(Verdict.PASS),
            tuple(
                clause
                for clause, verdict in zip(subjects.clauses, first, strict=True)
                if verdict in (Verdict.NOT_APPLICABLE, Verdict.NOT_RUN)
            ),
            tuple(
                f"{cell.clause} {outcomes[cell].verdict.value}, seed {cell.seed}: {outcomes[cell].reason}"
                for run in bad
                for cell in run
            ),
        )

    @property
    def ok(self) -> bool:
        """Whether every run was clean, and one clause at least has passed."""
        return self.clean == self.runs and self.passed > 0


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """One clause: how many broken stores it is to catch, how many others it let pass, and what it costs.

    `seconds` is the median on the correct stores, `slowest` the most of any of them.
    """

    clause: str
    mutants: int
    others: int
    seconds: float
    slowest: float

    @classmethod
    def of(cls, clause: str, subjects: Subjects, outcomes: Outcomes, seeds: int) -> ClauseRow:
        """Count."""
        own = [each for each in subjects.mutants if clause in each.caught_by]
        others = [each for each in subjects.mutants if each.let_pass_by([clause])]
        costs = [outcomes[Cell(seed, store, clause)].seconds for store in subjects.stores for seed in range(seeds)]
        median, slowest = (statistics.median(costs), max(costs)) if costs else (0.0, 0.0)
        return cls(clause, len(own), len(others), round(median, 2), round(slowest, 2))


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything that is written down."""

    mutants: tuple[MutantRow, ...]
    stores: tuple[StoreRow, ...]
    clauses: tuple[ClauseRow, ...]
    seeds: int

    @classmethod
    def of(cls, subjects: Subjects, outcomes: Outcomes, seeds: int) -> Tables:
        """Work out the figures. Raises `KeyError` if a cell is missing."""
        return cls(
            tuple(MutantRow.of(each, subjects, outcomes, seeds) for each in subjects.mutants),
            tuple(StoreRow.of(each, subjects, outcomes, seeds) for each in subjects.stores),
            tuple(ClauseRow.of(each, subjects, outcomes, seeds) for each in subjects.clauses),
            seeds,
        )

    @property
    def ok(self) -> bool:
        """Whether there is nothing to mend."""
        rows: Sequence[MutantRow | StoreRow] = [*self.mutants, *self.stores]
        return bool(rows) and all(row.ok for row in rows)

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return asdict(self)

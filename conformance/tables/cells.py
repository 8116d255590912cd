"""What has to be tried: cells of one store, one clause and one seed, in jobs of one store and one seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from n00dles_testing.conformance import implemented
from n00dles_testing.conformance.mutants import Mutant, all_mutants, correct_stores

__all__ = ["MEMORY", "SQLITE", "Cell", "Job", "Subjects", "jobs"]

MEMORY = "memory://"
SQLITE = "sqlite:///runs.db"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One clause, checked on one store with one seed."""

    seed: int
    store: str
    clause: str


@dataclass(frozen=True, slots=True)
class Job:
    """The cells of one store and one seed, checked in one go."""

    store: str
    seed: int
    clauses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subjects:
    """What the tables are about: the broken stores, the correct ones (targets), and the clauses."""

    mutants: tuple[Mutant, ...]
    stores: tuple[str, ...]
    clauses: tuple[str, ...]

    @classmethod
    def of_today(cls) -> Subjects:
        """Return all that the code has now."""
        clauses = tuple(clause.id for clause in implemented())
        return cls(all_mutants(), (MEMORY, SQLITE, *correct_stores()), clauses)

    def named(self, names: Iterable[str]) -> Subjects:
        """Return those whose target has one of these words in it, or that break a clause of that name."""
        words = list(names)
        return Subjects(
            tuple(each for each in self.mutants if each.breaks in words or any(word in each.target for word in words)),
            tuple(each for each in self.stores if any(word in each for word in words)),
            self.clauses,
        )

    def cells(self, seeds: int) -> set[Cell]:
        """Return what the tables need.

        A mutant meets the clauses that must catch it with every seed, and with the first one those that must let it
        pass; a correct store meets all clauses with every seed.
        """
        wanted = set()
        for mutant in self.mutants:
            wanted |= {Cell(seed, mutant.target, clause) for seed in range(seeds) for clause in mutant.caught_by}
            wanted |= {Cell(0, mutant.target, clause) for clause in mutant.let_pass_by(self.clauses)}
        return wanted | {
            Cell(seed, store, clause) for store in self.stores for seed in range(seeds) for clause in self.clauses
        }


def jobs(cells: Iterable[Cell]) -> Iterator[Job]:
    """Group cells into jobs, seed after seed: a table that is interrupted knows something of everything."""
    for (seed, store), group in groupby(sorted(cells), key=lambda cell: (cell.seed, cell.store)):
        yield Job(store, seed, tuple(cell.clause for cell in group))

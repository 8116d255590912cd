"""The clause registry: a clause is a function with an id, and its docstring is its documentation.

    @clause("S05", level=1, title="no aliasing")
    async def no_aliasing(subject: StoreSubject) -> None:
        \"\"\"A save is a snapshot and a load is a copy. …\"\"\"

The check gets a `StoreSubject`, opens a scenario for each thing that it tries, and raises `BrokenClause` (through
`expect`) where the store does not keep the clause. It returns nothing; having compared nothing is VACUOUS.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .contract import LEVELS, clauses_of_level

if TYPE_CHECKING:
    from .subject import StoreSubject

__all__ = ["Check", "Clause", "clause", "implemented", "select"]

Check = Callable[["StoreSubject"], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of the contract and its check. One that is `graded` is told by a figure, and failed by no store.

    One that `sets_the_clock` leaves its process with what a library has kept of that clock, as the last time that it
    has used: no other clause is checked there.
    """

    id: str
    level: int
    title: str
    check: Check
    graded: bool = False
    sets_the_clock: bool = False

    @property
    def documentation(self) -> str:
        """The check's docstring: what is promised, why it matters, where it was seen broken."""
        return inspect.getdoc(self.check) or ""


_SHOWN = 40
_clauses: dict[str, Clause] = {}


def clause(
    id: str, *, level: int, title: str, graded: bool = False, sets_the_clock: bool = False
) -> Callable[[Check], Check]:
    """Register a check as that of the clause `id`.

    Raises `ValueError` for an id that the contract does not have at this level, a second check of the same id, or a
    check without a docstring.
    """

    def register(check: Check) -> Check:
        if id not in clauses_of_level(level):
            raise ValueError(f"the contract has no clause {id!r} at level {level}")
        if id in _clauses:
            raise ValueError(f"clause {id} has a check already: {_clauses[id].check!r}")
        if not check.__doc__ and __doc__ is not None:  # -OO removes all
            raise ValueError(f"the check of clause {id} has no docstring; it is the clause's documentation")
        _clauses[id] = Clause(id, level, title, check, graded, sets_the_clock)
        return check

    return register


def implemented() -> tuple[Clause, ...]:
    """Return every clause that has a check, in the order of the contract."""
    from . import clauses  # the checks import this module

    for module in pkgutil.iter_modules(clauses.__path__):
        importlib.import_module(f"{clauses.__name__}.{module.name}")
    order = [id_ for _, ids in LEVELS.values() for id_ in ids]
    return tuple(_clauses[id_] for id_ in order if id_ in _clauses)


def _with_two_digits(id_: str) -> str:
    """Return S05 for S5, S-5 and S005."""
    letter, number = id_[:1], id_[1:].lstrip("-_ 0")
    return f"{letter}{number.zfill(2)}"


def select(ids: Iterable[str] = ()) -> tuple[Clause, ...]:
    """Return the clauses of these ids (any case), or all; in the order of the contract.

    Raises `KeyError` with a message for an id that is unknown or has no check yet.
    """
    wanted = {id_.upper() for id_ in ids}
    known = implemented()
    missing = wanted - {each.id for each in known}
    if missing:
        meant = [each.id for each in known if each.id in {_with_two_digits(id_) for id_ in missing}]
        hint = f". Did you mean {', '.join(meant)}? This" if meant else "; this"
        shown = ", ".join(id_[:_SHOWN] or "an empty id" for id_ in sorted(missing))
        raise KeyError(f"no check for {shown}{hint} release checks {', '.join(each.id for each in known)}")
    return tuple(each for each in known if not wanted or each.id in wanted)

"""How a check says what it expects, and how a broken expectation becomes a story."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .records import Record, difference, show

__all__ = ["BrokenClause", "Expectation", "MisuseError", "NotApplicableError", "UnknownOutcomeError", "VacuousCheck"]


class BrokenClause(AssertionError):
    """The store under test does not keep the clause.

    `message` is one sentence; `details` are labelled lines for the story: what was stored, allowed, came, and why.
    `picture` is what a report can draw of it, see `Finding`.
    """

    def __init__(
        self, message: str, details: tuple[tuple[str, str], ...] = (), picture: dict[str, Any] | None = None
    ) -> None:
        self.message = message
        self.details = details
        self.picture = picture
        super().__init__(message)


class VacuousCheck(AssertionError):
    """A check could not do what it is about: a kill that did not happen. An error, never a pass."""


class MisuseError(Exception):
    """A check cannot be run on this subject; the message says what is missing and how to provide it."""


class NotApplicableError(Exception):
    """The subject does not offer what the clause is about; the message is the proof, from a probe."""


class UnknownOutcomeError(Exception):
    """A check has run and cannot tell: what it would judge by is itself not known. The message says why."""


class Expectation:
    """What came, and what was allowed: `expect(came).equals(wanted, because="…")`.

    `compared` is called when the two are compared: an expectation that is never compared shows nothing.
    """

    def __init__(self, came: Any, compared: Callable[[], None] = lambda: None) -> None:
        self.came = came
        self._compared = compared

    def equals(self, wanted: Any, *, because: str, what: str = "") -> None:
        """Return if `came` equals `wanted` in value and type. Raises `BrokenClause` naming the first difference."""
        __tracebackhide__ = True
        self._compared()
        found = difference(wanted, self.came, what or "it")
        if found is None:
            return
        details = [("allowed", _shown(wanted)), ("came", _shown(self.came)), ("why", because)]
        raise BrokenClause(found, tuple(details))

    def has_no(self, fault: str | None, *, allowed: str, because: str) -> None:
        """Return if a check that judges by more than equality has found no fault. Raises `BrokenClause` with it."""
        __tracebackhide__ = True
        self._compared()
        if fault is not None:
            raise BrokenClause(fault, (("allowed", allowed), ("came", _shown(self.came)), ("why", because)))

    def is_one_of(self, wanted: Sequence[Any], *, because: str, what: str = "") -> None:
        """Return if `came` equals one of `wanted`. Raises `BrokenClause` naming the difference to each."""
        __tracebackhide__ = True
        self._compared()
        found = [difference(each, self.came, what or "it") for each in wanted]
        if None in found:
            return
        allowed = " — or ".join(_shown(each) for each in wanted)
        details = [("allowed", allowed), ("came", _shown(self.came)), ("why", because)]
        raise BrokenClause(" — and ".join(dict.fromkeys(map(str, found))), tuple(details))


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Record) else show(value)

"""The rules by which what was loaded after a power loss is compared with what had been acknowledged (clause P02)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .faults_found import Fault, FaultKind

__all__ = ["Expected", "compare"]

Value = TypeVar("Value")


@dataclass(frozen=True)
class Expected(Generic[Value]):
    """What one record should hold in the course of a workload, whose calls follow one another.

    `before` is what it held before the workload, `after` what it holds once each call is done, in the order of the
    calls; a call is named by the word of its marks ("INV word", "ACK word"). Values are compared by `==`; a record that
    is not there, or is deleted, is a value as well. Calls that do not touch this record are left out.
    """

    before: Value
    after: Mapping[str, Value]

    def allowed(self, acknowledged: Sequence[str], invoked: Sequence[str]) -> list[Value]:
        """Return what may be found: what the last acknowledged call left, or a call that was invoked after it."""
        calls = list(self.after)
        last = max((calls.index(call) for call in acknowledged if call in self.after), default=-1)
        settled = self.before if last < 0 else self.after[calls[last]]
        return [settled, *(self.after[call] for call in calls[last + 1 :] if call in invoked)]

    def older(self, acknowledged: Sequence[str]) -> list[Value]:
        """Return what was there once, before the last acknowledged call."""
        calls = list(self.after)
        last = max((calls.index(call) for call in acknowledged if call in self.after), default=-1)
        return [self.before, *(self.after[call] for call in calls[:last])] if last >= 0 else []


def compare(
    loaded: Value,
    expected: Expected[Value],
    acknowledged: Sequence[str],
    invoked: Sequence[str],
    *,
    is_mixed: Callable[[Value], bool] = lambda value: False,
    named: Callable[[Value], str] = repr,
) -> Fault | None:
    """Say what is wrong with a loaded value: older than what was acknowledged, mixed of several, or never saved.

    `acknowledged` and `invoked` are the words of the calls that had returned, and that had begun, when the power went.
    `is_mixed` tells a value that has parts of several; `named` says a value in words.
    """
    allowed = expected.allowed(acknowledged, invoked)
    if any(loaded == value for value in allowed):
        return None
    told = list(dict.fromkeys(map(named, allowed)))
    came = f"{named(loaded)} was loaded; only {' or '.join(told)} {'is' if len(told) == 1 else 'are'} allowed"
    if any(loaded == value for value in expected.older(acknowledged)):
        is_back = allowed[0] == expected.before  # only a deletion leads back to that
        what = "its deletion was acknowledged, and it is back" if is_back else "an acknowledged save is gone"
        return Fault(FaultKind.LOST_ACK, f"{what}: {came}")
    if is_mixed(loaded):
        return Fault(FaultKind.MIXED, f"parts of several saves are mixed: {came}")
    return Fault(FaultKind.PHANTOM, f"what was loaded was never saved: {came}")

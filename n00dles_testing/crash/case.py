"""What stands before the judge: one scenario, and what the same pipeline does when nobody disturbs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .history import Call, History, same
from .typed import show

__all__ = ["Baseline", "Case", "Check", "Clause"]


class Baseline:
    """What an undisturbed run did, and whether a second one did the same. `needs` is by node, see `dependencies`."""

    def __init__(self, history: History, again: History, needs: Mapping[str, list[str]]) -> None:
        self.history = history
        self.needs = needs
        self.calls: dict[str, list[Call]] = {}
        for call in history.calls:
            self.calls.setdefault(call.node, []).append(call)
        self.outcome = history.outcome or {}
        self.unsettled = _unsettled(history, again)
        """Why two undisturbed runs cannot be compared, in a sentence; empty if they were the same."""

    @property
    def requests(self) -> int:
        """How many requests were sent to an LLM."""
        return sum(call.request is not None for call in self.history.calls)


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario before the judge. `paid` are calls that the LLM server counted, here and undisturbed, if it did."""

    history: History
    baseline: Baseline
    paid: tuple[int, int] | None = None


Check = Callable[[Case], Iterator[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of the contract with its check, which yields each fault as a sentence and the reason behind it.

    `occasions` counts how often a scenario could have broken it (see `occasions`); `without` says in words what it
    means that none could. `comparing` ones need two undisturbed runs to be the same.
    """

    id: str
    title: str
    check: Check
    occasions: Callable[[Case], int]
    without: str
    comparing: bool = False


def _unsettled(one: History, other: History) -> str:
    """Say which node first returned something else in a second undisturbed run."""
    for call in one.calls:
        outputs = [c.output for c in other.calls if c.node == call.node and c.succeeded]
        if call.succeeded and not any(same(call.output, output) for output in outputs):
            seen = f"{show(call.output)}, then {show(outputs[0])}" if outputs else f"{show(call.output)}, then nothing"
            return f"two undisturbed runs differ: `{call.node}` returned {seen}"
    if not same((one.outcome or {}).get("output"), (other.outcome or {}).get("output")):
        return "two undisturbed runs returned different outputs, though every node returned the same"
    return ""

"""What stands before the judge: one scenario, and what the same pipeline does when nobody disturbs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .history import Call, History, same
from .shape import Shape
from .typed import show

__all__ = ["Baseline", "Case", "Check", "Clause"]

_UNKNOWN = Shape()


class Baseline:
    """What an undisturbed run did, and whether all `others` did the same. It need not have ended well.

    `needs` is by node, see `dependencies`; of a pipeline whose `shape` is not known, less can be told.
    """

    def __init__(
        self,
        history: History,
        others: Sequence[History],
        needs: Mapping[str, list[str]],
        shape: Shape = _UNKNOWN,
    ) -> None:
        self.history = history
        self.needs = needs
        self.shape = shape
        self.calls: dict[str, list[Call]] = {}
        for call in history.calls:
            self.calls.setdefault(call.node, []).append(call)
        self.outcome = history.outcome or {}
        self.finishes = bool(self.outcome.get("ok"))
        self.unsettled = next(filter(None, (_unsettled(history, other) for other in others)), "")
        """Why two undisturbed runs cannot be compared, in a sentence; empty if they were the same."""
        same_end = all(_same_output(history, other) for other in others)
        self.unsettled_output = "" if same_end else self.unsettled
        """The same for what the whole run returns: it may be the same though a node's output is not."""

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

    `check` is None for a clause that cannot be told from one scenario. `occasions` counts how often a scenario could
    have broken it; `without` says in words what it means that none could. `unsettled` says why it cannot be told with a
    baseline, if so. `undisturbed` means that an undisturbed run can break it as well. `sharpens` names the clauses of
    which it is a special case or a cause, so that a fault may break both.

    `meaning` (paragraphs, separated by an empty line), `seen_in` (public reports of the fault) and `fix` are its
    documentation; they are read from the docstring of its module, see `clauses.documentation`.
    """

    id: str
    title: str
    meaning: str
    fix: str
    seen_in: tuple[str, ...] = ()
    check: Check | None = None
    occasions: Callable[[Case], int] = lambda case: 0
    without: str = ""
    unsettled: Callable[[Baseline], str] = lambda baseline: ""
    undisturbed: bool = False
    sharpens: tuple[str, ...] = ()

    def faults(self, case: Case) -> Iterator[tuple[str, str]]:
        """Yield what its check finds; nothing if it has none, or if it cannot be told of this subject or baseline."""
        if self.check is not None and self.id not in case.baseline.shape.untold and not self.unsettled(case.baseline):
            yield from self.check(case)


def _unsettled(one: History, other: History) -> str:
    """Say which node first returned something else in a second undisturbed run."""
    for call in one.calls:
        outputs = [c.output for c in other.calls if c.node == call.node and c.succeeded]
        if call.succeeded and not any(same(call.output, output) for output in outputs):
            seen = f"{show(call.output)}, then {show(outputs[0])}" if outputs else f"{show(call.output)}, then nothing"
            return f"two undisturbed runs differ: `{call.node}` returned {seen}"
    if not _same_output(one, other):
        return "two undisturbed runs returned different outputs, though every node returned the same"
    return ""


def _same_output(one: History, other: History) -> bool:
    return same((one.outcome or {}).get("output"), (other.outcome or {}).get("output"))

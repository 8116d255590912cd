"""Histories written by hand, entry by entry, to be held against one clause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from n00dles_testing.crash.case import Baseline, Case
from n00dles_testing.crash.clauses import CLAUSES
from n00dles_testing.crash.history import History
from n00dles_testing.crash.ledger import Entry
from n00dles_testing.crash.scenario import LifeEnd
from n00dles_testing.crash.shape import Branching, Group, Shape
from n00dles_testing.crash.typed import encode

__all__ = ["Tale", "case", "fan_out", "faults", "occasions", "two_routes", "undisturbed"]

CHAIN = {"a": [], "b": ["a"], "c": ["a", "b"]}


class Tale:
    """What happened, told life by life; each method tells one thing and returns the tale."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._ends: list[LifeEnd] = []
        self._life = 0
        self._saves = 0
        self._point: str | None = None

    @property
    def history(self) -> History:
        return History(self._entries, self._ends)

    def life(
        self,
        point: str | None = None,
        *,
        stored: list[str] | None = None,
        status: str = "running",
        same_process: bool = False,
        again: bool = False,
    ) -> Self:
        """A life begins, to be disturbed at `point`, with these nodes in the store (None: it is the first)."""
        self._life += 1
        self._saves, self._point = 0, point
        self._write("life_start", point=point, again=again, same_process=same_process)
        if stored is not None:
            self._write("disk", exists=True, nodes=stored, status=status)
        return self

    def calls(
        self, node: str, output: Any = "x", *, error: str | None = None, key: str | None = None, **got: Any
    ) -> Self:
        """A node is called, and returns or raises."""
        return self.starts(node, key=key, **got).ends(node, output, error=error)

    def starts(self, node: str, *, key: str | None = None, **got: Any) -> Self:
        return self._write(
            "call_start", node=node, key=key, arguments={name: encode(value) for name, value in got.items()}
        )

    def ends(self, node: str, output: Any = "x", *, error: str | None = None) -> Self:
        if error is not None:
            return self._write("call_end", node=node, error=error)
        return self._write("call_end", node=node, output=encode(output))

    def says(self, event: str, node: str = "", **fields: Any) -> Self:
        return self._write("event", event=event, **({"node": node} if node else {}), **fields)

    def saves(self, *nodes: str, error: str | None = None) -> Self:
        """All these nodes are handed to the store, which acknowledges or fails."""
        return self.begins_save(*nodes).ends_save(*nodes, error=error)

    def begins_save(self, *nodes: str) -> Self:
        self._saves += 1
        return self._write("save_start", save=self._saves, nodes=list(nodes), new=list(nodes[-1:]))

    def ends_save(self, *nodes: str, error: str | None = None) -> Self:
        failed = {} if error is None else {"error": error}
        return self._write("save_end", save=self._saves, nodes=list(nodes), new=list(nodes[-1:]), **failed)

    def at_point(self) -> Self:
        return self._write("at_point", point=self._point, where="")

    def dies(self) -> Self:
        """The process is killed at its point, or dies by itself if it had none."""
        if self._point is not None:
            self.at_point()
        return self._ended(signal=9)

    def hangs(self) -> Self:
        return self._ended(signal=9, timed_out=True)

    def finishes(self, output: Any = "x", **fields: Any) -> Self:
        said = {"tokens": 0, "traces": [], **fields}
        return self._write("outcome", how="run", ok=True, output=encode(output), **said)._ended(exit_code=0)

    def fails(self, error: str = "PipelineFailure", message: str = "", *, blame: str = "node", cause: str = "") -> Self:
        self._write("outcome", how="run", ok=False, error=error, message=message, blame=blame, cause=cause)
        return self._ended(exit_code=3)

    def is_told_to_end(self, error: str = "CancelledError", **left: Any) -> Self:
        """The run has ended as it was told to."""
        self.fails(error, blame="")
        return self._write("left", **{"delivered": True, "tasks": [], "saves": 0, "threads": [], **left})

    def _write(self, kind: str, **data: Any) -> Self:
        self._entries.append(Entry(kind, self._life, 1, float(len(self._entries)), data))
        return self

    def _ended(self, *, signal: int | None = None, exit_code: int | None = None, timed_out: bool = False) -> Self:
        self._ends.append(LifeEnd(self._life, 1, self._point, signal, exit_code, timed_out, 30.0))
        return self


def undisturbed() -> Tale:
    """`a`, `b` and `c`, one after the other."""
    tale = Tale().life()
    for number, node in enumerate("abc", 1):
        tale.calls(node).saves(*"abc"[:number])
    return tale.finishes("x")


def case(
    tale: Tale,
    *,
    usual: Tale | None = None,
    needs: Mapping[str, list[str]] = CHAIN,
    shape: Shape | None = None,
) -> Case:
    """Return the tale as a case, compared with `usual`, by default an undisturbed chain of `a`, `b` and `c`."""
    known = shape or Shape(attempts=dict.fromkeys(needs, 3))
    return Case(tale.history, Baseline((usual or undisturbed()).history, [], needs, known))


def faults(clause: str, told: Case) -> list[str]:
    """Return what the check of a clause has to say."""
    found = next(each for each in CLAUSES if each.id == clause)
    return [message for message, _ in found.faults(told)]


def occasions(clause: str, told: Case) -> int:
    """Return how often the case could have broken a clause."""
    return next(each for each in CLAUSES if each.id == clause).occasions(told)


def fan_out(limit: int | None = None, *, attempts: int = 3) -> Shape:
    """`a` and `b` side by side, then `c`."""
    group = Group("parallel[a,b]", {"a": ("a",), "b": ("b",)}, limit)
    return Shape(groups=(group,), attempts=dict.fromkeys("abc", attempts))


def two_routes() -> Shape:
    """`a`, then either `b` or `c`."""
    return Shape(branches=(Branching("branch[b,c]", {"b": ("b",), "c": ("c",)}),), attempts=dict.fromkeys("abc", 3))


BESIDE = {"a": [], "b": [], "c": ["a", "b"]}
"""Needs of `fan_out`."""

EITHER = {"a": [], "b": ["a"], "c": ["a"]}
"""Needs of `two_routes`."""

"""What a store does before the power fails: steps on a few runs, and what each run holds once each step is done.

A step is a call of the store (see `player`). There are two workloads, both short, so
that all that a disk may hold can be tried. One has everything in it once, on a fresh location: creations, saves, a
large one, two at the same time, a close, another opening, a delete, and a creation in its place. The other is for syncs
that fail: whoever gets an error saves again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..powerloss.comparing import Expected
from .player import Step
from .records import Record, show
from .traced import token_of

__all__ = ["AFTERWARDS", "Workload", "everything_once", "saved_again"]

AFTERWARDS = {"zz": {"text": "saved after the power loss"}}
"""What is saved then, to see whether that works."""
_PAGES = 3
_PAGE = 4096
_LARGE = "purr, " * (_PAGES * _PAGE // len("purr, ")) + "purr"
"""A text over several pages: of such a one a part may be lost, and a page that is written again is not all of it."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The steps, and the inputs of each run."""

    steps: tuple[Step, ...]
    inputs: dict[str, dict[str, Any]]

    def expected(self) -> dict[str, Expected[Record]]:
        """Return what each run holds in the course of the steps. One that is not there is created by looking for it."""
        return {run_id: self._expected(run_id) for run_id in self.inputs}

    def titles(self) -> list[str]:
        """Return each step as it is told: `save 'r2' with {…}`."""
        return [_title(step) for step in self.steps]

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {"steps": list(self.steps), "inputs": self.inputs}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Workload:
        """Read what `to_dict` made."""
        return cls(tuple(form["steps"]), form["inputs"])

    def _expected(self, run_id: str) -> Expected[Record]:
        record = created = Record.new(self.inputs[run_id])
        after = {}
        for number, step in enumerate(self.steps):
            if step.get("run") != run_id:
                continue
            if step["do"] == "save":
                record = record.after(step["outputs"])
            elif step["do"] == "delete":
                record = created
            after[token_of(number)] = record
        return Expected(created, after)


def everything_once(first: str, second: str) -> Workload:
    """Return the workload on two runs with these ids, of which the second is deleted in the end, and created again.

    Two saves are made at the same time: a store may let them share a sync, and must not take one for its own that had
    begun before. What is created in the end is shorter than what was there.
    """
    cats, dogs = {"topic": "cats"}, {"topic": "dogs"}
    steps: list[Step] = [
        _create(first, cats),
        _save(first, {"a1": {"text": "cats purr"}}),
        _create(second, dogs),
        _save(second, {"b1": {"text": _LARGE}}),
        _save(first, {"a2": {"text": "cats hunt"}}),
        {**_save(second, {"b2": {"text": "dogs bark"}}), "together": True},
        {"do": "close"},
        _create(first, cats),
        _save(first, {"a3": {"text": "cats sleep"}}),
        {"do": "delete", "run": second},
        _create(second, dogs),
        {"do": "close"},
    ]
    return Workload(tuple(steps), {first: cats, second: dogs})


def saved_again(run_id: str) -> Workload:
    """Return a workload on one run, in which each call is made twice, as if the first had failed."""
    cats = {"topic": "cats"}
    steps: list[Step] = [_create(run_id, cats), _create(run_id, cats)]
    for node, text in (("a1", _LARGE), ("a2", "cats sleep")):
        steps += [_save(run_id, {node: {"text": text}})] * 2
    return Workload((*steps, {"do": "close"}), {run_id: cats})


def _create(run_id: str, inputs: dict[str, Any]) -> Step:
    return {"do": "load_or_create", "run": run_id, "inputs": inputs}


def _save(run_id: str, outputs: dict[str, Any]) -> Step:
    return {"do": "save", "run": run_id, "outputs": outputs}


def _title(step: Step) -> str:
    if step["do"] == "close":
        return "close()"
    outputs = f" with {show(step['outputs'])}" if "outputs" in step else ""
    meanwhile = ", while the call before it goes on" if step.get("together") else ""
    return f"{step['do']}({step['run']!r}){outputs}{meanwhile}"

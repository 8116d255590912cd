"""What a store can do beyond its three methods: claimed by its author, found by a probe, or both, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

__all__ = ["CAPABILITIES", "Capability", "Outcome"]

CAPABILITIES: dict[str, str] = {
    "durable": "a run that one process has saved is found by another",
    "shared": "two processes that have a location open at once see each other's acknowledged saves",
    "load": "load(run_id) reads a run, and creates none",
    "list_runs": "list_runs() names the runs that are stored, and no other",
    "prune": "prune(older_than=seconds) removes finished runs that are older, and no other",
    "leases": "acquire, renew and release let one holder at a time carry a run on",
}
"""Each capability that can be claimed, and what its probe asks."""


class Outcome(StrEnum):
    """What a probe has seen. The value is how it is printed."""

    FOUND = "found"
    """It was called, and did what n00dles expects of it."""

    ABSENT = "not found"
    """The store does not offer it: there is no such method, or one that only raises `NotImplementedError`."""

    BROKEN = "found, and wrong"
    """It is offered, and does not do what n00dles expects of it."""

    UNUSABLE = "found, but cannot be called as n00dles would"
    """It is offered under another signature, or with other results than n00dles could use: no fault by itself."""

    UNTOLD = "not probed"
    """It could not be found out here; the proof says why."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability of one store: whether it is `claimed`, what the probe has seen, and its `proof` in a sentence."""

    name: str
    claimed: bool
    outcome: Outcome
    proof: str

    @property
    def ok(self) -> bool:
        """False if the store claims what the probe denies. What is not claimed is reported, and fails nothing."""
        return not self.claimed or self.outcome in (Outcome.FOUND, Outcome.UNTOLD)

    @property
    def verdict(self) -> str:
        """Both in a few words, as `claimed and found`, `claimed, and denied by the probe` or `found, not claimed`."""
        if not self.ok:
            return "claimed, and denied by the probe"
        if self.claimed:
            return f"claimed and {self.outcome.value}" if self.outcome is Outcome.FOUND else "claimed, not probed"
        if self.outcome is Outcome.ABSENT:
            return "neither claimed nor found"
        return f"{self.outcome.value}, not claimed" if self.outcome is not Outcome.UNTOLD else self.outcome.value

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types, with `verdict` and `ok`."""
        return {
            "name": self.name,
            "claimed": self.claimed,
            "outcome": self.outcome.value,
            "proof": self.proof,
            "verdict": self.verdict,
            "ok": self.ok,
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read what `to_dict` made."""
        return cls(form["name"], form["claimed"], Outcome(form["outcome"]), form["proof"])

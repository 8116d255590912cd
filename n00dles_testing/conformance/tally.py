"""How many disturbances of one deed were tried, out of how many moments, and what they have shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from ..verdicts import Verdict

__all__ = ["Tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What a clause has done to one deed.

    `calls` is how many system calls on files of the location the kernel has told of in it, None if they were not
    traced; `moments` is how many disturbances there were to choose from, and `tried` how many of them happened.
    `faults` counts the scenarios that found something.
    """

    clause: str
    deed: str
    calls: int | None
    moments: int
    tried: int
    faults: int

    @property
    def verdict(self) -> Verdict:
        """FAIL if anything was found; VACUOUS if nothing of what there was to try has happened."""
        if self.faults:
            return Verdict.FAIL
        if self.tried:
            return Verdict.PASS
        return Verdict.VACUOUS if self.moments else Verdict.NOT_APPLICABLE

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types, with the `verdict`."""
        return {**asdict(self), "verdict": self.verdict.value}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Self:
        """Read what `to_dict` made."""
        return cls(**{name: value for name, value in form.items() if name != "verdict"})

"""One scenario of an exploration, as a report shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..verdicts import Verdict

__all__ = ["ReportRow"]


@dataclass(frozen=True, slots=True)
class ReportRow:
    """Where a run was killed, by what, and what became of it.

    `killed_by` is empty if nothing was killed. `on_disk` names the nodes whose outputs were stored at the kill, and is
    None if not even the run was, or if `disk_note` says otherwise. `paid_calls` counts all calls over all lives,
    `re_calls` those of nodes that were complete already. `same_output` is None if there was nothing to compare.
    """

    point: str
    killed_by: str
    on_disk: tuple[str, ...] | None
    paid_calls: int
    re_calls: int
    same_output: bool | None
    verdict: Verdict
    disk_note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
        return {
            **asdict(self),
            "on_disk": None if self.on_disk is None else list(self.on_disk),
            "verdict": self.verdict.value,
        }

"""The work file: what each cell came to, a line of JSON each, so that an interrupted table goes on where it was.

A line counts only for the sources that it was made with: their digest stands in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from n00dles_testing.verdicts import Verdict

from .cells import Cell

__all__ = ["Outcome", "WorkFile", "digest_of_sources"]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("n00dles", "n00dles_testing")
_TELLS_ONLY = ("n00dles_testing/report/", "n00dles_testing/llm/", "n00dles_testing/command_", "n00dles_testing/cli.py")
"""What shows results or reads a command line has no part in them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one cell."""

    verdict: Verdict
    reason: str
    seconds: float


class WorkFile:
    """Outcomes by cell, kept in a file to which each one is appended."""

    def __init__(self, path: Path, digest: str) -> None:
        """Read what is there already; lines of other sources, and one that was torn, are passed over."""
        self.outcomes: dict[Cell, Outcome] = {}
        self.path = path
        self.digest = digest
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines():
            self._read(line)
        if text and not text.endswith("\n"):
            self._append("\n")

    def add(self, found: Iterable[tuple[Cell, Outcome]]) -> None:
        """Keep outcomes, in memory and in the file."""
        found = list(found)
        self.outcomes.update(found)
        self._append("".join(self._line(cell, outcome) for cell, outcome in found))

    def _line(self, cell: Cell, outcome: Outcome) -> str:
        form = {
            "store": cell.store,
            "clause": cell.clause,
            "seed": cell.seed,
            "digest": self.digest,
            "verdict": outcome.verdict.value,
            "reason": outcome.reason,
            "seconds": round(outcome.seconds, 3),
        }
        return json.dumps(form) + "\n"

    def _read(self, line: str) -> None:
        try:
            form = json.loads(line)
            if form["digest"] != self.digest:
                return
            outcome = Outcome(Verdict(form["verdict"]), form["reason"], form["seconds"])
            self.outcomes[Cell(form["seed"], form["store"], form["clause"])] = outcome
        except (ValueError, KeyError, TypeError):
            return

    def _append(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)


def digest_of_sources() -> str:
    """Return what changes with everything that a verdict may depend on: the Python files of both packages."""
    digest = hashlib.sha256()
    for path in sorted(file for package in _PACKAGES for file in (_ROOT / package).rglob("*.py")):
        name = path.relative_to(_ROOT).as_posix()
        if not name.startswith(_TELLS_ONLY):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]

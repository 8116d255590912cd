"""Stores that break C01: acknowledged saves are there after close and reopen, and in another process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .correct import AppendOnlyLog, JSONFiles, replace_file

__all__ = ["CompactsWhatItOpened", "NamesFilesByHash", "StripsOnDisk", "TidiesUpAtTheTenthOpening"]

_OPENINGS = 9


class CompactsWhatItOpened(AppendOnlyLog):
    """Compacts the log on close, from a snapshot taken when it was opened.

    A kill does no harm, a proper shutdown loses everything since the start. What is lost anyway, the clauses about
    kills and faults cannot try.
    """

    breaks: ClassVar[str | None] = "C01"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.snapshot = dict(self.runs)

    def close(self) -> None:
        """Write the snapshot over the log."""
        super().close()
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.snapshot.items()))


class NamesFilesByHash(JSONFiles):
    """Names files by `hash(run_id)`, which Python salts anew in every process.

    All is well until the process restarts. A killed process is another process too, so C02 sees it as well; and what is
    lost anyway, the clauses about kills and faults cannot try.
    """

    breaks: ClassVar[str | None] = "C01"
    also_breaks: ClassVar[tuple[str, ...]] = ("C02",)

    def path(self, run_id: str) -> Path:
        """Return a file that only this process will find again."""
        return self.folder / f"{hash(run_id):x}.json"


class StripsOnDisk(AppendOnlyLog):
    """Answers from memory, and cleans texts on their way to and from the disk: the difference shows after a restart."""

    breaks: ClassVar[str | None] = "C01"

    def replay(self, text: str) -> None:
        """Read what was written, which is less than was saved."""
        super().replay(text)
        self.runs = {run_id: self.cleaned(record) for run_id, record in self.runs.items()}

    def cleaned(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record as such a file holds it."""
        outputs = record["completed"].items()
        return {**record, "completed": {node: _stripped(output) for node, output in outputs}}


def _stripped(output: Any) -> Any:
    return output.strip() if isinstance(output, str) else output


class TidiesUpAtTheTenthOpening(JSONFiles):
    """Removes runs without outputs when the location has been opened ten times: what has just begun is no rubbish."""

    breaks: ClassVar[str | None] = "C01"

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        with self.lock:
            opened = self.folder / "opened"
            count = int(opened.read_text()) if opened.exists() else 0
            replace_file(opened, str(count + 1))
            for path in self.folder.glob("*.json") if count >= _OPENINGS else ():
                if not json.loads(path.read_text())["order"]:
                    path.unlink()

"""A store that only an out-of-band reader can tell from a correct one, and the reader."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .correct import JSONFiles

__all__ = ["SpoolsElsewhere", "read_json_file"]


def read_json_file(location: str, run_id: str) -> Any:
    """Read the file of a run with the json module alone, as another program would; for all that keep `JSONFiles`."""
    path = Path(location, f"{run_id.encode().hex()}.json")
    return json.loads(path.read_text()) if path.exists() else None


class SpoolsElsewhere(JSONFiles):
    """Acknowledges a save when it is in a spool on the temporary disk, and writes it to its place at the next call.

    Every load comes through that next call, so whoever asks the store sees what he saved, in this process and in every
    other; a backup of the location, or the next machine, does not.
    """

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        self.spool = Path(tempfile.gettempdir(), f"n00dles-spool-{name}.json")

    def read(self, run_id: str) -> Any:
        """Write what is in the spool; then read."""
        self.flush()
        return super().read(run_id)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write to the spool."""
        self.flush()
        aside = self.spool.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps([run_id, record]))
        aside.replace(self.spool)

    def delete(self, run_id: str) -> None:
        """Write what is in the spool; then remove the run."""
        with self.lock:
            self.flush()
            super().delete(run_id)

    def flush(self) -> None:
        """Move the spool to its place."""
        if self.spool.exists():
            super().write(*json.loads(self.spool.read_text()))
            self.spool.unlink(missing_ok=True)

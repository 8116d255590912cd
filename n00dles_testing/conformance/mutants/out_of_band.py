"""A store that only an out-of-band reader can tell from a correct one, and the reader."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .correct import JSONFiles, replace_file

__all__ = ["SpoolsElsewhere", "read_json_file"]

_TEMPORARY = tempfile.gettempdir()


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
        self.spool = Path(_TEMPORARY, f"n00dles-spool-{name}.json")

    def read(self, run_id: str) -> Any:
        """Write what is in the spool; then read."""
        with self.alone():
            return super().read(run_id)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        """Write to the spool."""
        with self.alone():
            replace_file(self.spool, json.dumps([run_id, record]))

    def delete(self, run_id: str) -> None:
        """Write what is in the spool; then remove the run."""
        with self.alone():
            super().delete(run_id)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads and processes away, and move what is in the spool to its place."""
        with self.lock, self.spool.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.spool.exists():
                super().write(*json.loads(self.spool.read_text()))
                self.spool.unlink()
            yield

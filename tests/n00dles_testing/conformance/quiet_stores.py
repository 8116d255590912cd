"""Stores that only look as if something piled up, and some where it does."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.mutants.s07 import MissesWhatIsGone


class EndsAMomentLater(JSONFiles):
    """Tells its thread to end, and does not wait for it."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.is_over = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        self.is_over.wait()
        time.sleep(0.3)

    def close(self) -> None:
        self.is_over.set()


class MarksWhatIsDeleted(JSONFiles):
    """Leaves an empty file for each deleted run, and so knows which ids are used up."""

    def delete(self, run_id: str) -> None:
        super().delete(run_id)
        self.path(run_id).with_suffix(".deleted").touch()


class IsForOneProcess(JSONFiles):
    """Locks its folder from the opening to the close."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.held = Path(folder, "owner").open("w")  # noqa: SIM115 - held until the close
        try:
            fcntl.flock(self.held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.held.close()
            raise

    def close(self) -> None:
        self.held.close()


class TakesItsTime(MissesWhatIsGone):
    """Nor must it be asked to delete the runs of the cycles that it has not come to."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        time.sleep(0.05)


class LeavesTemporaryFiles(JSONFiles):
    def write(self, run_id: str, record: dict[str, Any]) -> None:
        descriptor, _ = tempfile.mkstemp()
        os.close(descriptor)
        super().write(run_id, record)

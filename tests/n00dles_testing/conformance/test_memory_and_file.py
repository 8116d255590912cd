"""What a store has in memory after a fault, and what a fresh process finds in its files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.clauses import c04_faults
from n00dles_testing.conformance.mutants.correct import FilesWithRevisions, JSONFiles, merged
from n00dles_testing.conformance.nursery import Nursery
from n00dles_testing.conformance.subject import StoreSubject
from n00dles_testing.conformance.target import StoreTarget
from n00dles_testing.tracing import why_not
from n00dles_testing.verdicts import Finding

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

MUTANTS = "n00dles_testing.conformance.mutants"
SAVE = "a later save"
RENAME = {"by": "fail", "number": 1, "fault": "ENOSPC", "lasting": False, "kinds": ["name"]}
SYNC_OF_THE_FOLDER = {"by": "fail", "number": 2, "fault": "EIO", "lasting": False, "kinds": ["sync"]}


class Silent:
    def scenario(self, number: int, title: str) -> None: ...

    def step(self, number: int, text: str) -> None: ...


class SkipsWhatItHasSaved(JSONFiles):
    """Takes down what it saves before it does, and does not save the same again."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.saved: dict[str, Any] = {}

    def save(self, run_id: str, context: Any) -> None:
        if self.saved.get(run_id) == context.completed:
            return
        self.saved[run_id] = dict(context.completed)
        super().save(run_id, context)


class ForgetsAfterAFailure(JSONFiles):
    """Keeps runs in memory, and reads them again after an error."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.memory: dict[str, Any] = {}

    def read(self, run_id: str) -> Any:
        if run_id not in self.memory:
            self.memory[run_id] = super().read(run_id)
        found = self.memory[run_id]
        return None if found is None else merged(found, found)

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        self.memory.pop(run_id, None)
        super().write(run_id, record)


class AcknowledgesFromMemory(ForgetsAfterAFailure):
    """Logs that it could not write, and has it in memory."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        with suppress(OSError):
            super().write(run_id, record)
        self.memory[run_id] = record


def findings(target: str, disturbance: dict[str, Any], folder: Path) -> list[Finding]:
    """Have a save of a store met by a fault, and return what was found."""
    nursery = Nursery(target)
    memory = {"nursery": nursery, "durability": (True, [], True)}
    subject = StoreSubject(
        StoreTarget.parse(target), folder, clause="C04", seed=0, nonce="test", listener=Silent(), memory=memory
    )
    where = "system call 6, fsync of ., failing" if "sync" in disturbance["kinds"] else "system call 5, rename, failing"
    try:
        assert asyncio.run(c04_faults._meets(subject, SAVE, where, disturbance, traced=True))
    finally:
        nursery.close()
    return subject.findings


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (f"{MUTANTS}.c04:ChangesItsMemoryFirst", "looked at by a fresh process"),
        (f"{MUTANTS}.c04:SkipsWhatItHasInMemory", "looked at by a fresh process"),
        (f"{__file__}:SkipsWhatItHasSaved", "made again"),
        (f"{__file__}:AcknowledgesFromMemory", "looked at by a fresh process"),
    ],
)
def test_after_a_save_that_raised_the_memory_must_not_differ_from_the_file(
    target: str, told: str, tmp_path: Path
) -> None:
    [finding] = findings(target, RENAME, tmp_path)

    assert finding.story[0] == f"scenario a later save, system call 5, rename, failing, and {told}"
    assert finding.story[-1].startswith("fix      change the memory after the file")


@pytest.mark.parametrize("store", [JSONFiles, FilesWithRevisions, ForgetsAfterAFailure])
@pytest.mark.parametrize("disturbance", [RENAME, SYNC_OF_THE_FOLDER], ids=["not done", "done"])
def test_a_store_that_reads_its_file_again_passes_whether_the_save_was_done_or_not(
    store: type[JSONFiles], disturbance: dict[str, Any], tmp_path: Path
) -> None:
    assert findings(f"{__file__}:{store.__name__}", disturbance, tmp_path) == []

"""The parts of a stored run, as a context hands them to its store and gets them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["NodeRecord", "RunHead", "SaveBatch", "Status", "StoredOutput", "StoredRevision"]

Status = Literal["waiting", "running", "finished", "failed"]
"""A run is waiting from its submission to its first life. One that is running and that nobody holds was interrupted."""


@dataclass(slots=True)
class NodeRecord:
    """What one node has cost so far, over all lives, as far as it was saved.

    `attempts` counts calls, the failed ones included; one that a kill has cut short was not saved and is not counted.

    `spent` are the failed attempts that count against its retries; a failure that was reported sets them to 0.
    """

    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: float = 0.0
    error: str | None = None
    spent: int = 0

    def copy(self) -> NodeRecord:
        """Return the same figures in an object of their own."""
        return NodeRecord(
            self.attempts, self.input_tokens, self.output_tokens, self.duration_ms, self.error, self.spent
        )


class StoredOutput(NamedTuple):
    """One completed node, as a store keeps it: `output` is JSON text, `position` counts from 0."""

    node: str
    position: int
    output: str
    record: NodeRecord


class StoredRevision(NamedTuple):
    """What a store knows of the last save of a run; see `stores.fencing`."""

    incarnation: str
    revision: int
    save_id: str


class RunHead(NamedTuple):
    """What is stored of a run besides its inputs, outputs and signature; see `PipelineContext` for the fields.

    `unfinished` is JSON text: the records of nodes that were called and have no output.
    """

    status: Status
    pipeline: str | None
    lives: int
    stalled: int
    elapsed_ms: float
    error: str | None
    created_at: float
    updated_at: float
    unfinished: str


class SaveBatch(NamedTuple):
    """What one save has to make durable: a snapshot, so that the run may go on while it is written.

    A store writes `outputs` and `head` (and `signature`, unless it is None: unchanged) if the stored revision is
    `revision` and the stored incarnation is `incarnation`; the record then is at revision `revision + 1`. `save_id`
    tells a save whose reply was lost from somebody else's. `completed` is how many outputs the record then has in all;
    `number` counts the snapshots of a context, so that an older one does not land behind a newer one.
    """

    save_id: str
    revision: int
    incarnation: str
    head: RunHead
    completed: int
    outputs: tuple[StoredOutput, ...]
    signature: str | None
    serial: int
    number: int

    @property
    def stored_revision(self) -> StoredRevision:
        """What the store knows of the run once it holds this batch."""
        return StoredRevision(self.incarnation, self.revision + 1, self.save_id)

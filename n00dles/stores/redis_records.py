"""How one run lies in Redis, and how a context becomes fields of it and comes back.

A run is one hash. Its outputs are the fields `0`, `1`, … in completion order; `inputs` and `signature` stand beside
them, and `head` says how many outputs there are. The head is also the fence: it is only written over by who has read,
or written, exactly this one. A save writes its new outputs and a head, however long the run is.

The name of a run in its keys is a digest of its id, which may be longer and stranger than a key should be; the id
itself is in the field `id`. Runs are spread over a number of hash tags, so that a cluster spreads them over its nodes
while a run and the indexes that name it stay on one.

Every value begins with a checksum over itself, its field and its run, so that a flipped bit or a value of another run
is found at load, not used. Behind it is the JSON text of this package, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, get_args

from ..context import PipelineContext
from ..errors import StateStoreError, StoreVersionError
from ..records import NodeRecord, RunHead, SaveBatch, Status, StoredRevision
from ..serialization import dumps, loads
from .base import RunSummary
from .fencing import check_whole
from .head_text import head_text, record_text
from .sealed_text import damaged, opened, sealed

__all__ = [
    "BUCKETS",
    "Handle",
    "Head",
    "RunKeys",
    "created_fields",
    "index_keys",
    "read_run",
    "run_keys",
    "saved_fields",
    "summary_of",
]

SCHEMA = 1

BUCKETS = 64
"""Over how many hash tags runs are spread. It is part of the format: another number would not find the runs."""


_LARGEST = 512 * 1024 * 1024
"""Bytes that a value may have, unless the server is told otherwise (proto-max-bulk-len)."""

_STATUSES: tuple[Status, ...] = get_args(Status)


class RunKeys:
    """The keys of one run."""

    def __init__(self, prefix: str, run_id: str) -> None:
        self.name = blake2b(run_id.encode(), digest_size=20).hexdigest()
        self._tag = _tag(prefix, int(self.name[:8], 16) % BUCKETS)
        self.run = f"{self._tag}run:{self.name}"
        self.lease = f"{self._tag}lease:{self.name}"

    def index(self, status: str) -> str:
        """Return the key of the index of a status, as far as it is about the runs with this one's tag."""
        return f"{self._tag}{status}"

    def indexes(self, first: Status = "running") -> list[str]:
        """Return the keys of all its indexes, that of `first` before the others."""
        return [self.index(status) for status in sorted(_STATUSES, key=lambda status: status != first)]


@lru_cache(maxsize=1024)
def run_keys(prefix: str, run_id: str) -> RunKeys:
    """Return the keys of a run. A save asks for them each time, and only the first one pays for the digest."""
    return RunKeys(prefix, run_id)


def index_keys(prefix: str, status: Status | None) -> Iterator[tuple[str, str]]:
    """Yield the key of each index of a status (None: of all), and what comes before a name in the key of its run."""
    for bucket in range(BUCKETS):
        tag = _tag(prefix, bucket)
        for each in (status,) if status else _STATUSES:
            yield f"{tag}{each}", f"{tag}run:"


def _tag(prefix: str, bucket: int) -> str:
    return f"{{{prefix}{bucket:02x}}}:"


class Head(NamedTuple):
    """A stored head. `text` is what is stored, and stands for it when it is compared."""

    text: bytes
    stored: StoredRevision
    completed: int
    head: RunHead

    @classmethod
    def of(cls, run_id: str, batch: SaveBatch) -> Head:
        """Return the head of a run that holds `batch`."""
        stored = batch.stored_revision
        content = (
            f'[{SCHEMA},{dumps(stored.incarnation)},{stored.revision},"{stored.save_id}",{batch.completed},'
            f"{head_text(batch.head)}]"
        )
        return cls(sealed(run_id, "head", content), stored, batch.completed, batch.head)

    @classmethod
    def read(cls, run_id: str, text: bytes) -> Head:
        """Return the head that was stored. Raises `CorruptCheckpointError`, or `StoreVersionError`."""
        content = loads(opened(run_id, "head", text))
        if content[0] != SCHEMA:
            raise StoreVersionError(
                f"the record of run {run_id!r} has version {content[0]}, and this release reads {SCHEMA}. It is left "
                "as it is; upgrade this package, or use another store.",
                run_id=run_id,
            )
        return cls(text, StoredRevision(*content[1:4]), content[4], RunHead(*content[5:]))


def created_fields(context: PipelineContext, batch: SaveBatch, head: Head) -> list[bytes | str]:
    """Return all fields of a run that is to be created, and their values, by turns."""
    run_id = context.run_id
    signature = batch.signature if batch.signature is not None else dumps(list(context.signature))
    return [
        *("id", run_id),
        *("inputs", sealed(run_id, f"inputs {batch.incarnation}", dumps(context.inputs))),
        *("signature", sealed(run_id, f"signature {batch.incarnation}", signature)),
        *_outputs(run_id, batch, 0),
        *("head", head.text),
    ]


def saved_fields(run_id: str, batch: SaveBatch, before: Head) -> list[bytes | str]:
    """Return the fields that a save writes besides the head, and their values, by turns. Raises `StateStoreError`."""
    fields = _outputs(run_id, batch, before.completed)
    if batch.signature is not None:
        fields += ["signature", sealed(run_id, f"signature {batch.incarnation}", batch.signature)]
    return fields


def _outputs(run_id: str, batch: SaveBatch, first: int) -> list[bytes | str]:
    """Return the outputs of `batch`, which have to be all from position `first` on."""
    check_whole(run_id, batch, first)
    fields: list[bytes | str] = []
    for node, position, output, record in batch.outputs:
        about = f"[{dumps(node)},{record_text(record)}]"
        value = sealed(run_id, f"{position} {batch.incarnation}", f"{about}\n{output}")
        if len(value) > _LARGEST:
            raise StateStoreError(
                f"run {run_id!r} was not saved: the output of node {node!r} has {len(value):,} bytes, and a Redis "
                f"server takes at most {_LARGEST:,}. Keep what is so large elsewhere, and return where it is.",
                run_id=run_id,
            )
        fields += [str(position), value]
    return fields


def read_run(run_id: str, fields: Mapping[bytes, bytes]) -> PipelineContext:
    """Return the run that a hash holds. Raises `CorruptCheckpointError` if a part of it is damaged or missing."""
    try:
        return _read(run_id, fields)
    except KeyError as error:
        raise damaged(run_id, f"its field {error.args[0].decode()!r} is missing") from None
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise damaged(run_id, f"{type(error).__name__}: {error}") from error


def _read(run_id: str, fields: Mapping[bytes, bytes]) -> PipelineContext:
    head = Head.read(run_id, fields[b"head"])
    if fields[b"id"] != run_id.encode():
        raise damaged(run_id, "it belongs to another run")
    incarnation = head.stored.incarnation
    extra = len(fields) - len((b"head", b"id", b"inputs", b"signature")) - head.completed
    if extra > 0:
        raise damaged(run_id, f"it has {extra} more fields than it should")
    context = PipelineContext.assemble(
        run_id,
        loads(opened(run_id, f"inputs {incarnation}", fields[b"inputs"])),
        (_output(run_id, position, incarnation, fields[b"%d" % position]) for position in range(head.completed)),
        head.head,
        signature=loads(opened(run_id, f"signature {incarnation}", fields[b"signature"])),
        revision=head.stored.revision,
        incarnation=incarnation,
    )
    context.handle = Handle(head)
    return context


class Handle(NamedTuple):
    """What a context remembers of its run: the head that its next save continues, and saves whose end is unknown."""

    head: Head
    doubts: tuple[tuple[Head, SaveBatch], ...] = ()


def summary_of(run_id: bytes | None, text: bytes | None, saved_at: float) -> RunSummary | None:
    """Return one line of a list of runs, or None if it is gone. One that is damaged is told to whoever loads it."""
    if run_id is None or text is None:
        return None
    name = run_id.decode("utf-8", "replace")
    try:
        head = Head.read(name, text)
    except (StateStoreError, ValueError, TypeError, IndexError):
        return RunSummary(name, None, "running", 0, 0.0, 0.0)
    parts = head.head
    return RunSummary(name, parts.pipeline, parts.status, head.completed, parts.created_at, saved_at)


def _output(run_id: str, position: int, incarnation: str, value: bytes) -> tuple[str, Any, NodeRecord]:
    about, _, output = opened(run_id, f"{position} {incarnation}", value).partition("\n")
    node, *record = loads(about)
    return node, loads(output), NodeRecord(*record)

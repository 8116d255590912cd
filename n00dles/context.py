"""The state of one run: its inputs, the output of every completed node, and what a resume needs to be honest.

Outputs are held in their stored form from the moment a node completes, also in a run that never crashes, so that a
resumed run cannot see anything else than an undisturbed one.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self, cast, get_args

from .errors import CorruptCheckpointError, SerializationError, StoreVersionError
from .records import NodeRecord, RunHead, SaveBatch, Status, StoredOutput
from .serialization import JSONValue, dumps, loads, to_stored

__all__ = ["SCHEMA", "PipelineContext", "stored_inputs"]

SCHEMA = 1
"""The version of the record; a record without one is of this or an earlier release."""


class _Outputs(dict[str, JSONValue]):
    """A dict, so that any encoder takes it, into which outputs come by `put` alone."""

    put = dict.__setitem__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored_outputs, (dict(self),)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("outputs enter a context through its method checkpoint(node, output)")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def _restored_outputs(outputs: dict[str, JSONValue]) -> _Outputs:
    return _Outputs(outputs)


class PipelineContext:
    """One run's inputs, completed outputs and bookkeeping.

    `run_id`, `inputs`, `completed` (output by node) and `order` (nodes as they completed) are what every store must
    keep; a record of these four alone is read. `revision` counts the acknowledged saves and fences stale ones; 0
    means that the run was never stored. `incarnation` tells a run from a later one of the same id. `lives` counts the
    processes that worked on the run, the one that created it included, `stalled` those since a node last completed;
    `is_new` says that the store has just created the run, for the first life of it. `handle` is a place for the
    store's own key of the run. Times are seconds since the epoch, by the clock of the worker that saved; nothing is
    decided by them.

    `completed` is read-only: outputs enter through `checkpoint`, which converts them to their stored form.
    """

    def __init__(
        self,
        run_id: str,
        inputs: Mapping[str, Any],
        completed: Mapping[str, Any] | None = None,
        order: Iterable[str] = (),
        *,
        revision: int = 0,
        incarnation: str = "",
    ) -> None:
        self.run_id = run_id
        self.inputs: dict[str, Any] = stored_inputs(inputs)
        self.revision = revision
        self.incarnation = incarnation or secrets.token_hex(16)
        self.pipeline: str | None = None
        self.status: Status = "running"
        self.lives = 0
        self.stalled = 0
        self.is_new = False
        self.elapsed_ms = 0.0
        self.error: str | None = None
        self.created_at = self.updated_at = time.time()
        self.nodes: dict[str, NodeRecord] = {}
        self._signature: list[str] = []
        self._signature_saved = True
        self._order: list[str] = []
        self._completed = _Outputs()
        self._positions: dict[str, int] = {}
        self._unfinished: dict[str, NodeRecord] = {}
        self._unsaved: dict[str, int] = {}
        self._serial = 0
        self._snapshots = 0
        self.saved_snapshot = 0
        # Names this object's saves, so that they are told from those of another worker with the same revision.
        self._writer = secrets.token_hex(16)
        self._in_doubt: SaveBatch | None = None
        self.handle: Any = None
        # A store may take its snapshot in a worker thread while nodes complete in the event loop.
        self._lock = threading.Lock()
        outputs = dict(completed or {})
        for node in [*order, *outputs]:
            if node in outputs:
                self.checkpoint(node, outputs.pop(node))

    def __repr__(self) -> str:
        return f"<PipelineContext {self.run_id!r} revision {self.revision}, {self.status}, completed {self._order}>"

    def __getstate__(self) -> dict[str, Any]:
        # A store may copy or pickle a context. Neither a lock nor the right to the same save ids goes with it.
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_writer", "_in_doubt")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock(), _writer=secrets.token_hex(16), _in_doubt=None, is_new=False)

    @property
    def completed(self) -> Mapping[str, JSONValue]:
        """The output of every completed node, in stored form."""
        return self._completed

    @property
    def order(self) -> list[str]:
        """The completed nodes, in the order in which they completed (a copy)."""
        return list(self._order)

    @property
    def signature(self) -> list[str]:
        """One line a step of the pipeline that the run was last worked on with (`Pipeline.signature`)."""
        return self._signature

    @signature.setter
    def signature(self, lines: list[str]) -> None:
        if lines != self._signature:
            self._signature = list(lines)
            self._signature_saved = False

    def begin_life(self, *, is_first: bool = False) -> None:
        """Count a process that works on the run. A store that creates the run counts its first one with it."""
        self.lives += 1
        self.stalled += 1
        self.is_new = is_first

    def is_complete(self, node: str) -> bool:
        """Whether `node` has an output; `None` is one."""
        return node in self._completed

    def record(self, node: str) -> NodeRecord:
        """Return the cost record of `node`, made at its first use."""
        record = self.nodes.get(node)
        if record is None:
            record = NodeRecord()
            with self._lock:
                self.nodes[node] = record
                if node not in self._completed:
                    self._unfinished[node] = record
        return record

    def checkpoint(self, node: str, output: Any) -> JSONValue:
        """Record that `node` has completed with `output`, and return the form in which it is kept.

        Nothing is durable until the next save. Raises `SerializationError` if JSON cannot hold it exactly; the context
        is then unchanged.
        """
        if not isinstance(node, str):
            raise SerializationError(f"the node name {node!r}", "is no text, and would not be found again under it.")
        try:
            to_stored(str(node), "its name")
            stored = to_stored(output)
        except SerializationError as error:
            raise SerializationError(error.path, error.why, node=node) from None
        self.checkpoint_stored(node, stored)
        return stored

    def checkpoint_stored(self, node: str, stored: JSONValue) -> None:
        """Like `checkpoint`, for an output that `to_stored` has already converted."""
        with self._lock:
            if node not in self._completed:
                self._positions[node] = len(self._order)
                self._order.append(node)
            self._completed.put(node, stored)
            self._unfinished.pop(node, None)
            self._serial += 1
            self._unsaved[node] = self._serial

    # What follows is for stores that write only what is new; a store may as well keep `to_json` whole.

    @property
    def unsaved(self) -> tuple[str, ...]:
        """The nodes whose outputs no save has made durable."""
        with self._lock:
            return tuple(self._unsaved)

    @property
    def serial(self) -> int:
        """A counter of checkpoints; see `mark_saved`."""
        return self._serial

    @property
    def in_doubt(self) -> SaveBatch | None:
        """The last save whose outcome is unknown: the store may or may not have it."""
        return self._in_doubt

    def snapshot(self) -> SaveBatch:
        """Return what no save has made durable yet, as it is now; for a store that writes it a moment later."""
        with self._lock:
            self.updated_at = time.time()
            self._snapshots += 1
            # By position: a save is where a run spends its time, and names take three times as long.
            return SaveBatch(
                f"{self._writer}-{self._snapshots}",
                self.revision,
                self.incarnation,
                self._head(),
                len(self._completed),
                tuple([self._stored_output(node) for node in self._unsaved]),
                None if self._signature_saved else dumps(list(self._signature)),
                self._serial,
                self._snapshots,
            )

    def begin_save(self, snapshot: SaveBatch | None = None) -> SaveBatch:
        """Return what to write now (by default, all that is new). It is in doubt until it is acknowledged."""
        batch = snapshot or self.snapshot()
        with self._lock:
            if batch.revision != self.revision or batch.incarnation != self.incarnation:  # saved since then
                batch = batch._replace(revision=self.revision, incarnation=self.incarnation)
            self._in_doubt = batch
            return batch

    def acknowledge(self, batch: SaveBatch) -> None:
        """Note that the store holds `batch`; what completed since then stays for the next save."""
        with self._lock:
            self.revision = batch.revision + 1
            self.saved_snapshot = max(self.saved_snapshot, batch.number)
            self._in_doubt = None
            if batch.signature is not None and batch.signature == dumps(list(self._signature)):
                self._signature_saved = True
            self._forget_unsaved(batch.serial)

    def mark_saved(self, serial: int) -> None:
        """Note that every checkpoint up to `serial` is durable."""
        if self._unsaved:
            with self._lock:
                self._forget_unsaved(serial)

    def _forget_unsaved(self, serial: int) -> None:
        is_all = serial == self._serial
        self._unsaved = {} if is_all else {node: at for node, at in self._unsaved.items() if at > serial}

    def _stored_output(self, node: str) -> StoredOutput:
        record = self.nodes.get(node)
        copy = NodeRecord() if record is None else record.copy()
        return StoredOutput(node, self._positions[node], dumps(self._completed[node]), copy)

    def _head(self) -> RunHead:
        return RunHead(
            self.status,
            self.pipeline,
            self.lives,
            self.stalled,
            self.elapsed_ms,
            self.error,
            self.created_at,
            self.updated_at,
            dumps({node: asdict(record) for node, record in self._unfinished.items()}) if self._unfinished else "{}",
        )

    @classmethod
    def assemble(
        cls,
        run_id: str,
        inputs: dict[str, Any],
        outputs: Iterable[tuple[str, JSONValue, NodeRecord]],
        head: RunHead,
        *,
        signature: list[str],
        revision: int,
        incarnation: str,
    ) -> Self:
        """Build the context of a stored run from its parts, in completion order. The parts are taken, not copied."""
        context = cls(run_id, {}, revision=revision, incarnation=incarnation)
        context.inputs = inputs
        for position, (node, output, record) in enumerate(outputs):
            context._order.append(node)
            context._positions[node] = position
            context._completed.put(node, output)
            context.nodes[node] = record
        context._take(head._asdict(), loads(head.unfinished))
        context._signature = signature
        return context

    # The whole record as one JSON text.

    def to_dict(self) -> dict[str, Any]:
        """Return the whole record in plain JSON types; it shares nothing with the context."""
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "run_id": self.run_id,
            "inputs": self.inputs,
            "completed": self._completed,
            "order": self._order,
            "revision": self.revision,
            "incarnation": self.incarnation,
            "signature": self._signature,
            **self._head()._asdict(),
            "nodes": {node: asdict(record) for node, record in self.nodes.items()},
        }
        del record["unfinished"]
        return loads(dumps(record))  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """Return the whole record as JSON text."""
        return dumps(self.to_dict())

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read a record of this release, or one that carries only run_id, inputs, completed and order.

        Everything in it counts as saved. Raises `CorruptCheckpointError` if it is not such a record, and
        `StoreVersionError` for one of a later release.
        """
        try:
            _check_types(record, _FIELD_TYPES)
            _check_schema(record)
            context = cls(
                record["run_id"],
                record["inputs"],
                record["completed"],
                record["order"],
                revision=record.get("revision", 0),
                incarnation=record.get("incarnation", ""),
            )
            context._take(record, record.get("nodes", {}))
            context.signature = list(record.get("signature", []))
            if set(record["order"]) != set(record["completed"]):
                raise ValueError("its completion order and its outputs name different nodes")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptCheckpointError(
                f"a stored record is no run record: {type(error).__name__}: {error}. It is left as it is; restore it "
                "from a backup, or delete the run.",
                run_id=record.get("run_id") if isinstance(record, Mapping) else None,
            ) from error
        context.mark_saved(context.serial)
        context._signature_saved = True
        return context

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote, or a record of the published 0.3 release."""
        try:
            record = loads(text)
        except (ValueError, RecursionError) as error:
            raise CorruptCheckpointError(
                f"a stored record is no JSON text: {error}. It is left as it is; restore it from a backup, or delete "
                "the run."
            ) from error
        return cls.from_dict(record)

    def _take(self, head: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> None:
        """Take over what a stored record says; what it lacks stays as it is."""
        for name in _HEAD:
            if name in head:
                setattr(self, name, head[name])
        for node, record in records.items():
            _check_types(record, _NODE_TYPES)
            kept = self.record(node)
            for name, value in record.items():
                setattr(kept, name, value)


_HEAD = tuple(name for name in RunHead._fields if name != "unfinished")

_NUMBER = (int, float)
_TEXT_OR_NONE = (str, type(None))
_FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("run_id", "incarnation", "status"), str),
    **dict.fromkeys(("schema", "revision", "lives", "stalled"), int),
    **dict.fromkeys(("elapsed_ms", "created_at", "updated_at"), _NUMBER),
    **dict.fromkeys(("pipeline", "error"), _TEXT_OR_NONE),
    "signature": list,
}
_NODE_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("attempts", "input_tokens", "output_tokens", "spent"), int),
    "duration_ms": _NUMBER,
    "error": _TEXT_OR_NONE,
}


def _check_types(record: Mapping[str, Any], types: Mapping[str, type | tuple[type, ...]]) -> None:
    for name, kind in types.items():
        if name in record and not isinstance(record[name], kind):
            raise TypeError(f"its {name} is {record[name]!r}")
    if "status" in types and record.get("status", "running") not in get_args(Status):
        raise ValueError(f"its status is {record['status']!r}")


def _check_schema(record: Mapping[str, Any]) -> None:
    schema = record.get("schema", SCHEMA)
    if schema > SCHEMA:
        run_id = record.get("run_id")
        raise StoreVersionError(
            f"the record of run {run_id!r} has schema version {schema}, and this release reads {SCHEMA}. It is left as "
            "it is; upgrade this package, or use another store.",
            run_id=run_id if isinstance(run_id, str) else None,
        )
    if schema < 1:
        raise ValueError(f"its schema is {schema}")


def stored_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored form of a run's inputs. Raises `SerializationError` naming the input."""
    return cast(dict[str, Any], to_stored(dict(inputs), "inputs"))

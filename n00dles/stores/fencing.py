"""Which save may land: only one that continues the stored revision of the same incarnation of a run.

The revision is a fencing token (Kleppmann, "How to do distributed locking", 2016): a stopped worker that wakes up, a
late save after a delete and an older snapshot are all refused, whatever any clock says.
"""

from __future__ import annotations

from ..context import PipelineContext
from ..errors import StaleContextError, StateStoreError
from ..records import SaveBatch, StoredRevision

__all__ = ["check_fence", "check_whole"]


def check_fence(context: PipelineContext, stored: StoredRevision | None) -> None:
    """Return if `context` may be saved over `stored` (None: the run is not there); call it inside the transaction.

    A save of this context whose reply was lost is recognised by its id, and acknowledged. Raises `StaleContextError`.
    """
    in_doubt = context.in_doubt
    if stored is not None and in_doubt is not None and stored == in_doubt.stored_revision:
        context.acknowledge(in_doubt)
    if stored is None:
        if context.revision > 0:
            raise _stale(context, f"it was deleted after this context was loaded at revision {context.revision}")
    elif stored.incarnation != context.incarnation:
        raise _stale(context, "another run of this id was created after this context")
    elif stored.revision != context.revision:
        raise _stale(
            context,
            f"it is at revision {stored.revision}, and this save continues revision {context.revision}: another worker "
            "has gone on with it",
        )


def check_whole(run_id: str, batch: SaveBatch, first: int) -> None:
    """Return if `batch` holds all outputs from position `first` on, which is how many are stored.

    Others cannot be written: they count as saved, in whatever store they were. Raises `StateStoreError`.
    """
    if batch.completed - first == 1 == len(batch.outputs) and batch.outputs[0].position == first:
        return  # as nearly always
    held = {output.position for output in batch.outputs}
    if any(position not in held for position in range(first, batch.completed)):
        raise StateStoreError(
            f"run {run_id!r} was not saved: its context has been saved in another store, and does not hold all outputs "
            "as new. To copy a run, save PipelineContext(run_id, inputs, completed, order).",
            run_id=run_id,
        )


def _stale(context: PipelineContext, why: str) -> StaleContextError:
    return StaleContextError(
        f"run {context.run_id!r} was not saved: {why}. Nothing was written; load the run again, or start a new one.",
        run_id=context.run_id,
    )

"""What a store keeps of a run besides inputs, outputs and order: no clause asks for it, and the report tells of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from n00dles.context import PipelineContext

from .grade import LOST_AT_A_RESTART
from .subject import StoreSubject

__all__ = ["note_what_is_lost_at_a_restart"]

_KEPT: dict[str, Callable[[PipelineContext], Any]] = {
    "attempts and usage of nodes": lambda context: {node: asdict(each) for node, each in context.nodes.items()},
    "lives": lambda context: (context.lives, context.stalled),
    "status": lambda context: context.status,
    "the error": lambda context: context.error,
    "the time spent": lambda context: context.elapsed_ms,
    "the pipeline's name": lambda context: context.pipeline,
    "the pipeline's fingerprint": lambda context: list(context.signature),
}


async def note_what_is_lost_at_a_restart(subject: StoreSubject) -> None:
    """Save a context with all of its bookkeeping and load it again, if possible from a store that was opened again."""
    async with subject.probe("does the store keep a run's bookkeeping?") as s:
        handle = await s.create()
        _fill(handle.context)
        await s.save(handle, {"node": "saved once"})
        saved = {name: of(handle.context) for name, of in _KEPT.items()}
        loaded = (await s.load(handle.run_id)).context
        if await s.keeps_after_reopening(handle.run_id):
            loaded = (await s.load(handle.run_id)).context
        lost = [name for name, of in _KEPT.items() if of(loaded) != saved[name]]
        if len(lost) == len(_KEPT):
            subject.notes.append(
                "keeps the four fields only: attempts, lives, status and the pipeline's fingerprint are "
                f"{LOST_AT_A_RESTART}"
            )
        elif lost:
            subject.notes.append(f"does not keep {', '.join(lost)}: {LOST_AT_A_RESTART}")


def _fill(context: PipelineContext) -> None:
    """Give each field another value than a new context has."""
    for _ in range(3):
        context.begin_life()
    context.pipeline, context.signature = "cats", ["researcher", "writer"]
    context.status, context.error, context.elapsed_ms = "failed", "RuntimeError: no cats", 1234.5
    for node, attempts in (("node", 2), ("unfinished", 3)):
        record = context.record(node)
        record.attempts, record.input_tokens, record.output_tokens = attempts, 17, 5
        record.duration_ms, record.error = 12.5, "RuntimeError: no cats"
    # What a completed node has spent of its retries matters to nobody.
    context.record("unfinished").spent = 1

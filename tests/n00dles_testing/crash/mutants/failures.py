"""E10, E11, E12, E13, E15: what goes wrong when a node, the store or the process fails, or the run is told to end."""

from __future__ import annotations

import asyncio
import json
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from n00dles import PipelineContext, PipelineFailure, RunResult, SerializationError, StateStoreError, api
from n00dles.serialization import to_stored
from tests.n00dles_testing.crash.mutants.base import RESUMES, Around, Executor, Life


class StoresFailuresAsOutputs(Executor):
    """Stores the error of a node that has failed for good as its output."""

    breaks = "E10"
    also = frozenset({"E05", "E17", "E18"}) | RESUMES  # whatever reads the output gets an error instead

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except PipelineFailure as failure:
            record = await life.record()
            nodes = {agent.name for agent in life.pipeline.agents()}
            if record is not None and failure.node_name in nodes and not record.is_complete(failure.node_name):
                record.checkpoint(failure.node_name, {"error": str(failure.cause)})
                await life.store.save(life.run_id, record)
            raise


class LosesTheRecordOfAFailedRun(Executor):
    """Deletes a run that has failed: what was paid for before is gone with it."""

    breaks = "E10"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except PipelineFailure:
            await life.store.delete(life.run_id)
            raise


class RefusesAFailedRun(Executor):
    """Takes a failed run for finished: a resume raises, and calls nothing."""

    breaks = "E10"
    also = RESUMES

    async def live(self, life: Life) -> RunResult:
        record = await life.record()
        if life.inputs is None and record is not None and record.status == "failed":
            raise RuntimeError(f"run {life.run_id!r} has failed")
        return await super().live(life)


class CountsAttemptsPerLife(Executor):
    """Gives each node all its attempts again in each life."""

    breaks = "E11"

    def around(self, store: Any) -> Any:
        class Forgiving(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                for record in found.nodes.values():
                    record.spent = 0
                return found

        return Forgiving.put(store)


class CountsNoLives(Executor):
    """Calls a node that kills its process again and again, for ever."""

    breaks = "E11"

    def around(self, store: Any) -> Any:
        class Unmoved(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                found.stalled = 0
                return found

        return Unmoved.put(store)


class GivesUpAfterADeath(Executor):
    """Takes a node for failed whose process has died between two of its attempts."""

    breaks = "E11"
    also = frozenset({"E10", "E18"})  # the run fails, and what has used up its attempts is not called

    def around(self, store: Any) -> Any:
        class Impatient(Around):
            def loaded(self, found: PipelineContext) -> PipelineContext:
                for record in found.nodes.values():
                    record.spent = 1000 if record.spent and found.status == "running" else record.spent
                return found

        return Impatient.put(store)


class BlamesTheNode(Executor):
    """Raises a failed save as a failure of a node."""

    breaks = "E12"

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except StateStoreError as error:
            if type(error) is not StateStoreError:
                raise  # a refusal is another matter than a fault
            raise PipelineFailure(life.run_id, life.pipeline.agents()[0].name, error) from error


class CallsAgainWhenTheSaveFailed(Executor):
    """Calls a node again in the same life when its save has failed."""

    breaks = "E12"

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except StateStoreError as error:
            if type(error) is not StateStoreError:
                raise
            api._held.clear()
            return await super().live(life)


class ForgetsWhatItHadInHand(Executor):
    """Drops what the nodes have returned when their save fails: the next life in the process calls them again."""

    breaks = "E12"

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except StateStoreError:
            api._held.clear()
            raise


class GoesOnWhenCancelled(Executor):
    """Takes a cancellation for a hiccup, and goes on."""

    breaks = "E13"
    also = frozenset({"E05", "E11"})  # it calls again what it has been told to leave

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return await super().live(life)


class LeavesItsWorkRunning(Executor):
    """Ends when it is cancelled, and leaves what it was doing to go on."""

    breaks = "E13"

    async def live(self, life: Life) -> RunResult:
        return await asyncio.shield(asyncio.ensure_future(super().live(life)))


class TakesACancellationForAFailure(Executor):
    """Raises a cancellation as a failure of a node."""

    breaks = "E13"

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except asyncio.CancelledError as error:
            cause = RuntimeError("it was cancelled")
            raise PipelineFailure(life.run_id, life.pipeline.agents()[0].name, cause) from error


class StoresText(Executor):
    """Stores the text of what JSON cannot hold: `default=str`."""

    breaks = "E15"
    also = frozenset({"E10", "E11"})  # a node that has to fail does not

    def changes(self, life: Life) -> AbstractContextManager[Any]:
        return patch("n00dles.calling.to_stored", _approximated)


class NamesNobody(Executor):
    """Says that something cannot be stored, and not what returned it."""

    breaks = "E15"

    async def live(self, life: Life) -> RunResult:
        try:
            return await super().live(life)
        except PipelineFailure as failure:
            if isinstance(failure.cause, SerializationError):
                raise TypeError("Object of type set is not JSON serializable") from None
            raise


def _approximated(value: Any, *named: Any) -> Any:
    try:
        return to_stored(value, *named)
    except SerializationError:
        return json.loads(json.dumps(value, default=str), parse_constant=str)

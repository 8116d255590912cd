"""Calling one node until it succeeds or its attempts are used up, which are counted over all lives of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .agent import Agent
from .calling import BodyThreads, Usage, call, check_output, checked_arguments
from .checkpointing import Checkpointer
from .context import PipelineContext
from .errors import AgentInputError, ConfigurationError, PipelineFailure, SerializationError, described, message_of
from .events import NodeFailed, NodeRetried, NodeReturned, NodeStarted, Observers
from .idempotency import node_call
from .plain_data import missing_annotations
from .records import NodeRecord
from .retry import RetryPolicy
from .serialization import JSONValue
from .time_limits import TimeLimits
from .wiring import Wiring

__all__ = ["Settings", "StoppedError", "Worker"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for a node that has no setting of its own: seconds an attempt, and when to try again."""

    timeout: float = 60.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    def narrowed(self, timeout: float | None, retry: RetryPolicy | None) -> Settings:
        """Return these settings with whatever is set more specifically."""
        if timeout is None and retry is None:
            return self
        return replace(self, timeout=timeout or self.timeout, retry=retry or self.retry)


class StoppedError(Exception):
    """A node was not called, or not again, since another member of the same fan-out has failed; it has not failed."""


class Worker:
    """Calls nodes of one run and records what they cost. `calls` counts the calls of this life."""

    def __init__(
        self,
        context: PipelineContext,
        checkpointer: Checkpointer,
        observers: Observers,
        wiring: Wiring,
        *,
        outlives_exits: bool,
    ) -> None:
        self.calls = 0
        self._outlives_exits = outlives_exits
        self._is_stopping = False
        self._context = context
        self._checkpointer = checkpointer
        self._observers = observers
        self._wiring = wiring
        self._threads = BodyThreads()
        self._time_limits = TimeLimits()

    def stop(self) -> None:
        """Make no further call: what runs may end, and no attempt follows one that fails."""
        self._is_stopping = True

    def check_going(self) -> None:
        """Raise `StoppedError` if no further call is to be made."""
        if self._is_stopping:
            raise StoppedError

    def close(self) -> None:
        """End the threads of sync bodies; no call is under way."""
        self._threads.close()
        self._time_limits.close()

    async def output_of(self, agent: Agent, stored: Mapping[str, JSONValue], settings: Settings) -> JSONValue:
        """Return the node's output in stored form; its retries and its fallbacks are behind it.

        A failed attempt is saved before the next one, so that a kill in between does not give it back. Raises
        `PipelineFailure` when all are used up; the node then has its full number again when the run is resumed. Raises
        `StoppedError` if an attempt has failed and `stop` was called.
        """
        record = self._context.record(agent.name)
        error: Exception | None = None
        turn = _turn(agent, settings, record.spent)
        while turn is not None:
            try:
                return await self._attempt(agent, turn, stored, record)
            except Exception as failure:
                error = failure
            self._charge(turn, record, error)
            following = None if isinstance(error, _FINAL) else _turn(agent, settings, record.spent)
            if following is not None:
                self.check_going()
                await self._prepare(agent.name, turn, following, record, error)
                self.check_going()
            turn = following
        if error is None:
            error = RuntimeError(f"its attempts were used up in earlier lives; the last error was {record.error}")
        raise await self._failure(agent, stored, record, error) from error

    async def _attempt(
        self, agent: Agent, turn: _Turn, stored: Mapping[str, JSONValue], record: NodeRecord
    ) -> JSONValue:
        """Make one call in the name of `agent`, by it or its fallback, and charge its record with it."""
        node = agent.name
        arguments = checked_arguments(turn.agent, stored)
        self.calls += 1
        run_id, attempt = self._context.run_id, record.attempts + 1
        if self._observers:
            self._observers.emit(NodeStarted(run_id=run_id, node=node, attempt=attempt, arguments=arguments))
        usage, started = Usage(), time.perf_counter_ns()
        try:
            with self._time_limits.of(turn.timeout) as limit, node_call(run_id, node, turn.agent.name):
                output = await call(turn.agent, stored, arguments, usage, self._threads)
            if turn.agent is not agent:
                # Whatever reads the node's output goes by what the node itself declares.
                check_output(agent, output, output)
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError(f"node {node!r} was not done within its timeout of {turn.timeout:g} s") from error
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError(f"something that node {node!r} awaited was cancelled, and the run was not") from error
        except (SystemExit, KeyboardInterrupt) as error:
            if not self._outlives_exits:
                raise
            raise RuntimeError(f"node {node!r} raised {error!r}, which would have ended its worker") from error
        finally:
            # Only now: a sibling's save must not make a call durable that a kill then keeps from being made.
            record.attempts = attempt
            duration_ms = (time.perf_counter_ns() - started) // 1000 / 1000
            record.duration_ms += duration_ms
            record.input_tokens += usage.input_tokens
            record.output_tokens += usage.output_tokens
        if self._observers:
            self._observers.emit(
                NodeReturned(
                    run_id=run_id,
                    node=node,
                    attempt=attempt,
                    output=output,
                    duration_ms=duration_ms,
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                )
            )
        return output

    def _charge(self, turn: _Turn, record: NodeRecord, error: Exception) -> None:
        """Count the failed attempt, and with it all others of this agent, if its error is none to try again after."""
        record.error = described(error)
        record.spent += 1
        if not isinstance(error, _FINAL) and not turn.retry.allows(error):
            record.spent = turn.until

    async def _prepare(self, node: str, turn: _Turn, following: _Turn, record: NodeRecord, error: Exception) -> None:
        """Make the failed attempt durable, and wait before the next one of the same agent."""
        run_id, attempt, text = self._context.run_id, record.attempts, message_of(error)
        if following.agent is not turn.agent:
            self._observers.emit(
                NodeFailed(run_id=run_id, node=node, attempt=attempt, error=text, fallback=following.agent.name)
            )
            await self._checkpointer.save()
            return
        delay = turn.retry.delay(record.spent - turn.since, error)
        self._observers.emit(NodeRetried(run_id=run_id, node=node, attempt=attempt, error=text, delay=delay))
        await self._checkpointer.save()
        with node_call(run_id, node, turn.agent.name):  # so that whoever records the wait knows whose it is
            await asyncio.sleep(delay)

    async def _failure(
        self, agent: Agent, stored: Mapping[str, JSONValue], record: NodeRecord, error: Exception
    ) -> PipelineFailure:
        context, node, text = self._context, agent.name, message_of(error)
        self._observers.emit(
            NodeFailed(run_id=context.run_id, node=node, attempt=record.attempts, error=text, fallback=None)
        )
        failure = PipelineFailure(
            context.run_id, node, error, missing_annotations(agent, self._wiring.sources[node], stored, error)
        )
        record.spent = 0
        await self._checkpointer.save_failure(failure)
        return failure


class _Turn(NamedTuple):
    """An agent that may be called while the spent attempts of a node are in `range(since, until)`."""

    agent: Agent
    timeout: float
    retry: RetryPolicy
    since: int
    until: int


def _turn(agent: Agent, settings: Settings, spent: int) -> _Turn | None:
    """Return whose turn it is for a node, one after another: the agent, its fallback, the fallback's fallback."""
    narrowed, since = settings.narrowed(agent.timeout, agent.retry), 0
    for candidate in agent.lineup():
        if candidate is not agent:
            narrowed = replace(settings, retry=_ONCE).narrowed(candidate.timeout, candidate.retry)
        until = since + narrowed.retry.max_attempts
        if spent < until:
            return _Turn(candidate, narrowed.timeout, narrowed.retry, since, until)
        since = until
    return None


_ONCE = RetryPolicy(max_attempts=1)

# Another attempt, or another agent, would only pay again for the same mistake in the pipeline.
_FINAL = (AgentInputError, ConfigurationError, SerializationError)

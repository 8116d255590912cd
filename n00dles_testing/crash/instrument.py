"""Putting ears into a pipeline: every true call, request and save goes to the ledger, and one of them is the last.

What an executor says about itself is recorded too, but not believed: the functions and the providers of the agents and
the store are wrapped, so that a broken executor cannot hide a call.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Self, cast

from n00dles import idempotency
from n00dles.agent import Agent
from n00dles.events import Event
from n00dles.idempotency import current_idempotency_key
from n00dles.pipeline import Pipeline
from n00dles.providers import LLMResponse, Provider

from .disturbance import Disturbance
from .ledger import Ledger
from .points import How, Kind, Point, points_of
from .reverse_order import ReverseOrder
from .store_faults import StoreFaults
from .tracing import LineWatch, code_of, watching
from .typed import encode

__all__ = ["Callee", "Trigger", "callees", "instrumented"]


class Trigger:
    """Watches one life pass its crash points, writes what it sees, and ends or disturbs the life at one of them.

    `die` does not return: it is a SIGKILL, or raises what stands for one. `arm` has the LLM server kill this process
    once it has been paid for the request with this idempotency key; None if there is no such server. `interrupt` see
    `Disturbance`. `calling` counts the calls that have begun and not ended, by node.
    """

    def __init__(
        self,
        ledger: Ledger,
        point: Point | None,
        die: Callable[[], None],
        *,
        line: int | None = None,
        record: bool = False,
        arm: Callable[[str | None], None] | None = None,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        self.ledger = ledger
        self.point = point
        self.faults = StoreFaults()
        self.disturbance = Disturbance(None if point is None else point.how, interrupt)
        self.calling: Counter[str] = Counter()
        self.order: ReverseOrder | None = None
        self.line = line
        self.record = record
        self.arm = arm
        self._die = die
        self._moment = None if point is None else point.moment
        self._fired = False
        self._times = 0

    def observe(self, event: Event) -> None:
        """Be an observer of the run."""
        fields = _plain(event)
        if event.name == "node_started":
            _started.set(fields["node"])
        self.ledger.write("event", event=event.name, **fields)
        self._pass(event.name, fields)

    @property
    def delivered(self) -> bool:
        """Whether the life was disturbed: the fault has happened, or the run was told to end."""
        how = self.disturbance.how
        return self.faults.happened if how is not None and how.is_store_fault else self.disturbance.delivered

    def create_begins(self) -> None:
        """Note that the store is about to create the run, if it is not there."""
        self._pass("create_start", {})

    def create_done(self) -> None:
        """Note that the store has given the run."""
        self._pass("create_end", {})

    def gives_way(self, number: int, where: Callable[[], str]) -> None:
        """Note that the task of the run gives way for the `number`-th time, and `where` it does."""
        if self._moment is not None and self._moment.kind is Kind.AWAIT and self._moment.occurrence == number:
            self.fire(where())

    def save_begins(self, new: list[str]) -> None:
        """Note that a save is about to be handed to the store."""
        self._pass("save_start", {"new": new})

    def save_done(self, new: list[str]) -> None:
        """Note that the store has acknowledged a save."""
        self._pass("save_end", {"new": new})

    def enters(self, node: str) -> bool:
        """Note that a call of `node` begins, and return whether the life is to be ended during this call."""
        self.calling[node] += 1
        if self.order is not None:
            self.order.enters(node)
        return self._is_at(Kind.DURING, node)

    def leaves(self, node: str) -> None:
        """Note that a call of `node` has ended."""
        self.calling[node] -= 1

    def _pass(self, event: str, fields: Mapping[str, Any]) -> None:
        if self._moment is not None:
            for point in points_of(event, fields):
                if self._is_at(point.kind, point.subject):
                    self.fire()

    def _is_at(self, kind: Kind, subject: str) -> bool:
        """Whether this is the point of this life: how often it is passed is counted for no other."""
        moment = self._moment
        if moment is None or moment.kind is not kind or moment.subject != subject:
            return False
        self._times += 1
        return self._times == moment.occurrence

    def fire(self, where: str = "") -> None:
        """Write that the process is alive at the point, `where` says more exactly, and do there what is to be done."""
        if self._fired or self.point is None:
            return
        self._fired = True
        self.ledger.write("at_point", point=str(self.point), where=where)
        if self.point.how is How.KILL:
            self._die()
        elif self.point.how.is_store_fault:
            self.faults.begin(self.point.how)
        else:
            self.disturbance.strike()


@dataclass(frozen=True, slots=True)
class Callee:
    """An agent that may be called, and the nodes in whose stead: its own, or those whose fallback it is."""

    agent: Agent
    nodes: tuple[str, ...]

    @property
    def node(self) -> str:
        """The node that a call now is for. Only if there are several, the executor is asked which one it started."""
        if len(self.nodes) == 1:
            return self.nodes[0]
        started = _started.get()
        return started if started in self.nodes else self.agent.name


# An observer is called in the task of the node that it is told of, so a call of that node finds the name here.
_started: ContextVar[str] = ContextVar("n00dles_testing_started_node", default="")


def callees(pipeline: Pipeline) -> list[Callee]:
    """Return every agent of `pipeline` that may be called, fallbacks included."""
    found: dict[int, Callee] = {}
    for member in pipeline.agents():
        for agent in member.lineup():
            nodes = found[id(agent)].nodes if id(agent) in found else ()
            found[id(agent)] = Callee(agent, (*nodes, member.name))
    return list(found.values())


@contextmanager
def instrumented(pipeline: Pipeline, trigger: Trigger) -> Iterator[None]:
    """Wrap the agents of `pipeline` while inside; afterwards they are as they were."""
    changed: list[tuple[Any, str, Any]] = [
        (idempotency, "current_idempotency_key", idempotency.current_idempotency_key)
    ]
    idempotency.current_idempotency_key = _noted(trigger.ledger)
    if trigger.ledger.life % 2 == 0:
        trigger.order = ReverseOrder(pipeline, trigger.calling)
    try:
        for callee in callees(pipeline):
            agent = callee.agent
            if agent.model is None:
                name, ear = "fn", cast(Any, _recorded_body(callee, agent.fn, trigger))
            else:
                name, ear = "provider", _RecordedProvider(callee, agent.resolve_provider(), trigger)
            changed.append((agent, name, getattr(agent, name)))
            setattr(agent, name, ear)
        yield
    finally:
        for agent, name, before in changed:
            setattr(agent, name, before)


def _noted(ledger: Ledger) -> Any:
    """Return what stands in for `current_idempotency_key` where a body asks for its key."""

    def asked_for(purpose: str = "") -> str | None:
        ledger.write("key_read", key=current_idempotency_key())
        return current_idempotency_key(purpose)

    return asked_for


def _recorded_body(callee: Callee, body: Callable[..., Any], trigger: Trigger) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(getattr(body, "__call__", None)):  # noqa: B004

        async def recorded_async(*args: Any, **kwargs: Any) -> Any:
            with _Recording(callee.node, body, trigger, args, kwargs) as recording:
                output = await body(*args, **kwargs)
                if trigger.order is not None:
                    await trigger.order.wait(callee.node)
                return recording.returned(output)

        return _dressed(recorded_async, body)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        with _Recording(callee.node, body, trigger, args, kwargs) as recording:
            output = body(*args, **kwargs)
            if trigger.order is not None and not inspect.isawaitable(output):
                trigger.order.wait_in_thread(callee.node)
            return recording.returned(output)

    return _dressed(recorded, body)


def _dressed(wrapper: Callable[..., Any], body: Callable[..., Any]) -> Callable[..., Any]:
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        if hasattr(body, name):
            setattr(wrapper, name, getattr(body, name))
    wrapper.__wrapped__ = body  # type: ignore[attr-defined]
    return wrapper


class _Recording:
    """One call of a body on its way into the ledger; the context in which it is made.

    A function that returns an awaitable has returned when that is through; it is awaited outside.
    """

    def __init__(
        self,
        node: str,
        body: Callable[..., Any],
        trigger: Trigger,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._node = node
        self._trigger = trigger
        self._ledger = trigger.ledger
        dies = trigger.enters(node)
        arguments = {**{str(index): encode(value) for index, value in enumerate(args)}, **_encoded(kwargs)}
        self._ledger.write("call_start", node=node, key=current_idempotency_key(), arguments=arguments)
        code = code_of(body)
        self._watch: LineWatch | None = None
        if code is not None and (dies or trigger.record):
            line = trigger.line if dies else None
            self._watch = LineWatch(code, line, lambda number: trigger.fire(f"line {number} of its body"))
        self._watching = watching(self._watch)

    def __enter__(self) -> Self:
        self._watching.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watching.__exit__(kind, error, traceback)
        if error is not None:
            self._write(error=f"{type(error).__name__}: {error}")

    def returned(self, output: Any) -> Any:
        """Write that the body has returned `output`, and pass it on."""
        if inspect.isawaitable(output):
            return self._awaited(output)
        self._write(output=encode(output))
        return output

    async def _awaited(self, output: Awaitable[Any]) -> Any:
        try:
            awaited = await output
            if self._trigger.order is not None:
                await self._trigger.order.wait(self._node)
        except BaseException as error:
            self._write(error=f"{type(error).__name__}: {error}")
            raise
        return self.returned(awaited)

    def _write(self, **how: Any) -> None:
        self._trigger.leaves(self._node)
        self._ledger.write("call_end", node=self._node, lines=self._watch.lines if self._watch else None, **how)


def _encoded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}


class _RecordedProvider:
    """The provider of one agent; what goes through it is written down."""

    def __init__(self, callee: Callee, inner: Provider, trigger: Trigger) -> None:
        self._callee = callee
        self._inner = inner
        self._trigger = trigger
        # Capabilities may be looked for without calling, so they have to be attributes of their own.
        for name in ("check", "preload", "aclose"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        """Send the request and return the answer, unless this is the request at which the process dies."""
        trigger, ledger, node = self._trigger, self._trigger.ledger, self._callee.node
        dies = trigger.enters(node)
        key = current_idempotency_key()
        ledger.write("call_start", node=node, key=key)
        ledger.write("llm_request", node=node, prompt=prompt, system=system, kwargs=_encoded(kwargs))
        if dies and trigger.disturbance.is_from_outside:
            trigger.fire("the request is on its way to the LLM")
        elif dies and trigger.arm is not None:
            where = "the LLM has been paid and has not replied"
            ledger.write("at_point", point=str(trigger.point), where=where, node=node, key=key)
            trigger.arm(key)
        try:
            response = await self._inner.complete(prompt, system, **kwargs)
            if trigger.order is not None:
                await trigger.order.wait(node)
        except BaseException as error:
            if dies:  # a model that refuses is a moment to die at as well
                trigger.fire("the LLM call has raised, and its error is not used")
            trigger.leaves(node)
            ledger.write("call_end", node=node, error=f"{type(error).__name__}: {error}")
            raise
        if dies:  # there is no such server, or the request went elsewhere
            trigger.fire("the LLM has been paid and its reply is not used")
        trigger.leaves(node)
        ledger.write(
            "llm_reply",
            node=node,
            content=response.content,
            input_tokens=response.input_tokens,
            output_tokens=response.output_tokens,
        )
        ledger.write("call_end", node=node, output=encode(response.content))
        return response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _plain(event: Event) -> dict[str, Any]:
    """Return what an event says in JSON types: names as they are, values with their types."""
    values = {name: getattr(event, name) for name in _fields(cast(Any, type(event)))}
    return {name: list(value) if isinstance(value, tuple) else _encoded_field(value) for name, value in values.items()}


@lru_cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in kind.__dataclass_fields__ if name != "run_id")


def _encoded_field(value: Any) -> Any:
    return _encoded(value) if isinstance(value, Mapping) else encode(value)

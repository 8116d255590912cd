"""Runs as OpenTelemetry traces and metrics: an observer of the executor's events (extra `otel`).

One trace a run, however many processes carry it on. Each life is a span, `run PIPELINE`; beneath it are a span for
each attempt of a node (`node NAME`), for each wait before the next attempt (`retry NAME`), and for each save (`save`).
A life after the first is linked to the first. While a node runs, its span is the current one, so that what the SDK of a
model or a database client records lies beneath it. A span within which `run` was called is linked to.

Attributes: `n00dles.run.id`, `n00dles.pipeline`, `n00dles.life`, `n00dles.store`, `n00dles.node`, `n00dles.attempt`,
`n00dles.revision`, and `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens`, as the semantic conventions of
OpenTelemetry call them. Neither arguments nor outputs are recorded: they may be private, and large.
"""

from __future__ import annotations

import importlib.util
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..events import (
    CheckpointFailed,
    CheckpointSaved,
    CheckpointSaving,
    Event,
    NodeFailed,
    NodeRetried,
    NodeReturned,
    NodeStarted,
    RunFailed,
    RunFinished,
    RunStarted,
)

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

__all__ = ["Telemetry"]

_SCOPE = "n00dles"
_BOUNDARIES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds of a save


@dataclass
class _Life:
    """What is open of one life of a run."""

    pipeline: str
    number: int
    store: str
    span: Span
    token: Token[Context]
    nodes: dict[str, tuple[Span, Token[Context]]] = field(default_factory=dict)
    waits: dict[str, Span] = field(default_factory=dict)
    save: Span | None = None
    save_began: float = 0.0
    is_claimed: bool = False


class Telemetry:
    """Makes spans and metrics of every run that it observes: `configure(observers=[Telemetry()])`.

    It takes the providers that the program has set for all (`opentelemetry.trace.set_tracer_provider`), or those given.
    One object serves all runs of a process. Metrics: `n00dles.runs.started` and `n00dles.runs.ended` (with
    `n00dles.outcome`: finished, failed or cancelled), `n00dles.runs.reclaimed` (a life after the first has begun to
    work), `n00dles.store.faults` (saves that the store did not acknowledge, by `error.type`), and the histogram
    `n00dles.save.duration` in seconds, of saves that were acknowledged, repetitions included.

    Raises `ConfigurationError` if OpenTelemetry is not installed.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        _require_sdk()
        from opentelemetry import metrics

        self._tracer_provider = tracer_provider
        self._lives: dict[str, _Life] = {}
        meter = metrics.get_meter(_SCOPE, meter_provider=meter_provider)
        self._started = meter.create_counter("n00dles.runs.started", "{life}", "lives of runs that have begun")
        self._ended = meter.create_counter("n00dles.runs.ended", "{life}", "lives of runs that have ended, by outcome")
        self._reclaimed = meter.create_counter(
            "n00dles.runs.reclaimed", "{life}", "runs that a later life went on with"
        )
        self._faults = meter.create_counter("n00dles.store.faults", "{fault}", "saves that were not acknowledged")
        self._latency = meter.create_histogram(
            "n00dles.save.duration", "s", "time of a save", explicit_bucket_boundaries_advisory=_BOUNDARIES
        )
        self._handlers: dict[type[Event], Callable[[_Life, Any], None]] = {
            NodeStarted: self._node_started,
            NodeReturned: self._node_returned,
            NodeRetried: self._node_retried,
            NodeFailed: self._node_failed,
            CheckpointSaving: self._saving,
            CheckpointSaved: self._saved,
            CheckpointFailed: self._save_failed,
            RunFinished: self._run_finished,
            RunFailed: self._run_failed,
        }

    def __call__(self, event: Event) -> None:
        """Take note of one event."""
        if isinstance(event, RunStarted):
            self._run_started(event)
            return
        life = self._lives.get(event.run_id)
        handler = self._handlers.get(type(event))
        if life is not None and handler is not None:
            handler(life, event)

    def _tracer(self) -> Tracer:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import Tracer as SDKTracer

        from .otel_ids import RunIds

        # Asked for at each run: the program may set its provider after it has configured n00dles.
        tracer = trace.get_tracer(_SCOPE, tracer_provider=self._tracer_provider)
        if isinstance(tracer, SDKTracer) and not isinstance(tracer.id_generator, RunIds):
            tracer.id_generator = RunIds(tracer.id_generator)  # of this scope's tracer only
        return tracer

    def _run_started(self, event: RunStarted) -> None:
        from opentelemetry import context, trace

        from .otel_ids import RunIds, first_life

        tracer, first = self._tracer(), first_life(event.run_id, event.incarnation)
        links: list[Link] = []
        caller = trace.get_current_span().get_span_context()
        if caller.is_valid:
            links.append(trace.Link(caller, {"n00dles.link": "caller"}))
        ids = getattr(tracer, "id_generator", None)
        is_first = event.life == 1
        if not is_first and isinstance(ids, RunIds):
            links.append(trace.Link(first, {"n00dles.link": "first life"}))
        attributes: dict[str, Any] = {
            "n00dles.run.id": event.run_id,
            "n00dles.pipeline": event.pipeline,
            "n00dles.life": event.life,
            "n00dles.store": event.store,
            "n00dles.completed": list(event.completed),
        }

        def start() -> Span:
            return tracer.start_span(f"run {event.pipeline}", context.Context(), attributes=attributes, links=links)

        if isinstance(ids, RunIds):
            with ids.wanted(first.trace_id, first.span_id if is_first else None):
                span = start()
        else:
            span = start()
        token = context.attach(trace.set_span_in_context(span))
        self._lives[event.run_id] = _Life(event.pipeline, event.life, _kind(event.store), span, token)
        self._started.add(1, {"n00dles.pipeline": event.pipeline})

    def _child(self, life: _Life, run_id: str, name: str, attributes: dict[str, Any]) -> Span:
        from opentelemetry import trace

        parent = trace.set_span_in_context(life.span)
        return self._tracer().start_span(name, parent, attributes={"n00dles.run.id": run_id, **attributes})

    def _node_started(self, life: _Life, event: NodeStarted) -> None:
        from opentelemetry import context, trace

        self._claim(life)
        if event.node in life.waits:
            life.waits.pop(event.node).end()
        attributes = {"n00dles.node": event.node, "n00dles.attempt": event.attempt}
        span = self._child(life, event.run_id, f"node {event.node}", attributes)
        # The node's events come in the task that calls it, so this is the current span of its body, and of no other.
        life.nodes[event.node] = span, context.attach(trace.set_span_in_context(span))

    def _node_returned(self, life: _Life, event: NodeReturned) -> None:
        self._end_node(
            life,
            event.node,
            {"gen_ai.usage.input_tokens": event.input_tokens, "gen_ai.usage.output_tokens": event.output_tokens},
        )

    def _node_retried(self, life: _Life, event: NodeRetried) -> None:
        self._end_node(life, event.node, {"n00dles.retry.delay": event.delay}, event.error)
        attributes = {"n00dles.node": event.node, "n00dles.attempt": event.attempt, "n00dles.retry.delay": event.delay}
        life.waits[event.node] = self._child(life, event.run_id, f"retry {event.node}", attributes)

    def _node_failed(self, life: _Life, event: NodeFailed) -> None:
        attributes = {} if event.fallback is None else {"n00dles.fallback": event.fallback}
        self._end_node(life, event.node, attributes, event.error)

    def _end_node(self, life: _Life, node: str, attributes: dict[str, Any], error: str | None = None) -> None:
        from opentelemetry import context

        if node not in life.nodes:  # its attempts were used up in earlier lives: it was not called in this one
            return
        span, token = life.nodes.pop(node)
        context.detach(token)
        span.set_attributes(attributes)
        _end(span, error)

    def _saving(self, life: _Life, event: CheckpointSaving) -> None:
        self._claim(life)
        attributes = {"n00dles.nodes": list(event.nodes), "n00dles.revision.before": event.revision}
        life.save = self._child(life, event.run_id, "save", attributes)
        life.save_began = time.perf_counter()

    def _saved(self, life: _Life, event: CheckpointSaved) -> None:
        self._latency.record(
            time.perf_counter() - life.save_began, {"n00dles.pipeline": life.pipeline, "n00dles.store": life.store}
        )
        life.span.set_attribute("n00dles.revision", event.revision)
        if life.save is not None:
            life.save.set_attribute("n00dles.revision", event.revision)
            life.save.end()
            life.save = None

    def _save_failed(self, life: _Life, event: CheckpointFailed) -> None:
        kind = event.error.partition(":")[0]
        self._faults.add(1, {"n00dles.store": life.store, "error.type": kind})
        if life.save is not None:
            life.save.add_event("store fault", {"error.type": kind, "n00dles.error": event.error})

    def _run_finished(self, life: _Life, event: RunFinished) -> None:
        self._end_life(life, event.run_id, "finished")

    def _run_failed(self, life: _Life, event: RunFailed) -> None:
        outcome = "cancelled" if event.error == "cancelled" and event.node is None else "failed"
        self._end_life(life, event.run_id, outcome, event.error)

    def _end_life(self, life: _Life, run_id: str, outcome: str, error: str | None = None) -> None:
        from opentelemetry import context

        # Whatever is still open was cut short with the run: it was cancelled, or the store failed.
        for span in [node for node, _ in life.nodes.values()] + list(life.waits.values()):
            _end(span, error or "not completed")
        if life.save is not None:
            _end(life.save, error or "not acknowledged")
        life.span.set_attribute("n00dles.outcome", outcome)
        _end(life.span, error)
        context.detach(life.token)
        del self._lives[run_id]
        self._ended.add(1, {"n00dles.pipeline": life.pipeline, "n00dles.outcome": outcome})

    def _claim(self, life: _Life) -> None:
        """Count that a run goes on in a later life; to ask a finished run for its result is none."""
        if not life.is_claimed:
            life.is_claimed = True
            if life.number > 1:
                self._reclaimed.add(1, {"n00dles.pipeline": life.pipeline})


def _end(span: Span, error: str | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    if error is not None:
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()


def _kind(store: str) -> str:
    """Return the class of a store from how it prints itself: metrics have a row for each value of an attribute."""
    found = re.match(r"<?(?:\w+\.)*(\w+)", store)
    return found[1] if found else "unknown"


def _require_sdk() -> None:
    for name in ("opentelemetry", "opentelemetry.sdk"):
        try:
            is_there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            is_there = False
        if not is_there:
            raise ConfigurationError(
                f"{name} is not installed, and Telemetry needs it to make spans and metrics of runs. "
                'Install it: pip install "n00dles-testing[otel]"'
            )

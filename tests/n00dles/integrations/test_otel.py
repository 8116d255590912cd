"""Runs as spans and metrics, read back from the SDK's exporters; lives that are killed, and such that fail."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    PipelineFailure,
    StateStoreError,
    agent,
    arun,
    pipeline,
    resume,
    run,
)
from n00dles.agent import Agent
from n00dles.context import PipelineContext

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from n00dles.integrations.otel import Telemetry


class Watched:
    """A `Telemetry` with exporters that keep everything."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        self.observer = Telemetry(tracer_provider=self.tracers, meter_provider=self.meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        [span] = [span for span in self.spans if span.name == name]
        return span

    def points(self, name: str) -> list[Any]:
        data = self.reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return [point for scope in scopes for m in scope.metrics if m.name == name for point in m.data.data_points]

    def counts(self, name: str) -> dict[tuple[Any, ...], int]:
        return {tuple(point.attributes.values()): point.value for point in self.points(name)}


@pytest.fixture
def watched() -> Iterator[Watched]:
    kept = Watched()
    yield kept
    kept.meters.shutdown()
    kept.tracers.shutdown()


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def context_of(span: ReadableSpan) -> trace.SpanContext:
    context = span.get_span_context()
    assert isinstance(context, trace.SpanContext)
    return context


@agent
def fetch(url: str) -> str:
    return f"text of {url}"


@agent
def summarise(text: str) -> str:
    return f"summary of {text}"


def test_a_run_is_one_trace_of_its_nodes_and_saves(watched: Watched) -> None:
    run(
        pipeline(fetch >> summarise, name="flow"),
        run_id="r",
        store=InMemoryStateStore(),
        observers=[watched.observer],
        url="u",
    )

    whole = watched.named("run flow")
    assert [span.name for span in watched.spans] == ["node fetch", "save", "node summarise", "save", "run flow"]
    assert {context_of(span).trace_id for span in watched.spans} == {context_of(whole).trace_id}
    assert {parent_of(span) for span in watched.spans if span is not whole} == {context_of(whole).span_id}
    assert parent_of(whole) is None
    assert attributes_of(whole) | {"n00dles.store": "…"} == {
        "n00dles.run.id": "r",
        "n00dles.pipeline": "flow",
        "n00dles.life": 1,
        "n00dles.store": "…",
        "n00dles.completed": (),
        "n00dles.revision": 3,
        "n00dles.outcome": "finished",
    }
    assert "InMemoryStateStore" in attributes_of(whole)["n00dles.store"]
    assert attributes_of(watched.named("node summarise")) == {
        "n00dles.run.id": "r",
        "n00dles.node": "summarise",
        "n00dles.attempt": 1,
        "gen_ai.usage.input_tokens": 0,
        "gen_ai.usage.output_tokens": 0,
    }
    assert [attributes_of(span) for span in watched.spans if span.name == "save"] == [
        {"n00dles.run.id": "r", "n00dles.nodes": ("fetch",), "n00dles.revision.before": 1, "n00dles.revision": 2},
        {"n00dles.run.id": "r", "n00dles.nodes": ("summarise",), "n00dles.revision.before": 2, "n00dles.revision": 3},
    ]


def test_neither_inputs_nor_outputs_are_recorded(watched: Watched) -> None:
    run(pipeline(fetch, name="flow"), store=InMemoryStateStore(), observers=[watched.observer], url="very-secret")

    assert watched.spans
    assert "very-secret" not in "".join(span.to_json() for span in watched.spans)


def test_tokens_are_on_the_span_of_the_call() -> None:
    from n00dles.events import NodeReturned, NodeStarted, RunFinished, RunStarted

    watched = Watched()
    for event in (
        RunStarted(run_id="r", pipeline="flow", life=1, completed=(), store="S()", incarnation="i"),
        NodeStarted(run_id="r", node="n", attempt=1, arguments={}),
        NodeReturned(run_id="r", node="n", attempt=1, output=1, duration_ms=1.0, input_tokens=7, output_tokens=3),
        RunFinished(run_id="r", calls=1),
    ):
        watched.observer(event)

    found = attributes_of(watched.named("node n"))
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (7, 3)


def failing(times: int) -> Agent:
    left = [times]

    @agent
    def unsteady(text: str) -> str:
        if left[0]:
            left[0] -= 1
            raise ConnectionError("busy")
        return text

    return unsteady


def test_each_attempt_is_a_span_and_each_wait_between_two(watched: Watched) -> None:
    flow = pipeline(failing(1), name="flow", retry=3)
    run(flow, store=InMemoryStateStore(), observers=[watched.observer], text="x")

    names = [span.name for span in watched.spans if span.name != "save"]
    assert names == ["node unsteady", "retry unsteady", "node unsteady", "run flow"]
    first, wait, second, _ = (span for span in watched.spans if span.name != "save")
    assert first.status.status_code is trace.StatusCode.ERROR
    assert first.status.description == "busy"
    assert second.status.status_code is trace.StatusCode.UNSET
    assert [attributes_of(span)["n00dles.attempt"] for span in (first, second)] == [1, 2]
    delay = attributes_of(wait)["n00dles.retry.delay"]
    assert wait.start_time is not None
    assert wait.end_time is not None
    assert (wait.end_time - wait.start_time) / 1e9 >= delay > 0


def test_a_failed_run_says_why_and_is_counted(watched: Watched) -> None:
    with pytest.raises(PipelineFailure):
        run(
            pipeline(failing(9), name="flow", retry=1),
            store=InMemoryStateStore(),
            observers=[watched.observer],
            text="x",
        )

    whole = watched.named("run flow")
    assert whole.status.status_code is trace.StatusCode.ERROR
    assert "busy" in str(whole.status.description)
    assert watched.counts("n00dles.runs.started") == {("flow",): 1}
    assert watched.counts("n00dles.runs.ended") == {("flow", "failed"): 1}
    assert watched.counts("n00dles.runs.reclaimed") == {}


def test_what_a_body_records_lies_beneath_its_node_also_in_threads_and_fan_outs(watched: Watched) -> None:
    tracer = watched.tracers.get_tracer("a client")

    @agent
    def blocking(text: str) -> str:
        with tracer.start_as_current_span("call of blocking"):
            return threading.current_thread().name

    @agent
    async def waiting(text: str) -> str:
        with tracer.start_as_current_span("call of waiting"):
            await asyncio.sleep(0.01)
            return text

    run(pipeline(blocking | waiting, name="flow"), store=InMemoryStateStore(), observers=[watched.observer], text="x")

    for name in ("blocking", "waiting"):
        call, node = watched.named(f"call of {name}"), watched.named(f"node {name}")
        assert parent_of(call) == context_of(node).span_id


def test_the_callers_span_is_linked_and_is_current_again_afterwards(watched: Watched) -> None:
    async def body() -> tuple[trace.SpanContext, bool]:
        with watched.tracers.get_tracer("web").start_as_current_span("POST /jobs") as request:
            with pytest.raises(PipelineFailure):
                await arun(
                    pipeline(failing(9), name="flow", retry=1),
                    store=InMemoryStateStore(),
                    observers=[watched.observer],
                    text="x",
                )
            return request.get_span_context(), trace.get_current_span() is request

    request, is_current = asyncio.run(body())

    whole = watched.named("run flow")
    assert is_current
    assert [(link.context.span_id, dict(link.attributes or {})) for link in whole.links] == [
        (request.span_id, {"n00dles.link": "caller"})
    ]
    assert context_of(whole).trace_id != request.trace_id


def test_a_cancelled_run_closes_what_was_open(watched: Watched) -> None:
    started = asyncio.Event()

    @agent
    async def hangs(text: str) -> str:
        started.set()
        await asyncio.sleep(60)
        return text

    async def body() -> bool:
        before = trace.get_current_span()
        task = asyncio.create_task(
            arun(pipeline(hangs, name="flow"), store=InMemoryStateStore(), observers=[watched.observer], text="x")
        )
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return trace.get_current_span() is before

    assert asyncio.run(body())
    assert watched.counts("n00dles.runs.ended") == {("flow", "cancelled"): 1}
    assert watched.named("node hangs").status.description == "cancelled"
    assert context_of(watched.named("run flow")).span_id == parent_of(watched.named("node hangs"))


class Unsteady(InMemoryStateStore):
    """Fails the first `faults` saves."""

    def __init__(self, faults: int) -> None:
        super().__init__()
        self.faults = faults

    async def save(self, run_id: str, ctx: PipelineContext) -> None:
        if self.faults:
            self.faults -= 1
            raise ConnectionError("the server is away")
        await super().save(run_id, ctx)


def test_a_store_fault_is_counted_and_seen_on_the_save(watched: Watched) -> None:
    run(pipeline(fetch, name="flow"), store=Unsteady(2), observers=[watched.observer], url="u")

    save = watched.named("save")
    assert [event.name for event in save.events] == ["store fault", "store fault"]
    assert save.status.status_code is trace.StatusCode.UNSET
    assert watched.counts("n00dles.store.faults") == {("Unsteady", "ConnectionError"): 2}
    [latency] = watched.points("n00dles.save.duration")
    assert latency.count == 1
    assert latency.sum >= 0.05  # the pause before the repetition is part of it
    assert dict(latency.attributes) == {"n00dles.pipeline": "flow", "n00dles.store": "Unsteady"}


def test_a_save_that_never_succeeds_is_an_error_and_no_latency(watched: Watched) -> None:
    with pytest.raises(StateStoreError):
        run(pipeline(fetch, name="flow"), store=Unsteady(99), observers=[watched.observer], url="u")

    assert watched.named("save").status.status_code is trace.StatusCode.ERROR
    assert watched.points("n00dles.save.duration") == []
    assert watched.counts("n00dles.store.faults") == {("Unsteady", "ConnectionError"): 3}


MORTAL = """
import os, signal
from n00dles import agent, pipeline, run

@agent
def first(text: str) -> str:
    return text + "!"

@agent
def second(text: str) -> str:
    if "SURVIVES" not in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    return text + "?"

flow = pipeline(first >> second, name="flow")

if __name__ == "__main__":
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    from n00dles.integrations.otel import Telemetry

    provider = TracerProvider()
    out = open("spans.jsonl", "w")
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(None) + "\\n")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    run(flow, run_id="r", store="sqlite:///runs.db", observers=[Telemetry(tracer_provider=provider)], text="x")
"""


def test_a_resumed_life_is_in_the_trace_of_the_killed_one_and_linked_to_it(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mortal.py").write_text(MORTAL, encoding="utf-8")
    killed = subprocess.run([sys.executable, "mortal.py"], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    of_killed = [json.loads(line) for line in (tmp_path / "spans.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [span["name"] for span in of_killed] == ["node first", "save"]

    monkeypatch.setenv("SURVIVES", "yes")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    from mortal import flow  # type: ignore[import-not-found]

    result = resume(flow, "r", store="sqlite:///runs.db", observers=[watched.observer])

    assert result.output == "x!?"
    whole = watched.named("run flow")
    [link] = whole.links
    assert dict(link.attributes or {}) == {"n00dles.link": "first life"}
    # The span of the killed life was never exported, and its nodes say what it was called.
    assert {span["parent_id"] for span in of_killed} == {f"0x{link.context.span_id:016x}"}
    assert {span["context"]["trace_id"] for span in of_killed} == {f"0x{context_of(whole).trace_id:032x}"}
    assert link.context.trace_id == context_of(whole).trace_id
    assert context_of(whole).span_id != link.context.span_id
    assert attributes_of(whole)["n00dles.life"] == 2
    assert attributes_of(whole)["n00dles.completed"] == ("first",)
    assert [span.name for span in watched.spans if span.name.startswith("node")] == ["node second"]
    assert watched.counts("n00dles.runs.reclaimed") == {("flow",): 1}


def test_to_ask_a_finished_run_for_its_result_is_no_re_claim(watched: Watched) -> None:
    store, flow = InMemoryStateStore(), pipeline(fetch, name="flow")
    for _ in range(2):
        run(flow, run_id="r", store=store, observers=[watched.observer], url="u")

    assert watched.counts("n00dles.runs.started") == {("flow",): 2}
    assert watched.counts("n00dles.runs.reclaimed") == {}


def test_another_run_of_the_same_id_has_a_trace_of_its_own(watched: Watched) -> None:
    for _ in range(2):
        run(pipeline(fetch, name="flow"), run_id="r", store=InMemoryStateStore(), observers=[watched.observer], url="u")

    lives = [span for span in watched.spans if span.name == "run flow"]
    assert len({context_of(span).trace_id for span in lives}) == 2


def test_without_the_extra_it_is_a_configuration_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)

    with pytest.raises(ConfigurationError, match=r'pip install "n00dles-testing\[otel\]"'):
        Telemetry()


def test_nothing_of_it_is_imported_until_it_is_used() -> None:
    code = (
        "import sys, n00dles, n00dles.integrations.otel\n"
        "found = [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "assert not found, found"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr

"""Makes the golden files of the formats that this release writes; see README.md.

    python -m tests.golden.make            what is missing is made, and what is there stays

A run that ends too early dies by an exception that nothing catches, at an event of its executor.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from n00dles import Agent, CorruptCheckpointError, PipelineContext, PipelineFailure, aresume, arun, idempotency
from n00dles.events import CheckpointSaved, Event, NodeRetried, NodeReturned, NodeStarted
from n00dles.stores.adapt import as_store

from .flows import FLOWS, parse, writer
from .formats import FORMATS, HERE, Format, JsonFile

__all__ = ["expectations", "made"]


class Death(BaseException):
    """Stands for the end of the process."""


class Golden(NamedTuple):
    """A run to be stored: the lives of it, each of which ends at an event, or by itself."""

    flow: str
    inputs: dict[str, Any]
    lives: tuple[Callable[[Event], bool], ...] = ()
    broken: tuple[str, ...] = ()


def started(node: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, NodeStarted) and event.node == node


def returned(node: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, NodeReturned) and event.node == node


def saved(node: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, CheckpointSaved) and node in event.nodes


def failed_attempt_saved(node: str) -> Callable[[Event], bool]:
    """Return what is true at the first save of nothing after an attempt of `node` has failed."""
    seen: list[bool] = []

    def is_it(event: Event) -> bool:
        if isinstance(event, NodeRetried) and event.node == node:
            seen.append(True)
        return bool(seen) and isinstance(event, CheckpointSaved)

    return is_it


TOPIC = {"topic": "caf\u00e9s \U0001f9e8"}
AWKWARD = {"value": {"b": 1, "a": [1.0, -0.0, 2**70, "\0\u2028\U0001f9e8", None, {}, []]}}


def _golden_runs() -> dict[str, Golden]:
    return {
        "only begun": Golden("magazine", TOPIC, (started("plan"),)),
        "died in the last node": Golden("magazine", {**TOPIC, "length": 7}, (started("publish"),)),
        "died in the fan-out": Golden("magazine", TOPIC, (saved("books"),)),
        "died in the back-off": Golden("magazine", TOPIC, (failed_attempt_saved("writer"),), broken=("writer",)),
        "died before the save of the routed node": Golden("magazine", TOPIC, (returned("writer"),)),
        "died three times": Golden("magazine", TOPIC, (saved("outline"), saved("choose"), started("editor"))),
        "finished": Golden("magazine", TOPIC, broken=("writer",)),
        "another route": Golden("magazine", {**TOPIC, "length": 1}),
        "failed": Golden("import", {"url": "x"}, broken=("parse",)),
        "stalled": Golden("import", {"url": "x"}, (started("parse"), started("parse"), started("parse"))),
        "hostile": Golden("hostile", AWKWARD, (started("last"),)),
        "hostile and finished": Golden("hostile", AWKWARD),
        "../a b/%_\u00e9\U0001f9e8 ": Golden("import", {"url": ""}, (started("store"),)),
    }


async def made(form: Format, folder: Path) -> None:
    """Store all golden runs in `folder`, as this release does it."""
    store = as_store(form.opened(folder))
    for run_id, golden in _golden_runs().items():
        for life in golden.lives or (lambda event: False,):
            with suppress(Death, PipelineFailure), ExitStack() as stack:
                for node in golden.broken:
                    stack.enter_context(_broken(node))
                await arun(FLOWS[golden.flow], run_id=run_id, store=store, observers=[_dying(life)], **golden.inputs)
    close = getattr(store, "aclose", None)
    if close is not None:
        await close()


def _dying(at: Callable[[Event], bool]) -> Callable[[Event], None]:
    def observe(event: Event) -> None:
        if at(event):
            raise Death

    return observe


def _broken(node: str) -> Any:
    """Have the first attempt of the writer fail, and every attempt of the parser."""
    if node == "parse":
        return patch.object(parse, "fn", _fails)
    return patch.object(writer, "provider", _FailingOnce(writer))


def _fails(text: str) -> dict[str, str]:
    raise ValueError("no idea how")


class _FailingOnce:
    def __init__(self, agent: Agent) -> None:
        self._provider = agent.resolve_provider()
        self._has_failed = False

    async def complete(self, prompt: str, system: str, **settings: Any) -> Any:
        if not self._has_failed:
            self._has_failed = True
            raise ConnectionError("the line is busy")
        return await self._provider.complete(prompt, system, **settings)


async def expectation(form: Format, folder: Path, run_id: str) -> dict[str, Any]:
    """Return what is expected of a stored run: what is in it, and what a resume calls and returns."""
    store = as_store(form.opened(folder))
    context: PipelineContext = await store.load(run_id)  # type: ignore[attr-defined]
    flow = _flow_of(context)
    expected = {
        "flow": flow,
        "inputs": context.inputs,
        "completed": dict(context.completed),
        "order": context.order,
        "status": context.status,
        "pipeline": context.pipeline,
        "error": context.error,
        "lives": context.lives,
        "stalled": context.stalled,
        "attempts": {node: [record.attempts, record.spent] for node, record in context.nodes.items()},
        "tokens": {node: [record.input_tokens, record.output_tokens] for node, record in context.nodes.items()},
    }
    called: list[str] = []

    def observe(event: Event) -> None:
        if isinstance(event, NodeStarted):
            called.append(event.node)

    result = await aresume(FLOWS[flow], run_id, store=store, observers=[observe])
    keys = {}
    for node in called:
        with idempotency.node_call(run_id, node, node):
            keys[node] = idempotency.idempotency_key()
    return {**expected, "called": called, "output": result.output, "total_tokens": result.total_tokens, "keys": keys}


def _flow_of(context: PipelineContext) -> str:
    if context.pipeline is not None:
        return context.pipeline
    return {"topic": "desk", "value": "hostile", "url": "import"}[next(iter(context.inputs))]


async def expectations(form: Format, folder: Path) -> dict[str, Any]:
    """Return what is expected of all runs of a format. They are resumed in the way, in `folder`, over a copy."""
    store = form.copied(folder)
    if isinstance(store, JsonFile):
        run_ids = list(store.texts())
    else:
        run_ids = sorted(run.run_id for run in await store.list_runs())
        await store.aclose()
    found: dict[str, Any] = {}
    for run_id in run_ids:
        try:
            found[run_id] = await expectation(form, folder, run_id)
        except CorruptCheckpointError as error:
            found[run_id] = {"unreadable": type(error).__name__}
    return found


def main() -> None:
    """Make what is missing."""
    for form in FORMATS:
        file, expected = form.folder / form.file, form.folder / "expected.json"
        form.folder.mkdir(exist_ok=True)
        if form.is_current and not file.exists():
            asyncio.run(made(form, form.folder))
            print(f"made {file.relative_to(HERE)}")
        if not expected.exists():
            with tempfile.TemporaryDirectory() as folder:
                text = json.dumps(asyncio.run(expectations(form, Path(folder))), indent=1)
            expected.write_text(text + "\n", encoding="utf-8")
            print(f"made {expected.relative_to(HERE)}")


if __name__ == "__main__":
    main()

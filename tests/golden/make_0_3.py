"""Makes n00dles-0.3/runs.sqlite, with the published n00dles 0.3.0 itself; see README.md. It was run once.

    PYTHONPATH=<folder with get-n00dles 0.3.0> python tests/golden/make_0_3.py

Its agents ask a provider that reads its answers from a script, and a run dies at the moment at which one is told to.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

import n00dles
from n00dles import RetryPolicy, agent, branch, parallel, pipeline

TARGET = Path(__file__).parent / "n00dles-0.3" / "runs.sqlite"


class Death(BaseException):
    """Stands for the end of the process: nothing in 0.3 catches it."""


class Script:
    """A provider with one answer; `Death` and errors are raised instead."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def complete(self, prompt: str, system: str, **settings: Any) -> Any:
        if not isinstance(self.answer, str):
            raise self.answer
        await asyncio.sleep(0)
        return SimpleNamespace(content=self.answer, input_tokens=3, output_tokens=5, latency_ms=1.5, model="script")


class Bill(BaseModel):
    title: str
    price: float
    pages: int


HOSTILE = {
    "numbers": """[0, -1, 9007199254740993, 18446744073709551616, -10000000000000000000000000000000000000000,
        1.0, -0.0, 0.1, 1e308, 5e-324, true, false]""",
    "texts": r"""["", "\u0000", "\ufeff\u2028", "e\u0301", "\u00e9", "\ud83e\udde8", "</script>",
        "'); DROP TABLE runs; --"]""",
    "nothing": "null",
    "empties": '{"list": [], "dict": {}, "text": "", "null": null, "": [[]], "a.b": {"$type": "x"}}',
    "deep": "[" * 50 + "]" * 50,
}


def node(name: str, returns: Any, answer: Any, parameters: dict[str, Any]) -> Any:
    def body() -> None: ...

    body.__name__ = name
    body.__doc__ = f"Answer as {name}."
    body.__annotations__ = {**parameters, "return": returns}
    return agent(model="script", provider=Script(answer), retry=RetryPolicy(max_attempts=1))(body)


def desk(**answers: Any) -> Any:
    """The pipeline of most runs; `answers` replace what a node says."""
    said = {
        "researcher": "3 facts",
        "pros": '["fast", "café"]',
        "cons": "null",
        "triage": '{"category": "billing"}',
        "billing": '{"title": "Bill", "price": 1, "pages": 1}',
        "support": "called by nobody",
        "reply": "Bill 1.0",
        **answers,
    }
    researcher = node("researcher", str, said["researcher"], {"topic": str})
    pros = node("pros", list[str], said["pros"], {"researcher": str})
    cons = node("cons", Any, said["cons"], {"researcher": str})
    triage = node("triage", dict[str, str], said["triage"], {"pros": list[str], "cons": Any})
    billing = node("billing", Bill, said["billing"], {"ticket": dict[str, str]})
    support = node("support", str, said["support"], {"ticket": dict[str, str]})
    reply = node("reply", str, said["reply"], {"bill": Bill})
    members = parallel(pros, cons, max_concurrency=1)
    return pipeline(researcher >> members >> triage >> branch(billing=billing, support=support) >> reply, name="desk")


def hostile(last: Any) -> Any:
    chain = node("start", str, "s", {"value": Any})
    for name, answer in HOSTILE.items():
        chain = chain >> node(name, Any, answer, {"before": Any})
    return pipeline(chain >> node("last", str, last, {"before": Any}), name="hostile")


class DyingStore(n00dles.SQLiteStateStore):
    """Dies when it is to save a node, or a group, of this name."""

    def __init__(self, path: str, dies_at: str) -> None:
        super().__init__(path)
        self.dies_at = dies_at

    async def save(self, run_id: str, ctx: Any) -> None:
        if ctx.order[-1].startswith(self.dies_at):
            raise Death
        await super().save(run_id, ctx)


def executor_of(store: Any) -> Any:
    return importlib.import_module("n00dles.core.executor").PipelineExecutor(store)


async def main() -> None:
    path, topic = str(TARGET), {"topic": "agentic search"}
    awkward = {"value": {"b": 1, "a": [1.0, -0.0, 2**70, "🧨"]}}
    runs = [
        ("finished", desk(), topic, None),
        ("died in reply", desk(reply=Death()), topic, None),
        ("died in the fan-out", desk(cons=Death()), topic, None),
        ("died after the routed node", desk(), topic, "branch["),
        ("failed", desk(triage=RuntimeError("no idea")), topic, None),
        ("hostile", hostile(Death()), awkward, None),
        ("hostile and finished", hostile("done"), awkward, None),
        ("not a number", desk(cons="NaN", triage=Death()), topic, None),
        ("half a letter", desk(cons='"\\ud83e"', triage=Death()), topic, None),
    ]
    for run_id, flow, inputs, dies_at in runs:
        store = n00dles.SQLiteStateStore(path) if dies_at is None else DyingStore(path, dies_at)
        try:
            await executor_of(store).execute(flow, run_id, inputs)
        except (Death, n00dles.PipelineFailure) as end:
            print(f"{run_id}: {type(end).__name__}")


if __name__ == "__main__":
    if not hasattr(n00dles, "Tracer"):
        sys.exit("this is another n00dles: put get-n00dles 0.3.0 first on PYTHONPATH")
    if TARGET.exists():
        sys.exit(f"{TARGET} is there, and golden files are never made again")
    asyncio.run(main())

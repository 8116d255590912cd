"""A routed node is called again: the branch saves a record of its own, and only that one is looked at in a resume.

Run it twice in an empty folder, with get-n00dles 0.3.0: the first time it kills itself before the branch's own save.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import n00dles
from n00dles.core.executor import PipelineExecutor


class Model:
    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    async def complete(self, prompt, system, **settings):
        with open("calls", "a") as calls:
            calls.write(self.name + "\n")
        return SimpleNamespace(content=self.answer, input_tokens=1, output_tokens=1, latency_ms=1.0, model="m")


class DiesBeforeTheSaveOfTheBranch(n00dles.SQLiteStateStore):
    async def save(self, run_id, ctx):
        if ctx.order[-1].startswith("branch[") and len(Path("calls").read_text().split()) == 2:
            os.kill(os.getpid(), 9)
        await super().save(run_id, ctx)


@n00dles.agent(model="m", provider=Model("triage", "refund"))
def triage(topic: str) -> str:
    """Choose."""


@n00dles.agent(model="m", provider=Model("refund", "paid back"))
def refund(ticket: str) -> str:
    """Pay it back."""


executor = PipelineExecutor(state=DiesBeforeTheSaveOfTheBranch("runs.sqlite"))
flow = n00dles.pipeline(triage >> n00dles.branch(refund=refund))
asyncio.run(executor.execute(flow, "run", {"topic": "a bill"}))
calls = Path("calls").read_text().split()
print("calls in both lives:", calls)
print("CONFIRMED" if calls.count("refund") == 2 else "not confirmed", "- refund was saved, and was called again")

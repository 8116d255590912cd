"""A resumed node gets another prompt than it would have got: the model that a node returned comes back as a dict.

Run it twice in an empty folder, with get-n00dles 0.3.0: the first time it kills itself as the second node is asked.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

from pydantic import BaseModel

import n00dles
from n00dles.core.executor import PipelineExecutor


class Bill(BaseModel):
    title: str
    price: float


class Model:
    def __init__(self, answer):
        self.answer = answer

    async def complete(self, prompt, system, **settings):
        if self.answer == "paid":
            with open("prompts", "a") as prompts:
                prompts.write(prompt + "\n")
            if len(Path("prompts").read_text().splitlines()) == 1:
                os.kill(os.getpid(), 9)
        return SimpleNamespace(content=self.answer, input_tokens=1, output_tokens=1, latency_ms=1.0, model="m")


@n00dles.agent(model="m", provider=Model('{"title": "a bill", "price": 3}'))
def find(topic: str) -> Bill:
    """Find it."""


@n00dles.agent(model="m", provider=Model("paid"))
def pay(bill: Bill) -> str:
    """Pay it."""


executor = PipelineExecutor(state=n00dles.SQLiteStateStore("runs.sqlite"))
asyncio.run(executor.execute(n00dles.pipeline(find >> pay), "run", {"topic": "a bill"}))
first, second = Path("prompts").read_text().splitlines()
print("prompt in life 1:", first)
print("prompt in life 2:", second)
print("CONFIRMED" if first != second else "not confirmed", "- the same node is asked something else after a kill")

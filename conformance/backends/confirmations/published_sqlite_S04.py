"""get-n00dles SQLiteStateStore: of a model in a field that is declared as its base, the fields of its own are lost."""

import asyncio
import sys
from typing import Any

sys.path.insert(0, f"{sys.prefix}/published")

from pydantic import BaseModel

from n00dles import PipelineContext, SQLiteStateStore


class Fact(BaseModel):
    title: str


class Scored(Fact):
    score: float


class Report(BaseModel):
    fact: Fact


store: Any = SQLiteStateStore("runs.db")
run = PipelineContext("run", {"topic": "cats"})
run.checkpoint("writer", Report(fact=Scored(title="On Cats", score=0.5)))
asyncio.run(store.save("run", run))
found = asyncio.run(store.load("run")).completed["writer"]
print(f"saved with a score of 0.5, and loaded: {found}")
sys.exit(0 if found == {"fact": {"title": "On Cats"}} else 1)

"""The small pipeline for the published n00dles 0.3, run in its own environment: see `n00dles_0_3`.

Its nodes are models, so the functions are what a model would be: they get a prompt, and return text.
"""

# Its packages are installed elsewhere.
# mypy: ignore-errors

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel

import n00dles
from n00dles.core.executor import PipelineExecutor


class Article(BaseModel):
    text: str
    category: str


def outline(prompt: str) -> str:
    points = [f"what {prompt} are", f"where {prompt} live"]
    return json.dumps(points)


def facts(prompt: str) -> str:
    found = [f"known of {prompt}"]
    return json.dumps(found)


def images(prompt: str) -> str:
    found = ["cover.png"]
    return json.dumps(found)


def article(prompt: str) -> str:
    text = f"about {prompt}"
    return json.dumps({"text": text, "category": "online"})


def online(prompt: str) -> str:
    words = len(prompt.split())
    return f"/articles/{words}-words"


def printed(prompt: str) -> str:
    words = len(prompt.split())
    return f"page {words}"


def archive(prompt: str) -> str:
    parts = prompt.split()
    return f"published at {'-'.join(parts)}"


class Model:
    """A provider that asks a function."""

    def __init__(self, function: Any) -> None:
        self.function = function

    async def complete(self, prompt: str, system: str, **settings: Any) -> Any:
        return SimpleNamespace(
            content=self.function(prompt), input_tokens=1, output_tokens=1, latency_ms=1.0, model="function"
        )


def node(function: Any, returns: Any, **parameters: Any) -> Any:
    """Return an agent that is answered by a function of the same name."""

    def body() -> None: ...

    body.__name__, body.__doc__ = function.__name__, f"Answer as {function.__name__}."
    body.__annotations__ = {**parameters, "return": returns}
    return n00dles.agent(model="function", provider=Model(function))(body)


chain = (
    node(outline, list[str], topic=str)
    >> n00dles.parallel(node(facts, list[str], outline=list[str]), node(images, list[str], outline=list[str]))
    >> node(article, Article, facts=list[str], images=list[str])
    >> n00dles.branch(online=node(online, str, article=Article), printed=node(printed, str, article=Article))
    >> node(archive, str, address=str)
)


async def run(topic: str, folder: str) -> str:
    """Run the pipeline, or go on with it."""
    executor = PipelineExecutor(state=n00dles.SQLiteStateStore(f"{folder}/runs.sqlite"))
    result = await executor.execute(n00dles.pipeline(chain, retry=1), "run", {"topic": topic})
    return str(result.output)

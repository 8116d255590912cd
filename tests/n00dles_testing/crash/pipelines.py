"""Pipelines to be killed: small, deterministic, and at the top level of a module, so that other processes find them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from n00dles import LLMResponse, RetryPolicy, agent, branch, parallel, pipeline


class Article(BaseModel):
    title: str
    words: int


class ScriptedModel:
    """Answers with the prompt in capitals, at ten tokens in and five out."""

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        return LLMResponse(content=prompt.upper(), input_tokens=10, output_tokens=5)


@agent
def draft(topic: str) -> Article:
    title = topic.strip()
    words = len(title.split())
    return Article(title=title, words=words)


@agent
async def edit(article: Article) -> str:
    # Takes either on purpose: a dict on resume then changes no output, and only the types give it away.
    title: str = article["title"] if isinstance(article, dict) else article.title
    return title.title()


@agent
def publish(text: str) -> dict[str, Any]:
    return {"text": text, "length": len(text)}


chain = pipeline(draft >> edit >> publish, name="chain")


@agent(model="scripted", provider=ScriptedModel())
def ask(topic: str) -> str:
    """Say it louder."""


@agent(model="scripted", provider=ScriptedModel())
def answer(question: str) -> str:
    """Answer the question."""


@agent
def sign(text: str) -> str:
    return f"{text} - signed"


conversation = pipeline(ask >> answer >> sign, name="conversation")


@agent(model="gpt-4o-mini")
def soprano(topic: str) -> str:
    """Sing soprano."""


@agent(model="gpt-4o-mini")
def alto(topic: str) -> str:
    """Sing alto."""


@agent(model="gpt-4o-mini")
def tenor(topic: str) -> str:
    """Sing tenor."""


chorus = pipeline(soprano | alto | tenor, name="chorus")


@agent
def start(text: str) -> str:
    return text


@agent
async def left(text: str) -> str:
    return text + "-left"


@agent
def middle(text: str) -> str:
    return text + "-middle"


@agent
async def right(text: str) -> str:
    return text + "-right"


@agent
def join(left: str, middle: str, right: str) -> dict[str, str]:
    return {"category": "long" if len(left) > 8 else "short", "text": left + middle + right}


@agent
def shorten(case: dict[str, str]) -> str:
    return case["text"][:10]


@agent
def keep(case: dict[str, str]) -> str:
    return case["text"]


fan = pipeline(
    start >> parallel(left, middle, right, max_concurrency=1) >> join >> branch(long=shorten, default=keep), name="fan"
)

wide = pipeline(start >> (left | middle | right) >> join >> branch(long=shorten, default=keep), name="wide")


class RefusesOnce:
    """Refuses the first request of each process, and answers the next."""

    def __init__(self) -> None:
        self.requests = 0

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        self.requests += 1
        if self.requests == 1:
            raise ConnectionError("busy")
        return LLMResponse(content=prompt.upper(), input_tokens=10, output_tokens=5)


@agent(model="scripted", provider=RefusesOnce())
def insist(topic: str) -> str:
    """Ask until there is an answer."""


insisting = pipeline(insist >> sign, name="insisting", retry=RetryPolicy(max_attempts=4, base_delay=20, max_delay=20))

"""The pipelines of the golden runs. What a node answers is fixed, so that a resumed run can be judged in any release.

A pipeline is never changed once a golden file has runs of it: what its nodes are called, read and declare is compared
when they are resumed. A new release that needs other pipelines adds them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, Field, computed_field

from n00dles import Agent, Pipeline, RetryPolicy, agent, branch, parallel, pipeline
from n00dles.providers import LLMResponse

__all__ = ["FLOWS"]

# Runs that 0.3 has started.


class Bill(BaseModel):
    title: str
    price: float
    pages: int


@agent
def researcher(topic: str) -> str:
    return "3 facts"


@agent
def pros(researcher: str) -> list[str]:
    return ["fast", "café"]


@agent
def cons(researcher: str) -> Any:
    return None


@agent
def triage(pros: list[str], cons: Any) -> dict[str, str]:
    return {"category": "billing"}


@agent
def billing(ticket: dict[str, str]) -> Bill:
    return Bill(title="Bill", price=1, pages=1)


@agent
def support(ticket: dict[str, str]) -> str:
    return "called by nobody"


@agent
def reply(bill: Bill) -> str:
    return f"{bill.title} {bill.price}"


both = parallel(pros, cons, max_concurrency=1)

DESK = pipeline(researcher >> both >> triage >> branch(billing=billing, support=support) >> reply, name="desk")

NUMBERS = [0, -1, 2**53 + 1, 2**64, -(10**40), 1.0, -0.0, 0.1, 1e308, 5e-324, True, False]
TEXTS = ["", "\0", "\ufeff\u2028", "e\u0301", "\u00e9", "\U0001f9e8", "</script>", "'); DROP TABLE runs; --"]
EMPTIES: dict[str, Any] = {"list": [], "dict": {}, "text": "", "null": None, "": [[]], "a.b": {"$type": "x"}}


def constant(name: str, output: Any) -> Agent:
    @agent
    def body(before: Any) -> Any:
        return output

    return body.named(name)


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@agent
def start(value: Any) -> str:
    return "s"


@agent
def last(before: Any) -> str:
    return "done"


HOSTILE = pipeline(
    start
    >> constant("numbers", NUMBERS)
    >> constant("texts", TEXTS)
    >> constant("nothing", None)
    >> constant("empties", EMPTIES)
    >> constant("deep", deep(50))
    >> last,
    name="hostile",
)

# Runs that the first release with schema 1 has started: everything that can stand in a pipeline.


class Tone(Enum):
    DRY = "dry"
    WARM = "warm"


class Web(BaseModel):
    kind: Literal["web"] = "web"
    address: str


class Book(BaseModel):
    kind: Literal["book"] = "book"
    pages: int | None = None


class Article(BaseModel):
    title: str = Field(alias="headLine")
    tone: Tone
    published: datetime
    price: Decimal
    sources: list[Web | Book]
    parent: Article | None = None

    @computed_field
    def words(self) -> int:
        return len(self.title.split())


class Echo:
    """A model that answers with its prompt, and bills a token a character."""

    def __init__(self, answer: str = "") -> None:
        self.answer = answer

    async def complete(self, prompt: str, system: str, **settings: Any) -> LLMResponse:
        content = self.answer or f"{system} {prompt}"
        return LLMResponse(content=content, model="echo", input_tokens=len(prompt), output_tokens=len(content))


@agent
async def plan(topic: str, length: int = 3) -> dict[str, Any]:
    return {"category": "long" if length > 2 else "short", "topic": topic, "length": length}


@agent(model="echo", provider=Echo())
def outline(plan: dict[str, Any]) -> str:
    """Outline it."""


@agent
def web(outline: str) -> list[str]:
    return ["https://example.org/\U0001f9e8"]


@agent
async def books(outline: str) -> dict[str, int]:
    return {"pages": 10**20}


@agent
def check(books: dict[str, int]) -> None:
    pass


@agent
def choose(plan: dict[str, Any], web: list[str]) -> dict[str, Any]:
    return {**plan, "found": len(web)}


@agent(
    model="echo",
    provider=Echo(
        '{"headLine": "A \\u00e9 title", "tone": "warm", "published": "2026-02-03T04:05:06+07:00", "price": "1.10", '
        '"sources": [{"kind": "book"}, {"kind": "web", "address": "a"}], "parent": {"headLine": "", "tone": "dry", '
        '"published": "2026-01-01T00:00:00Z", "price": "0.1", "sources": []}}'
    ),
    retry=RetryPolicy(3, base_delay=0.001, jitter=False),
)
def writer(web: list[str], library: None, choose: dict[str, Any]) -> Article:
    """Write it."""


@agent
def note(plan: dict[str, Any]) -> Article:
    return Article(headLine="", tone=Tone.DRY, published=datetime(2026, 1, 1, tzinfo=UTC), price=Decimal(0), sources=[])


def say(article: Article) -> str:
    return f"{article.title} ({article.words} words, {article.tone.value})"


@agent
def sub_editor(article: Article) -> dict[str, Any]:
    return {"text": say(article), "score": 1.0, "by": None}


@agent(retry=1, fallback=sub_editor)
def editor(article: Article) -> dict[str, Any]:
    raise RuntimeError("the fallback is asked")


@agent
def publish(editor: dict[str, Any], topic: str) -> list[Any]:
    return [topic, editor["text"], -0.0, {}]


library = pipeline(books >> check, name="library", retry=2)

MAGAZINE = pipeline(
    plan
    >> outline
    >> parallel(web, library, max_concurrency=1)
    >> choose
    >> branch(long=writer, short=note, default=note.named("note_else"))
    >> editor
    >> publish,
    name="magazine",
)


@agent
def fetch(url: str) -> str:
    return f"<{url}>"


@agent(retry=RetryPolicy(2, base_delay=0.001, jitter=False))
def parse(text: str) -> dict[str, str]:
    return {"text": text}


@agent
def store(parsed: dict[str, str]) -> int:
    return len(parsed["text"])


IMPORT = pipeline(fetch >> parse >> store, name="import")

FLOWS: dict[str, Pipeline] = {"desk": DESK, "hostile": HOSTILE, "magazine": MAGAZINE, "import": IMPORT}

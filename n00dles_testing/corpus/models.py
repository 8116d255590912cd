"""Pydantic models of which a dump loses something, if it is not the right one."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    RootModel,
    SecretStr,
    SerializeAsAny,
    computed_field,
    field_serializer,
)

from .hostile import Expected

__all__ = ["MODELS", "HostileModel"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostileModel:
    """A model, and what must become of it.

    `expected` is "kept": `dump`, its `model_dump(mode="json")`, comes back as plain JSON types; or "refused": that dump
    loses a part, and `dump` is what it would have to be to hold everything. `harm` is what it becomes where nobody
    looks.
    """

    title: str
    expected: Expected
    make: Callable[[], BaseModel]
    dump: Any
    harm: str

    def value(self) -> BaseModel:
        """Return a fresh instance."""
        return self.make()

    def __str__(self) -> str:
        return self.title


class _Fact(BaseModel):
    title: str


class _Scored(_Fact):
    score: float


class _Holder(BaseModel):
    fact: _Fact


class _OpenHolder(BaseModel):
    fact: SerializeAsAny[_Fact]
    facts: list[SerializeAsAny[_Fact]]


class _Aliased(BaseModel):
    head: str = Field(alias="Head-Line")
    word_count: int = Field(validation_alias="wordCount", serialization_alias="words")


class _DumpedByAlias(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    key: str = Field(alias="_id")
    kind: str = Field(alias="$type")


class _Computed(BaseModel):
    words: list[str]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.words)


class _Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class _Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


class _Kennel(BaseModel):
    animals: list[Annotated[_Cat | _Dog, Field(discriminator="kind")]]


class _Page(BaseModel, Generic[T]):
    items: list[T]
    next: T | None = None


_FactPage = _Page[_Fact]


class _Extra(BaseModel):
    model_config = ConfigDict(extra="allow")

    title: str


class _Private(BaseModel):
    title: str
    _cache: dict[str, int] = PrivateAttr(default_factory=lambda: {"hits": 3})


class _Defaults(BaseModel):
    title: str = "untitled"
    source: str | None = None
    tags: list[str] = []


class _Tree(BaseModel):
    name: str
    children: list[_Tree] = []


class _Mood(enum.Enum):
    CALM = "calm"


class _Typed(BaseModel):
    at: datetime
    price: Decimal
    id: uuid.UUID
    mood: _Mood
    pair: tuple[int, str]
    raw: bytes
    by_number: dict[int, str]


class _ByHand(BaseModel):
    seconds: float

    @field_serializer("seconds")
    def _as_text(self, value: float) -> str:
        return f"{value:g} s"


class _Excluded(BaseModel):
    title: str
    client: Any = Field(default=None, exclude=True)


class _Login(BaseModel):
    user: str
    password: SecretStr


class _Numbers(RootModel[list[int]]):
    """A model that is a list."""


def _kept(title: str, make: Callable[[], BaseModel], dump: Any, harm: str) -> HostileModel:
    return HostileModel(title, "kept", make, dump, harm)


def _refused(title: str, make: Callable[[], BaseModel], dump: Any, harm: str) -> HostileModel:
    return HostileModel(title, "refused", make, dump, harm)


_WHOLE_FACT = {"title": "Cats", "score": 0.5}

MODELS: tuple[HostileModel, ...] = (
    _kept("a model", lambda: _Scored(title="Cats", score=0.5), _WHOLE_FACT, "becomes its repr as a text, or None"),
    _kept(
        "a subclass in a field that serializes as any",
        lambda: _OpenHolder(fact=_Scored(title="Cats", score=0.5), facts=[_Scored(title="Cats", score=0.5)]),
        {"fact": _WHOLE_FACT, "facts": [_WHOLE_FACT]},
        "loses the fields of the subclass",
    ),
    _kept(
        "aliases",
        lambda: _Aliased.model_validate({"Head-Line": "Cats", "wordCount": 2}),
        {"head": "Cats", "word_count": 2},
        "comes back under names that its model does not take",
    ),
    _kept(
        "aliases that are dumped",
        lambda: _DumpedByAlias.model_validate({"_id": "7", "$type": "note"}),
        {"_id": "7", "$type": "note"},
        "loses keys that the database has for its own",
    ),
    _kept(
        "a computed field",
        lambda: _Computed(words=["purr"]),
        {"words": ["purr"], "count": 1},
        "loses the computed field",
    ),
    _kept(
        "a discriminated union",
        lambda: _Kennel(animals=[_Dog(tricks=["sit"]), _Cat()]),
        {"animals": [{"kind": "dog", "tricks": ["sit"]}, {"kind": "cat", "lives": 9}]},
        "loses the discriminator, which is a default, or becomes another member",
    ),
    _kept(
        "a generic",
        lambda: _FactPage(items=[_Fact(title="Cats")]),
        {"items": [{"title": "Cats"}], "next": None},
        "cannot be found by its name in another process",
    ),
    _kept(
        "extra fields",
        lambda: _Extra.model_validate({"title": "Cats", "source": {"url": None}, "model": "m"}),
        {"title": "Cats", "source": {"url": None}, "model": "m"},
        "loses the extra fields",
    ),
    _kept("a private attribute", lambda: _Private(title="Cats"), {"title": "Cats"}, "shows what is private"),
    _kept(
        "defaults that were never set",
        _Defaults,
        {"title": "untitled", "source": None, "tags": []},
        "loses what is a default or None",
    ),
    _kept(
        "a model that holds itself",
        lambda: _Tree(name="a", children=[_Tree(name="b", children=[_Tree(name="c")])]),
        {"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]},
        "is cut at some depth",
    ),
    _kept(
        "fields of types that JSON lacks",
        lambda: _Typed(
            at=datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=1))),
            price=Decimal("0.10"),
            id=uuid.UUID(int=7),
            mood=_Mood.CALM,
            pair=(1, "a"),
            raw=b"purr",
            by_number={1: "one"},
        ),
        {
            "at": "2026-10-25T02:30:00+01:00",
            "price": "0.10",
            "id": "00000000-0000-0000-0000-000000000007",
            "mood": "calm",
            "pair": [1, "a"],
            "raw": "purr",
            "by_number": {"1": "one"},
        },
        "is dumped in another form than Pydantic reads",
    ),
    _kept("a serializer of its own", lambda: _ByHand(seconds=1.5), {"seconds": "1.5 s"}, "is passed over"),
    _kept("an excluded field", lambda: _Excluded(title="Cats", client="a handle"), {"title": "Cats"}, "is dumped"),
    _kept("a model that is a list", lambda: _Numbers([1, 2]), [1, 2], "becomes a dict with a root"),
    _refused(
        "a subclass in a field declared as its base",
        lambda: _Holder(fact=_Scored(title="Cats", score=0.5)),
        {"fact": _WHOLE_FACT},
        "loses the fields of the subclass without a word",
    ),
    _refused(
        "a secret in a model",
        lambda: _Login(user="cat", password=SecretStr("purr")),
        {"user": "cat", "password": "purr"},
        "comes back as asterisks, and a resumed run signs in with them",
    ),
    _refused(
        "NaN in a model",
        lambda: _Extra.model_validate({"title": "Cats", "score": float("nan")}),
        {"title": "Cats", "score": float("nan")},
        "becomes null",
    ),
    _refused(
        "keys that collide in a model",
        lambda: _Extra.model_validate({"title": "Cats", "by_key": {1: "number", "1": "text"}}),
        {"title": "Cats", "by_key": {1: "number", "1": "text"}},
        "collapse into one: a value is lost",
    ),
)
"""A context stores the dump of each, or refuses it; a store gives back a plain dict that is equal to that dump."""

"""Replies that are made up: valid for the schema, the same for the same request, another one for another."""

from __future__ import annotations

import enum
import ipaddress
import json
import subprocess
import sys
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, Json, TypeAdapter, create_model

from n00dles.providers import anthropic, openai
from n00dles.providers.schemas import AnswerSchema
from n00dles_testing.llm.auto import automatic_reply
from n00dles_testing.llm.schema_error import SchemaError


class Mood(enum.Enum):
    GOOD = "good"
    BAD = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(gt=3, lt=6)]


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["dog"]
    tricks: list[str]


class Tree(BaseModel):
    label: str
    left: Tree | None = None
    children: list[Tree] = Field(default_factory=list, max_length=3)


class Linked(BaseModel):
    next: Linked | Literal["end"]


LEAVES: list[Any] = [
    str, int, float, bool, None, Any, Decimal, date, datetime, time, timedelta, uuid.UUID, bytes, Mood, AnyUrl,
    Literal["a", "b", 3], ipaddress.IPv4Address, ipaddress.IPv6Address, Json[list[int]], Cat, Dog, Tree, Linked,
    Annotated[Cat | Dog, Field(discriminator="kind")],
    Annotated[str, Field(min_length=30)],
    Annotated[str, Field(max_length=4)],
    Annotated[str, Field(min_length=7, max_length=7)],
    Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3,5}(x|yz)?$")],
    Annotated[str, Field(pattern=r"[^a-z\s]\w+")],
    Annotated[int, Field(ge=-5, le=-5)],
    Annotated[int, Field(multiple_of=7, ge=20)],
    Annotated[int, Field(le=-100)],
    Annotated[float, Field(gt=0, lt=0.001)],
    Annotated[float, Field(ge=0, le=1)],
    Annotated[Decimal, Field(gt=0, max_digits=12)],
]  # fmt: skip

HASHABLE: list[Any] = [str, int, Mood, uuid.UUID, date, Literal["a", "b"], Annotated[str, Field(pattern="^k[0-9]+$")]]


def _of(generic: Any, *inside: Any) -> Any:
    return generic[inside if len(inside) > 1 else inside[0]]


def _combined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["title", "body", "type", "enum", "$ref", "items"])
    return st.one_of(
        inner.map(lambda kind: _of(list, kind)),
        inner.map(lambda kind: _of(Optional, kind)),
        st.tuples(inner, inner).map(lambda kinds: _of(Union, *kinds)),
        inner.map(lambda kind: _of(Annotated, _of(list, kind), Field(min_length=2, max_length=4))),
        st.tuples(inner, inner).map(lambda kinds: _of(tuple, *kinds)),
        st.tuples(st.sampled_from(HASHABLE), inner).map(lambda kinds: _of(dict, *kinds)),
        st.sampled_from(HASHABLE).map(lambda kind: _of(set, kind)),
        st.dictionaries(names, inner, min_size=1).map(_model),
    )


def _model(fields: dict[str, Any]) -> type[BaseModel]:
    declared: dict[str, Any] = {
        f"field_{place}": (kind, Field(alias=name)) for place, (name, kind) in enumerate(fields.items())
    }
    return create_model("Made", **declared)


SHAPES = st.recursive(st.sampled_from(LEAVES), _combined, max_leaves=6)


def request_for(prompt: str, schema: dict[str, Any] | None) -> str:
    return json.dumps({"prompt": prompt, "schema": schema}, sort_keys=True)


def reply_for(prompt: str, schema: dict[str, Any] | None) -> str:
    return automatic_reply(request_for(prompt, schema), prompt, schema)


@pytest.mark.parametrize("declared", LEAVES, ids=str)
def test_a_reply_to_every_kind_of_value_is_valid(declared: Any) -> None:
    adapter = TypeAdapter(declared)
    schema = adapter.json_schema()

    replies = [reply_for(f"prompt {number}", schema) for number in range(40)]

    assert len([adapter.validate_json(reply) for reply in replies]) == 40


@given(declared=SHAPES, prompt=st.text(max_size=20))
@settings(max_examples=150, deadline=None)
def test_a_reply_is_valid_for_models_of_any_shape(declared: Any, prompt: str) -> None:
    adapter = TypeAdapter(declared)
    schema = adapter.json_schema()

    reply = reply_for(prompt, schema)

    adapter.validate_json(reply)
    assert reply == reply_for(prompt, schema)


@given(declared=SHAPES, provider=st.sampled_from([openai, anthropic]))
@settings(max_examples=150, deadline=None)
def test_a_reply_is_also_valid_when_asked_for_as_a_provider_does(declared: Any, provider: Any) -> None:
    """What an API cannot enforce is in the description, and found there, as a model would."""
    adapter = TypeAdapter(declared)
    sent = AnswerSchema.of(adapter.json_schema(), provider._enforces)

    reply = reply_for("topic", sent.schema)

    adapter.validate_json(sent.unwrap(reply))
    assert reply == reply_for("topic", sent.schema)


def test_another_request_gets_another_reply_and_an_equal_one_the_same() -> None:
    texts = {reply_for(f"prompt {number}", None) for number in range(500)}
    structured = {reply_for(f"prompt {number}", Dog.model_json_schema()) for number in range(500)}

    assert (len(texts), len(structured)) == (500, 500)
    assert reply_for("prompt 1", None) in texts


def test_a_reply_does_not_depend_on_the_process() -> None:
    code = "from n00dles_testing.llm.auto import automatic_reply; print(automatic_reply('{}', 'why is it so', None))"

    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    assert said == automatic_reply("{}", "why is it so", None)
    assert said == (
        "In short, on 'why is it so': costs fall when work is not done twice, small steps are easier to check than "
        "large ones, what is written down survives a restart [44136fa355b3]."
    )


def test_a_recursive_model_ends() -> None:
    deepest = 0

    for number in range(200):
        reply = reply_for(f"prompt {number}", Tree.model_json_schema())
        deepest = max(deepest, reply.count("["))
        Tree.model_validate_json(reply)

    assert 1 < deepest < 500


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#"},
        {"type": "colour"},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "string", "pattern": "^(?!)$"},
        {"type": "string", "pattern": "("},
        {"type": "array", "items": {"const": 1}, "uniqueItems": True, "minItems": 2},
        {"anyOf": [False]},
    ],
    ids=str,
)
def test_a_schema_without_a_known_value_is_an_error_and_not_a_wrong_reply(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        reply_for("topic", schema)


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": ["string", "null"]}, lambda value: value is None or isinstance(value, str)),
        ({"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]}, lambda value: value.keys() == {"a", "b"}),
        ({"minimum": 3, "maximum": 4}, lambda value: 3 <= value <= 4),
        ({"type": "object"}, lambda value: isinstance(value, dict) and value),
        ({"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"const": 2}}, "required": ["b"]}],
          "$defs": {"A": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}}},
         lambda value: value == {"a": 1, "b": 2}),
    ],
)  # fmt: skip
def test_schemas_that_people_write_by_hand_are_understood(schema: dict[str, Any], fits: Any) -> None:
    assert fits(json.loads(reply_for("topic", schema)))

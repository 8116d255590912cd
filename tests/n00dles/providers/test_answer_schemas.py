"""What of a JSON schema the APIs can enforce, and what they are told instead."""

from __future__ import annotations

import enum
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from n00dles.providers import anthropic, openai
from n00dles.providers.schemas import AnswerSchema


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = Field(default_factory=list, max_length=3)


class Report(BaseModel):
    name: Annotated[str, Field(min_length=3, description="Full name.")]
    mood: Mood = Field(Mood.GOOD, description="As seen.")
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    price: Decimal
    code: Annotated[str, Field(json_schema_extra={"pattern": "^(?!0)[0-9]+$"})]
    note: str | None = None


class Tree(BaseModel):
    children: list[Tree] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def answer_schema(schema: dict[str, Any]) -> AnswerSchema:
    return AnswerSchema.of(schema, openai._enforces)


def objects_in(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for each in schema for found in objects_in(each)]
    if not isinstance(schema, dict):
        return []
    return [schema] * (schema.get("type") == "object") + [
        found for each in schema.values() for found in objects_in(each)
    ]


def keywords_in(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(keywords_in, schema))
    if not isinstance(schema, dict):
        return set()
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    inner += [value for key, value in schema.items() if key not in ("properties", "$defs")]
    return set(schema) | set().union(*map(keywords_in, inner))


def test_a_model_is_closed_everywhere_and_only_has_keywords_that_are_enforced() -> None:
    answer = answer_schema(Report.model_json_schema())

    assert (answer.closed, answer.wrapped, answer.recursive, answer.name) == (True, False, False, "Report")
    assert len(objects_in(answer.schema)) == 3
    for found in objects_in(answer.schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
    assert not keywords_in(answer.schema) & {"default", "oneOf", "discriminator", "minLength"}


def test_what_is_not_enforced_stands_in_the_description() -> None:
    properties = answer_schema(Report.model_json_schema()).schema["properties"]

    assert properties["name"]["description"] == 'Full name. {"minLength": 3}'
    assert properties["mood"] == {"anyOf": [{"$ref": "#/$defs/Mood"}], "description": "As seen."}
    assert properties["code"]["description"] == '{"pattern": "^(?!0)[0-9]+$"}'  # the API knows no look-ahead
    assert "pattern" not in properties["code"]


@pytest.mark.parametrize(
    "declared",
    [dict[str, int], list[Any], tuple[int, str], Open, dict[str, Any], list[Open]],
    ids=str,
)
def test_what_cannot_be_closed_is_kept_as_it_is(declared: Any) -> None:
    schema = TypeAdapter(declared).json_schema()

    answer = answer_schema(schema)

    assert not answer.closed
    inner = answer.schema["properties"]["value"] if answer.wrapped else answer.schema
    assert inner == {key: value for key, value in schema.items() if key != "$defs" or not answer.wrapped}


def test_a_model_that_contains_itself_is_recognised_and_wrapped() -> None:
    answer = answer_schema(Tree.model_json_schema())

    assert (answer.closed, answer.recursive, answer.wrapped) == (True, True, True)
    assert answer.schema["properties"] == {"value": {"$ref": "#/$defs/Tree"}}
    assert "Tree" in answer.schema["$defs"]


def test_a_wrapped_answer_is_unwrapped_and_other_text_is_left_alone() -> None:
    answer = answer_schema({"type": "array", "items": {"type": "string"}})

    assert answer.unwrap('{"value": ["ä", "b"]}') == '["ä", "b"]'
    assert answer.unwrap("no JSON") == "no JSON"
    assert answer.unwrap("[1]") == "[1]"


def test_each_api_is_sent_only_what_it_enforces() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3, "description": "Years."}}}

    for_openai = AnswerSchema.of(schema, openai._enforces).schema["properties"]["n"]
    for_anthropic = AnswerSchema.of(schema, anthropic._enforces).schema["properties"]["n"]

    assert for_openai == {"type": "integer", "minimum": 3, "description": "Years."}
    assert for_anthropic == {"type": "integer", "description": 'Years. {"minimum": 3}'}


def test_the_caller_s_schema_is_not_changed() -> None:
    schema = Report.model_json_schema()

    answer_schema(schema)

    assert schema == Report.model_json_schema()

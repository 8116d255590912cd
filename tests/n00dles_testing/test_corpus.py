"""The corpus of hostile values keeps its own promises, and our context does with each what it says."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from n00dles import PipelineContext, SerializationError
from n00dles.serialization import dumps, loads
from n00dles_testing.corpus import BENT, FOREIGN, KEPT, MODELS, Hostile, HostileModel, hostile_values, same


@pytest.mark.parametrize("hostile", hostile_values("kept"), ids=str)
def test_a_context_keeps_what_json_holds_exactly(hostile: Hostile) -> None:
    ctx = PipelineContext("run", {"value": hostile.value()})

    ctx.checkpoint("node", hostile.value())

    assert same(hostile.value(), ctx.completed["node"])
    assert same(hostile.value(), ctx.inputs["value"])
    assert same(hostile.value(), loads(dumps(ctx.completed["node"])))


@pytest.mark.parametrize("hostile", hostile_values("refused"), ids=str)
def test_a_context_refuses_the_rest_naming_node_and_path(hostile: Hostile) -> None:
    ctx = PipelineContext("run", {})

    with pytest.raises(SerializationError) as refused:
        ctx.checkpoint("node", {"deep": hostile.value()})

    assert str(refused.value).startswith("node 'node': ")
    assert f"output['deep']{hostile.path}" in str(refused.value)
    assert ctx.completed == {}
    with pytest.raises(SerializationError, match=r"inputs\['value'\]"):
        PipelineContext("run", {"value": hostile.value()})


@pytest.mark.parametrize("hostile", BENT, ids=str)
def test_what_is_bent_is_taken_by_json_and_is_no_strict_json_or_something_else(hostile: Hostile) -> None:
    text = json.dumps(hostile.value(), ensure_ascii=False)

    try:
        text.encode()
        came = loads(text)
    except ValueError:
        return
    assert not same(hostile.value(), came)


@pytest.mark.parametrize("hostile", FOREIGN, ids=str)
def test_what_is_foreign_is_refused_by_json_and_lost_as_text(hostile: Hostile) -> None:
    with pytest.raises(TypeError):
        json.dumps(hostile.value())

    assert not same(hostile.value(), json.loads(json.dumps(hostile.value(), default=str)))
    assert same(hostile.value(), hostile.value())


def test_titles_are_unique_and_every_value_is_in_one_group() -> None:
    titles = [hostile.title for hostile in hostile_values()]

    assert len(titles) == len(set(titles)) == len(hostile_values("kept")) + len(hostile_values("refused"))
    assert hostile_values("kept") == KEPT


@pytest.mark.parametrize("hostile", [each for each in KEPT if isinstance(each.value(), list | dict)], ids=str)
def test_a_value_is_fresh_each_time(hostile: Hostile) -> None:
    hostile.value().clear()

    assert hostile.value()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], (1,)),
        ({1: "a"}, {"1": "a"}),
        ({True: "a"}, {1: "a"}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": None}, {"b": None}),
        ([1, 2], [1]),
        ({1}, frozenset({1})),
        ("caf\u00e9", "cafe\u0301"),
        (SecretStr("a"), SecretStr("b")),
        (datetime(2026, 10, 25, 2, 30, fold=0, tzinfo=UTC), datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=UTC)),
    ],
)
def test_values_that_look_alike_are_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same([{"deep": other}], [{"deep": one}])


@pytest.mark.parametrize("value", [math.nan, {"a": [math.nan]}, {1, 2}, SecretStr("a"), -0.0, {"b": 1, "a": (2,)}])
def test_a_value_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)


def test_the_order_of_keys_makes_no_difference() -> None:
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1})


@pytest.mark.parametrize("model", [each for each in MODELS if each.expected == "kept"], ids=str)
def test_a_context_keeps_the_dump_of_a_model(model: HostileModel) -> None:
    ctx = PipelineContext("run", {})

    ctx.checkpoint("node", model.value())

    assert same(model.dump, ctx.completed["node"])
    assert same(model.dump, model.value().model_dump(mode="json"))


@pytest.mark.parametrize("model", [each for each in MODELS if each.expected == "refused"], ids=str)
def test_a_context_refuses_a_model_whose_dump_loses_a_part(model: HostileModel) -> None:
    ctx = PipelineContext("run", {})

    with pytest.raises(SerializationError, match=r"^node 'node': output"):
        ctx.checkpoint("node", model.value())

    assert not same(model.dump, model.value().model_dump(mode="json"))
    assert ctx.completed == {}


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_model_is_fresh_each_time_and_the_same(model: HostileModel) -> None:
    assert model.value() is not model.value()
    assert same(model.value(), model.value())
    assert not same(model.value(), model.dump)


def test_models_that_differ_in_what_cannot_be_seen_are_not_the_same() -> None:
    [private] = [each for each in MODELS if each.title == "a private attribute"]
    [secret] = [each for each in MODELS if each.title == "a secret in a model"]
    other = private.value()
    other._cache = {}  # type: ignore[attr-defined]

    assert not same(private.value(), other)
    assert not same(secret.value(), secret.value().model_copy(update={"password": SecretStr("**********")}))

"""Generated models, values and ids: of every kind, exact to store, and refused where they could not be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from n00dles.errors import SerializationError
from n00dles.serialization import MAX_DEPTH, dumps, loads, restore, to_stored
from n00dles_testing.crash.typed import canonical, encode
from n00dles_testing.strategies import (
    Choice,
    DictOf,
    FieldSpec,
    ListOf,
    ModelSpec,
    OneOf,
    OptionalOf,
    TupleOf,
    build_model,
    instances,
    json_values,
    lossy_instances,
    model_classes,
    model_specs,
    models,
    run_ids,
)
from n00dles_testing.strategies.model_classes import annotation, spec_of
from n00dles_testing.strategies.model_values import json_form, value_from
from n00dles_testing.strategies.types import TypeSpec

quick = settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def typed(value: Any) -> str:
    return canonical(encode(value))


@quick
@given(models().flatmap(lambda kind: st.tuples(st.just(kind), instances(kind))))
def test_an_instance_comes_back_as_its_dump_and_as_its_model(drawn: tuple[type[BaseModel], BaseModel]) -> None:
    kind, instance = drawn

    stored = loads(dumps(to_stored(instance)))

    assert typed(stored) == typed(instance.model_dump(mode="json"))
    assert typed(to_stored(restore(stored, kind))) == typed(stored)


@quick
@given(model_specs(), st.text())
def test_a_value_follows_from_its_seed(spec: ModelSpec, text: str) -> None:
    value = value_from(spec, text)

    assert type(value) is build_model(spec)
    assert typed(value) == typed(value_from(spec, text))
    assert typed(to_stored(value)) == typed(json_form(value))


@quick
@given(lossy_instances())
def test_a_lossy_instance_is_refused_and_would_have_lost(instance: BaseModel) -> None:
    with pytest.raises(SerializationError, match="part"):
        to_stored(instance)
    # Some unequal types are warned about, most are dropped without a word.
    assert "lost" not in instance.model_dump(mode="json", warnings=False).get("part", {})


def test_a_spec_has_one_class() -> None:
    spec = ModelSpec((FieldSpec("title", "str"),))

    assert build_model(spec) is build_model(ModelSpec((FieldSpec("title", "str"),)))
    assert build_model(spec) is not build_model(spec, "v0")
    assert spec_of(build_model(spec)) == spec


def test_a_class_lives_as_long_as_another_needs_it() -> None:
    inner = ModelSpec((FieldSpec("title", "str"),))
    outer = ModelSpec((FieldSpec("part", inner),))
    kind = build_model(outer)
    model_classes._class_of.cache_clear()  # what happens when they are full
    annotation.cache_clear()

    assert type(value_from(outer, "x")) is kind
    assert isinstance(value_from(inner, "x"), kind.model_fields["part"].annotation or object)


def kinds(spec: TypeSpec) -> Iterator[str]:
    if isinstance(spec, str):
        yield spec
        return
    yield "enum" if isinstance(spec, Choice) and spec.is_enum else type(spec).__name__
    inner: tuple[TypeSpec, ...] = ()
    if isinstance(spec, ModelSpec):
        yield from (name for name in ("base", "is_computed", "is_generic", "dumps_aliases") if getattr(spec, name))
        yield from ("alias" for each in spec.all_fields if each.alias)
        yield from ("default" for each in spec.all_fields if each.has_default)
        yield spec.extra
        inner = tuple(each.type for each in spec.all_fields)
    elif isinstance(spec, OneOf | TupleOf):
        inner = spec.variants if isinstance(spec, OneOf) else spec.items
    elif isinstance(spec, ListOf | DictOf | OptionalOf):
        inner = (spec.item if isinstance(spec, ListOf) else spec.value if isinstance(spec, DictOf) else spec.inner,)
    for each in inner:
        yield from kinds(each)


def test_no_kind_of_model_is_rare() -> None:
    found: Counter[str] = Counter()

    @seed(0)
    @settings(quick, max_examples=500, phases=[Phase.generate])
    @given(model_specs())
    def drawn(spec: ModelSpec) -> None:
        found.update(set(kinds(spec)))

    drawn()
    wanted = {
        *("str", "int", "float", "bool", "Any", "Decimal", "UUID", "datetime", "date", "time", "timedelta", "None"),
        *("enum", "Choice", "ModelSpec", "ListOf", "OptionalOf", "DictOf", "TupleOf", "OneOf"),
        *("base", "is_computed", "is_generic", "dumps_aliases", "alias", "default", "allow", "forbid", "ignore"),
    }
    assert {name: found[name] for name in wanted if found[name] < 10} == {}


def test_the_simplest_model_has_one_field_of_text() -> None:
    simplest = settings(quick, phases=[Phase.generate, Phase.shrink])

    assert find(model_specs(), lambda spec: True, settings=simplest) == ModelSpec((FieldSpec("title", "str"),))
    assert find(
        instances(ModelSpec((FieldSpec("title", "str"),))), lambda value: True, settings=simplest
    ).model_dump() == {"title": ""}


@quick
@given(json_values())
def test_a_json_value_is_stored_as_it_is(value: Any) -> None:
    assert typed(loads(dumps(to_stored(value)))) == typed(value)


@quick
@given(json_values(max_depth=2))
def test_a_json_value_is_as_deep_as_allowed(value: Any) -> None:
    def depth(part: Any) -> int:
        parts = list(part.values()) if isinstance(part, dict) else part
        return 1 + max(map(depth, parts), default=0) if isinstance(parts, list) else 0

    assert depth(value) <= 2


def seen_parts(value: Any) -> Iterator[Any]:
    yield value
    for part in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from seen_parts(part)


def test_json_values_have_what_breaks_stores() -> None:
    found: Counter[str] = Counter()

    @seed(0)
    @settings(quick, max_examples=1000, phases=[Phase.generate])
    @given(json_values())
    def drawn(value: Any) -> None:
        parts = list(seen_parts(value))
        found.update({type(part).__name__ for part in parts})
        found.update({"big" for part in parts if type(part) is int and abs(part) > 2**63})
        found.update({"-0.0" for part in parts if type(part) is float and part == 0 and math.copysign(1, part) < 0})
        found.update({"NUL" for part in parts if isinstance(part, str) and "\0" in part})
        found.update({"hostile key" for part in parts if isinstance(part, dict) and any(not k.isalnum() for k in part)})
        found.update({"deep" for part in parts if len(parts) > 100})
        found.update({"empty" for part in parts if part in ([], {})})

    drawn()
    wanted = ("str", "int", "float", "bool", "NoneType", "list", "dict", "big", "-0.0", "NUL", "hostile key", "empty")
    assert {name: found[name] for name in wanted if found[name] < 5} == {}
    assert found["deep"] > 20


def test_the_deepest_json_value_can_just_be_stored() -> None:
    deepest = find(
        json_values(),
        lambda value: isinstance(value, list) and sum(1 for _ in seen_parts(value)) > MAX_DEPTH,
        settings=settings(quick, max_examples=5000, phases=[Phase.generate]),
    )

    to_stored(deepest)
    with pytest.raises(SerializationError):
        to_stored([deepest])


def test_run_ids_are_texts_that_can_be_written_and_shrink_to_a_letter() -> None:
    found: Counter[str] = Counter()

    @seed(0)
    @settings(quick, max_examples=500, phases=[Phase.generate])
    @given(run_ids())
    def drawn(run_id: str) -> None:
        assert 1 <= len(run_id.encode()) <= 10_000
        found.update({"long"} if len(run_id) > 1000 else set())
        found.update({"path"} if "/" in run_id or ".." in run_id else set())
        found.update({"not ASCII"} if not run_id.isascii() else set())

    drawn()
    assert min(found["long"], found["path"], found["not ASCII"]) >= 5
    assert (
        len(find(run_ids(), lambda run_id: True, settings=settings(quick, phases=[Phase.generate, Phase.shrink]))) == 1
    )


@quick
@given(run_ids(hostile=False))
def test_a_friendly_run_id_is_a_word(run_id: str) -> None:
    assert run_id.isascii()
    assert not set(run_id) & set("/. %\\")

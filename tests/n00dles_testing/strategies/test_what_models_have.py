"""What generated models really have, seen in the classes and their instances, and not in their specs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from n00dles_testing.strategies import instances, lossy_instances, models

drawn_only = settings(
    max_examples=250, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
shrunk = settings(drawn_only, max_examples=2000, phases=[Phase.generate, Phase.shrink])

SCALARS = (str, int, float, bool, Decimal, UUID, datetime, date, time, timedelta)


def of_class(kind: type[BaseModel]) -> Iterator[str]:
    """Name what a class has, the classes in it included."""
    if kind.model_config.get("extra") not in (None, "ignore"):
        yield f"extra: {kind.model_config.get('extra')}"
    if kind.model_config.get("serialize_by_alias"):
        yield "dumps aliases"
    if kind.model_computed_fields:
        yield "computed field"
    if kind.__pydantic_generic_metadata__["origin"] is not None:
        yield "generic"
    if any(vars(base).get("__annotations__") for base in kind.__mro__[1:] if base not in BaseModel.__mro__):
        yield "inherits fields"
    for field in kind.model_fields.values():
        yield from _of_field(field)


def _of_field(field: FieldInfo) -> Iterator[str]:
    if field.alias is not None:
        yield "alias"
    if not field.is_required():
        yield "default"
    if field.discriminator is not None:
        yield "discriminated union"
    yield from _of_type(field.annotation)


def _of_type(declared: Any) -> Iterator[str]:
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is Annotated:
        if any(getattr(each, "discriminator", None) for each in arguments[1:]):
            yield "discriminated union"
        yield from _of_type(arguments[0])
    elif origin is Literal:
        yield "literal"
    elif arguments:
        if type(None) in arguments:
            yield "optional"
        yield getattr(origin, "__name__", "union")
        for each in arguments:
            yield from _of_type(each)
    elif isinstance(declared, type) and issubclass(declared, BaseModel):
        yield "nested model"
        yield from of_class(declared)
    elif isinstance(declared, type) and issubclass(declared, Enum):
        yield "enum"
    elif declared in SCALARS:
        yield declared.__name__
    else:
        yield "Any" if declared is Any else "None"


def of_value(declared: Any, value: Any) -> Iterator[str]:
    """Name what can be seen in values alone."""
    if isinstance(value, BaseModel):
        if isinstance(declared, type) and issubclass(declared, BaseModel) and type(value) is not declared:
            yield "a subclass in a field of its base"
        fields = type(value).model_fields
        for name, field in fields.items():
            yield from of_value(field.annotation, getattr(value, name))
        if value.model_extra:
            yield "an extra value"
        if set(fields) - value.model_fields_set:
            yield "a default is used"
    elif isinstance(value, datetime):
        yield "a date with a zone" if value.utcoffset() is not None else "a date without one"
        if value.utcoffset() not in (None, timedelta()):
            yield "a zone that is not UTC"
    elif isinstance(value, list | tuple):
        for part in value:
            yield from of_value((get_args(declared) or (None,))[0], part)
        yield "empty" if not value else "not empty"


WANTED = {
    *("nested model", "optional", "enum", "literal", "discriminated union", "alias", "dumps aliases", "computed field"),
    *("default", "generic", "inherits fields", "extra: allow", "extra: forbid", "list", "dict", "tuple", "Any", "None"),
    *(kind.__name__ for kind in SCALARS),
    *("a date with a zone", "a zone that is not UTC", "a default is used", "an extra value", "empty"),
    "a subclass in a field of its base",
}


def test_nothing_that_breaks_stores_is_rare_in_models() -> None:
    found: Counter[str] = Counter()

    # Draws of one seed are alike in places, and hypothesis takes constants from whatever is imported: so of several.
    for number in range(3):

        @seed(number)
        @drawn_only
        @given(models().flatmap(lambda kind: st.tuples(st.just(kind), instances(kind))))
        def drawn(each: tuple[type[BaseModel], BaseModel]) -> None:
            kind, instance = each
            found.update({*of_class(kind), *of_value(kind, instance)})

        drawn()

    assert {name: found[name] for name in WANTED if found[name] < 8} == {}
    assert "a date without one" not in found


@pytest.mark.parametrize(
    ("wanted", "most_fields"),
    [("enum", 1), ("discriminated union", 1), ("nested model", 1), ("generic", 1), ("computed field", 1), ("UUID", 1)],
)
def test_a_model_shrinks_to_the_one_field_that_matters(wanted: str, most_fields: int) -> None:
    found = find(models(), lambda kind: wanted in of_class(kind), settings=shrunk, random=random.Random(0))

    assert len(found.model_fields) == most_fields


@pytest.mark.parametrize(
    ("strategy", "holds"),
    [
        (models().flatmap(instances), lambda each: "a subclass in a field of its base" in of_value(type(each), each)),
        (lossy_instances(), lambda each: True),
    ],
    ids=["kept", "lost"],
)
def test_a_subclass_in_a_field_of_its_base_shrinks_to_one_field(
    strategy: st.SearchStrategy[BaseModel], holds: Callable[[BaseModel], bool]
) -> None:
    # What hypothesis draws depends on the constants of the modules that are imported, so one search may end beside it.
    found = (find(strategy, holds, settings=shrunk, random=random.Random(seed)) for seed in range(1, 5))

    assert any(len(type(each).model_fields) == 1 for each in found)

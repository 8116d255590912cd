"""What may be stored, what is refused, and that what was stored comes back as the same value of the same types."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections import OrderedDict, namedtuple
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    Field,
    SecretStr,
    ValidationError,
)

from n00dles import SerializationError
from n00dles.errors import ConfigurationError
from n00dles.serialization import MAX_DEPTH, dumps, loads, restore, to_stored
from tests.n00dles.exact import typed

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53 - 1, 2**53 + 1, 2**63, -(2**63) - 1, 10**40])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 1e308, 5e-324])
    | texts
    | st.sampled_from(["\x00", "\ufeffBOM", "𝄞", "é", "e\u0301", "\u2028", "", " "])
)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)


@given(json_values)
def test_every_json_value_comes_back_with_its_types(value: Any) -> None:
    text = dumps(to_stored(value))

    back = loads(text)

    assert typed(back) == typed(value)


@given(json_values)
def test_a_stored_form_shares_nothing_with_the_value(value: Any) -> None:
    original = {"part": value, "list": [value]}
    before = dumps(original)

    stored = to_stored(original)
    assert isinstance(stored, dict)
    stored["part"] = "changed"
    listed = stored["list"]
    assert isinstance(listed, list)
    listed.append("more")
    if isinstance(listed[0], dict):
        listed[0]["new"] = 1

    assert dumps(original) == before


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Plain:
    x: int = 1


class Opaque:
    pass


REFUSED: list[tuple[Any, str]] = [
    ((1, 2), "list"),
    ({1}, "sorted list"),
    (frozenset(), "sorted list"),
    (b"x", "base64"),
    (bytearray(b"x"), "base64"),
    (float("nan"), "None or text"),
    (float("inf"), "None or text"),
    (float("-inf"), "None or text"),
    ({1: "a"}, "text keys"),
    ({None: "a"}, "text keys"),
    ({True: "a"}, "text keys"),
    ({Text("a"): 1}, "text keys"),
    ("\ud800", "lone surrogate"),
    ({"\udfff": 1}, "lone surrogate"),
    (10**5000, "store text"),
    (datetime.datetime(2026, 11, 29, tzinfo=datetime.UTC), "isoformat"),
    (datetime.date(2026, 11, 29), "isoformat"),
    (decimal.Decimal("1.10"), "Pydantic model"),
    (uuid.UUID(int=1), "Pydantic model"),
    (Colour.RED, "value.value"),
    (enum.IntEnum("Level", "LOW").LOW, "value.value"),  # type: ignore[attr-defined]
    (Text("x"), "JSON types"),
    (OrderedDict(a=1), "dict(value)"),
    (Point(1, 2), "list"),
    (Plain(), "asdict"),
    (SecretStr("s"), "JSON types"),
    (ValueError("no"), "raise it"),
    (Opaque(), "JSON types"),
    (Opaque, "JSON types"),
    (iter([1]), "JSON types"),
    (1j, "JSON types"),
]


@pytest.mark.parametrize(("value", "advice"), REFUSED, ids=[type(value).__name__ for value, _ in REFUSED])
def test_what_json_cannot_hold_exactly_is_refused_with_advice(value: Any, advice: str) -> None:
    with pytest.raises(SerializationError) as caught:
        to_stored(value)

    assert advice in str(caught.value)
    assert "output" in caught.value.path


@given(
    st.lists(st.integers(0, 3) | st.sampled_from(["a", "é", "it's"]), max_size=6),
    st.sampled_from([(1,), {2}, b"x", float("nan"), Opaque()]),
)
def test_a_refusal_names_the_place_in_the_notation_of_python(steps: list[int | str], bad: Any) -> None:
    value, path = bad, ""
    for step in steps:
        value = {step: value, "other": 1} if isinstance(step, str) else [*[0] * step, value]
        path = f"[{step!r}]{path}"

    with pytest.raises(SerializationError) as caught:
        to_stored(value, "inputs['topic']")

    assert caught.value.path == "inputs['topic']" + path


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_taken_to_a_stated_depth_and_refused_beyond() -> None:
    deepest = nested(MAX_DEPTH)

    back = loads(dumps(to_stored(deepest)))
    with pytest.raises(SerializationError, match=f"more than {MAX_DEPTH} levels"):
        to_stored(nested(MAX_DEPTH + 1))

    assert back == deepest


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(SerializationError) as caught:
        to_stored(value)

    assert "contains itself" in caught.value.why


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "[-Infinity]", "", "{", "[1,]", "\ufeff1"])
def test_what_is_no_strict_json_is_not_decoded(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)


@given(st.text(st.sampled_from('"\\\\/ud80x\x00\n é𝄞'), max_size=12).map(lambda text: f'"{text}'))
@example('"\\ud800"').via("a lone surrogate")
@example('"x" ')
@example('"x"x')
def test_a_text_is_decoded_as_the_standard_library_decodes_it(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            loads(text)
    else:
        assert loads(text) == expected


# Back into a declared type.


class Part(BaseModel):
    name: str
    size: float | None = None


def test_a_stored_form_is_validated_into_its_declared_type() -> None:
    stored = to_stored(Part(name="x", size=1.0))

    back = restore(stored, list[Part | None] | Part)

    assert back == Part(name="x", size=1.0)


@pytest.mark.parametrize("declared", [Any, dict, object], ids=str)
def test_a_restored_value_is_fresh_each_time(declared: Any) -> None:
    stored = to_stored({"list": [1]})

    restore(stored, declared)["list"].append(2)

    assert restore(stored, declared) == {"list": [1]}


def test_field_names_and_aliases_are_both_read() -> None:
    class Aliased(BaseModel):
        topic_name: str = Field(alias="topicName")

    by_name, by_alias = restore({"topic_name": "x"}, Aliased), restore({"topicName": "x"}, Aliased)

    assert by_name == by_alias == Aliased(topicName="x")


def test_what_does_not_fit_its_declared_type_is_an_error() -> None:
    with pytest.raises(ValidationError):
        restore("text", int)

    assert restore("12", str) == "12"


def test_the_order_of_a_union_is_kept_though_python_calls_both_orders_equal() -> None:
    class Draft(BaseModel):
        title: str

    class Final(BaseModel):
        title: str

    first: Any = Draft | Final
    other: Any = Final | Draft

    values = [restore({"title": "x"}, declared) for declared in (first, other)]

    assert first == other
    assert values == [Draft(title="x"), Final(title="x")]


def test_an_annotation_that_cannot_be_hashed_is_checked_too() -> None:
    declared: Any = Annotated[int, {"un": "hashable"}, Field(gt=1)]

    assert restore(2, declared) == 2
    with pytest.raises(ValidationError):
        restore(1, declared)


def test_an_annotation_without_a_schema_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="Annotate with JSON types or a Pydantic model"):
        restore({"x": 1}, Opaque)

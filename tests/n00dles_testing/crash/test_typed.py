"""Typed JSON: what plain JSON would confuse stays apart, and a difference is found and named."""

from __future__ import annotations

import enum
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from n00dles_testing.crash.typed import canonical, describe, encode, first_difference, without


class Article(BaseModel):
    title: str
    tags: list[str] = []


class Colour(enum.Enum):
    RED = "red"


class Mood(str, enum.Enum):  # noqa: UP042 - the older way is what people have
    GOOD = "good"


@dataclass
class Box:
    inside: Any


class Odd:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        ("1", 1),
        ([1], (1,)),
        ({"title": "x", "tags": []}, Article(title="x")),
        ({"a": 1}, OrderedDict(a=1)),
        ({1: "x"}, {"1": "x"}),
        ("red", Colour.RED),
        ("good", Mood.GOOD),
        (Box(1), {"inside": 1}),
        (None, "None"),
        (float("nan"), None),
        (b"x", "x"),
        ({1}, [1]),
        ({}, []),
        ({"$type": "tuple", "items": [1]}, (1,)),
    ],
)
def test_values_that_are_not_the_same_have_different_forms(one: object, other: object) -> None:
    first, second = canonical(encode(one)), canonical(encode(other))

    assert first != second
    assert first == canonical(encode(one))


def test_the_order_of_keys_and_of_a_set_does_not_matter() -> None:
    assert canonical(encode({"a": 1, "b": 2})) == canonical(encode({"b": 2, "a": 1}))
    assert canonical(encode({"x", "y", "z"})) == canonical(encode({"z", "x", "y"}))


def test_whatever_cannot_be_encoded_is_kept_as_type_and_text_and_never_fails() -> None:
    loop: list[Any] = []
    loop.append(loop)

    forms = [canonical(encode(value)) for value in (loop, Odd(), object(), print, "\ud800")]

    assert "$type" in forms[0]
    assert "RuntimeError" in forms[1]
    assert " at 0x" not in forms[2]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != "$type"), inner),
        max_leaves=10,
    )
)
def test_plain_json_is_its_own_form(value: Any) -> None:
    assert encode(value) == value


def test_a_difference_is_found_where_it_is_and_named_by_its_types() -> None:
    before = encode({"article": Article(title="x"), "n": 1})
    after = encode({"article": {"title": "x", "tags": []}, "n": 1})

    difference = first_difference(before, after)

    assert difference is not None
    path, one, other = difference
    assert path == ".article"
    assert (describe(one), describe(other)) == ("`Article`", "a dict")
    assert first_difference(before, before) is None


def test_a_difference_deep_inside_is_found_by_its_path() -> None:
    difference = first_difference(encode({"a": [1, {"b": (2, 3)}]}), encode({"a": [1, {"b": (2, 4)}]}))

    assert difference == (".a[1].b[1]", 3, 4)


def test_an_integer_with_more_digits_than_python_writes_is_told_by_its_length_and_digest() -> None:
    long, longer = 7**6000, 7**6000 + 1

    assert canonical(encode(long)) == canonical(encode(long))
    assert canonical(encode(long)) != canonical(encode(longer))
    assert canonical(encode({long: [long]})) != ""
    assert describe(encode(long)) == "an int"


def test_what_contains_itself_twice_or_shares_its_parts_is_encoded_at_once() -> None:
    loop: dict[str, Any] = {}
    loop.update(a=loop, b=loop)
    shared: list[Any] = []
    for _ in range(90):
        shared = [shared, shared]

    started = time.perf_counter()
    forms = [encode(loop), encode(shared), encode([0] * 3_000_000)]
    seconds = time.perf_counter() - started

    assert forms[0] == {"a": {"$type": "dict", "repr": "…"}, "b": {"$type": "dict", "repr": "…"}}
    assert len(forms[2]) == 200_000
    assert seconds < 5


def test_a_mapping_that_cannot_be_read_is_kept_as_its_type() -> None:
    class Broken(dict[int, int]):
        def items(self) -> Any:
            raise OSError("gone")

    assert encode(Broken({1: 1}))["repr"] == "<not readable: OSError>"


def test_a_folder_that_is_another_each_time_is_left_out() -> None:
    with without("/tmp/7"):
        forms = encode(["/tmp/7/a", Path("/tmp/7/b"), {"/tmp/7": 1}, b"/tmp/7", "/tmp/8"])

    paths = ["…/a", {"$type": "pathlib.PosixPath", "repr": "PosixPath('…/b')"}, {"…": 1}]
    assert forms == [*paths, {"$type": "bytes", "repr": "b'…'"}, "/tmp/8"]
    assert encode("/tmp/7/a") == "/tmp/7/a"

"""A run id means one set of inputs, to the type of each JSON value."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest

from n00dles import (
    InMemoryStateStore,
    InputsChangedError,
    InputsError,
    PipelineFailure,
    RunResult,
    agent,
    pipeline,
    resume,
    run,
)
from tests.n00dles.started_runs import FAILING, A, C, calls, half_done, node_reading_anything


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


def started() -> InMemoryStateStore:
    return half_done(pipeline(A >> FAILING, name="content"), value="x")


def carried_on(store: InMemoryStateStore, **inputs: Any) -> RunResult:
    return run(pipeline(A >> C, name="content"), run_id="r", store=store, **inputs)


def test_a_run_with_the_same_inputs_carries_on() -> None:
    store = started()

    result = carried_on(store, value="x")

    assert (result.output, calls) == ("c(a(x))", ["c"])


def test_a_run_without_inputs_carries_on() -> None:
    store = started()

    result = carried_on(store)

    assert (result.output, calls) == ("c(a(x))", ["c"])


def test_a_run_with_other_inputs_names_the_difference() -> None:
    store = started()

    with pytest.raises(InputsChangedError) as caught:
        carried_on(store, value="y")

    assert str(caught.value) == (
        "run 'r' was started with value='x', and is resumed with value='y'. Its 1 completed node (a) belong to the "
        "first. Resume without inputs, or use a new run_id."
    )
    assert calls == []
    assert carried_on(store, value="x").output == "c(a(x))"


@pytest.mark.parametrize(
    ("first", "now"),
    [(1, True), (1, 1.0), ([1], [1.0]), ({"k": 0}, {"k": False}), (0.0, -0.0), ("é", "e\u0301"), (None, "")],
    ids=repr,
)
def test_inputs_that_python_calls_equal_are_not_the_same_if_json_tells_them_apart(first: Any, now: Any) -> None:
    @agent(retry=1)
    def read(value):  # type: ignore[no-untyped-def]
        calls.append(repr(value))
        if len(calls) == 1:
            raise RuntimeError("no luck")
        return value

    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(read, run_id="r", store=store, value=first)

    with pytest.raises(InputsChangedError, match="was started with value=") as caught:
        run(read, run_id="r", store=store, value=now)

    assert calls == [repr(first)]
    told = re.fullmatch(r"run 'r' was started with (.*), and is resumed with (.*)\. Its inputs .*", str(caught.value))
    assert told is not None
    assert told[1] != told[2]
    assert unicodedata.normalize("NFC", told[1]) != unicodedata.normalize("NFC", told[2])


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({"value": "x"}, "was started with style='dry', and is resumed with no style."),
        ({"style": "dry"}, "was started with value='x', and is resumed with no value."),
        (
            {"value": "x", "style": "dry", "length": 3},
            "was started with no length, and is resumed with length=3.",
        ),
        (
            {"value": "y", "tone": "dry"},
            "was started with value='x', style='dry', no tone, and is resumed with value='y', no style, tone='dry'.",
        ),
    ],
    ids=["missing", "the other missing", "additional", "all of it"],
)
def test_missing_and_additional_inputs_are_named(now: dict[str, Any], told: str) -> None:
    @agent(retry=1)
    def read(value: str, style: str) -> str:
        raise RuntimeError("no luck")

    store = InMemoryStateStore()
    with pytest.raises(PipelineFailure):
        run(read, run_id="r", store=store, value="x", style="dry")

    with pytest.raises(InputsChangedError) as caught:
        run(read, run_id="r", store=store, **now)

    assert told in str(caught.value)


def test_long_inputs_are_told_where_they_differ() -> None:
    text, facts = "word " * 1000, {"b": list(range(100)), "a": 1}
    store = half_done(pipeline(node_reading_anything(fails=True), name="content"), value=[text, facts])

    with pytest.raises(InputsChangedError) as caught:
        run(node_reading_anything(), run_id="r", store=store, value=[text[:3000] + "other", {"a": 1, "b": [0]}])

    assert "word word other', {'a': 1, 'b': [0]}]. Its inputs" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_order_of_keys_is_no_difference() -> None:
    store = half_done(
        pipeline(node_reading_anything(fails=True), name="content"), value={"a": 1, "b": {"c": 2, "d": 3}}
    )

    result = run(node_reading_anything(), run_id="r", store=store, value={"b": {"d": 3, "c": 2}, "a": 1})

    assert result.output == {"a": 1, "b": {"c": 2, "d": 3}}


def test_an_input_that_only_a_replaced_node_read_does_not_stop_the_run() -> None:
    @agent(retry=1)
    def styled(value: str, style: str) -> str:
        raise RuntimeError("no luck")

    store = half_done(pipeline(A >> styled, name="content"), value="x", style="dry")

    result = resume(pipeline(A >> C, name="content"), "r", store=store)

    assert result.output == "c(a(x))"


def test_a_node_that_is_added_and_needs_another_input_says_so() -> None:
    @agent
    def styled(value: str, style: str) -> str:
        return f"{style} {value}"

    store = half_done(pipeline(A >> FAILING, name="content"), value="x")

    with pytest.raises(InputsError, match=r"'style' is missing \(read by styled\)"):
        resume(pipeline(A >> styled, name="content"), "r", store=store)

    assert calls == []


def test_a_finished_run_with_other_inputs_is_an_error_too() -> None:
    store = InMemoryStateStore()
    run(A, run_id="r", store=store, value="x")
    calls.clear()

    with pytest.raises(InputsChangedError):
        run(A, run_id="r", store=store, value="y")

    assert (run(A, run_id="r", store=store, value="x").output, calls) == ("a(x)", [])

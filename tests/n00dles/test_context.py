"""The state of one run, as stores and the executor use it."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from n00dles import CorruptCheckpointError, PipelineContext, SerializationError, StoreVersionError
from n00dles.records import NodeRecord

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("aé\x00 "),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abé"), inner, max_size=3),
    max_leaves=8,
)


class Article(BaseModel):
    title: str


def test_an_output_is_kept_in_its_stored_form_from_the_moment_of_completion() -> None:
    ctx = PipelineContext("r", {"topic": "x"})
    output = {"facts": ["a"]}

    returned = ctx.checkpoint("researcher", output)
    ctx.checkpoint("writer", Article(title="T"))
    output["facts"].append("b")

    assert returned == {"facts": ["a"]}
    assert ctx.completed == {"researcher": {"facts": ["a"]}, "writer": {"title": "T"}}
    assert ctx.order == ["researcher", "writer"]


def test_none_is_an_output() -> None:
    ctx = PipelineContext("r", {})

    ctx.checkpoint("a", None)

    assert (ctx.is_complete("a"), ctx.is_complete("b")) == (True, False)


def test_an_output_that_is_refused_leaves_the_context_as_it_was() -> None:
    ctx = PipelineContext("r", {})

    with pytest.raises(SerializationError, match=r"node 'a': output\['x'\]\[1\] is a builtins.set") as caught:
        ctx.checkpoint("a", {"x": [1, {2}]})

    assert (caught.value.node, caught.value.path) == ("a", "output['x'][1]")
    assert (ctx.completed, ctx.order, ctx.unsaved) == ({}, [], ())


@pytest.mark.parametrize("node", [1, None, ("a",), "\ud800"], ids=repr)
def test_a_node_name_that_would_come_back_as_another_is_refused(node: Any) -> None:
    ctx = PipelineContext("r", {})

    with pytest.raises(SerializationError):
        ctx.checkpoint(node, "output")

    assert ctx.order == []


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"topic": {1, 2}}, "inputs['topic']"),
        ({"topic": ["ok", b"no"]}, "inputs['topic'][1]"),
        ({1: "a"}, "inputs"),
        ({"\ud800": 1}, "the key '\\ud800' of inputs"),
    ],
    ids=["set", "bytes", "int key", "surrogate key"],
)
def test_an_input_that_would_not_come_back_is_refused(inputs: Any, path: str) -> None:
    with pytest.raises(SerializationError) as caught:
        PipelineContext("r", inputs)

    assert caught.value.path == path


def test_outputs_enter_through_checkpoint_alone() -> None:
    ctx = PipelineContext("r", {}, {"a": 1}, ["a"])
    completed: Any = ctx.completed

    tampers: list[Callable[[], Any]] = [
        lambda: completed.__setitem__("b", 2),
        lambda: completed.__delitem__("a"),
        lambda: completed.pop("a"),
        lambda: completed.update(b=2),
        lambda: completed.setdefault("b", 2),
    ]
    for tamper in tampers:
        with pytest.raises(TypeError, match="checkpoint"):
            tamper()
    ctx.order.append("b")

    assert (ctx.completed, ctx.order) == ({"a": 1}, ["a"])


def test_outputs_are_a_dict_that_any_encoder_takes() -> None:
    ctx = PipelineContext("r", {}, {"a": {"x": [1]}}, ["a"])

    text = json.dumps({"completed": ctx.completed})

    assert json.loads(text) == {"completed": {"a": {"x": [1]}}}


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda ctx: pickle.loads(pickle.dumps(ctx))], ids=["copy", "pickle"]
)
def test_a_copy_of_a_context_is_another_one(duplicate: Any) -> None:
    ctx = PipelineContext("r", {"x": 1}, {"a": [1]}, ["a"], revision=3)

    twin, other = duplicate(ctx), duplicate(ctx)
    twin.checkpoint("b", 2)
    ctx.checkpoint("c", 3)

    assert (twin.order, ctx.order) == (["a", "b"], ["a", "c"])
    assert (twin.inputs, twin.revision, twin.incarnation) == ({"x": 1}, 3, ctx.incarnation)
    assert len({each.begin_save().save_id for each in (ctx, twin, other)}) == 3


# Saving what is new.


def test_a_save_carries_only_what_no_save_has_carried() -> None:
    ctx = PipelineContext("r", {})
    ctx.checkpoint("a", 1)
    first = ctx.begin_save()
    ctx.acknowledge(first)
    ctx.checkpoint("b", 2)

    second = ctx.begin_save()

    assert [output.node for output in first.outputs] == ["a"]
    assert [(output.node, output.position, output.output) for output in second.outputs] == [("b", 1, "2")]
    assert (first.revision, second.revision, second.completed) == (0, 1, 2)


def test_what_completes_during_a_save_stays_for_the_next_one() -> None:
    ctx = PipelineContext("r", {})
    ctx.checkpoint("a", 1)
    batch = ctx.begin_save()
    ctx.checkpoint("b", 2)

    ctx.acknowledge(batch)

    assert batch.completed == 1
    assert ctx.unsaved == ("b",)


def test_a_node_that_completes_again_during_a_save_is_saved_again() -> None:
    ctx = PipelineContext("r", {})
    ctx.checkpoint("a", 1)
    batch = ctx.begin_save()
    ctx.checkpoint("a", 2)

    ctx.acknowledge(batch)

    assert ctx.unsaved == ("a",)
    assert ctx.order == ["a"]
    assert ctx.begin_save().outputs[0].output == "2"


def test_a_save_that_is_not_acknowledged_stays_in_doubt_and_unsaved() -> None:
    ctx = PipelineContext("r", {})
    ctx.checkpoint("a", 1)

    batch = ctx.begin_save()

    assert ctx.in_doubt is batch
    assert (ctx.unsaved, ctx.revision) == (("a",), 0)


def test_the_signature_is_saved_when_it_has_changed() -> None:
    ctx = PipelineContext("r", {})
    ctx.signature = ["a(x)"]
    first = ctx.begin_save()
    ctx.acknowledge(first)
    ctx.signature = ["a(x)"]

    second = ctx.begin_save()
    ctx.acknowledge(second)
    ctx.signature = ["a(x)", "b(y)"]

    assert (first.signature, second.signature) == ('["a(x)"]', None)
    assert ctx.begin_save().signature == '["a(x)","b(y)"]'


# The whole record.


@given(
    st.text(min_size=1),
    st.dictionaries(st.text("xyz", min_size=1), json_values, max_size=3),
    st.dictionaries(st.text("abc", min_size=1), json_values, max_size=4),
)
def test_a_record_comes_back_as_it_was(run_id: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    if run_id.encode(errors="replace").decode() != run_id:
        run_id = "r"
    ctx = PipelineContext(run_id, inputs, outputs, list(outputs)[::-1], revision=4)
    ctx.pipeline, ctx.status, ctx.lives, ctx.stalled, ctx.error = "p", "failed", 3, 2, "no"
    ctx.signature = ["a(x)"]
    for node in outputs:
        ctx.nodes[node] = NodeRecord(2, 10, 20, 1.5, "first", 1)
    ctx.record("unfinished").attempts = 7

    back = PipelineContext.from_json(ctx.to_json())

    assert back.to_json() == ctx.to_json()
    assert (back.inputs, back.completed, back.order) == (inputs, outputs, list(outputs)[::-1])
    assert (back.revision, back.incarnation, back.unsaved) == (4, ctx.incarnation, ())
    assert back.record("unfinished").attempts == 7


def test_a_record_of_four_fields_is_read() -> None:
    text = '{"run_id": "r", "inputs": {"x": 1}, "completed": {"b": null, "a": {}}, "order": ["a", "b"]}'

    ctx = PipelineContext.from_json(text)

    assert (ctx.run_id, ctx.inputs, ctx.completed, ctx.order) == ("r", {"x": 1}, {"a": {}, "b": None}, ["a", "b"])
    assert (ctx.revision, ctx.unsaved) == (0, ())


def test_a_record_shares_nothing_with_the_context() -> None:
    ctx = PipelineContext("r", {"x": [1]}, {"a": [1]}, ["a"])

    record = ctx.to_dict()
    record["inputs"]["x"].append(2)
    record["completed"]["a"].append(2)

    assert (ctx.inputs, ctx.completed) == ({"x": [1]}, {"a": [1]})


GOOD: dict[str, Any] = {"run_id": "r", "inputs": {"x": 1}, "completed": {"a": 1}, "order": ["a"]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        json.dumps(GOOD)[:10],
        "null",
        "[]",
        '"text"',
        "5",
        "NaN",
        "[" * 100_000,
        *(json.dumps({key: value for key, value in GOOD.items() if key != missing}) for missing in GOOD),
        json.dumps(GOOD | {"order": []}),
        json.dumps(GOOD | {"order": ["a", "b"]}),
        json.dumps(GOOD | {"order": ["b"]}),
        json.dumps(GOOD | {"order": [["a"]]}),
        json.dumps(GOOD | {"completed": []}),
        json.dumps(GOOD | {"completed": 5}),
        json.dumps(GOOD | {"inputs": "text"}),
        json.dumps(GOOD | {"run_id": None}),
        json.dumps(GOOD | {"revision": "three"}),
        json.dumps(GOOD | {"lives": "many"}),
        json.dumps(GOOD | {"status": "odd"}),
        json.dumps(GOOD | {"nodes": {"a": 5}}),
        json.dumps(GOOD | {"nodes": {"a": {"unknown": 5}}}),
        json.dumps(GOOD | {"nodes": {"a": {"attempts": "two"}}}),
        json.dumps(GOOD | {"signature": 5}),
        json.dumps(GOOD | {"schema": 0}),
        json.dumps(GOOD | {"schema": "1"}),
    ],
    ids=lambda text: text[:60],
)
def test_what_is_no_record_is_refused_as_damaged(text: str) -> None:
    with pytest.raises(CorruptCheckpointError, match="left as it is"):
        PipelineContext.from_json(text)


def test_a_record_of_a_later_release_is_refused_and_not_read_as_far_as_it_goes() -> None:
    with pytest.raises(
        StoreVersionError, match=r"the record of run 'r' has schema version 2, and this release reads 1"
    ):
        PipelineContext.from_dict(GOOD | {"schema": 2})


@given(
    json_values, st.sampled_from([*GOOD, "schema", "revision", "nodes", "status", "signature", "incarnation", "error"])
)
def test_a_record_with_any_field_replaced_is_refused_or_read(value: Any, field: str) -> None:
    record = GOOD | {field: value}

    try:
        ctx = PipelineContext.from_dict(record)
    except (CorruptCheckpointError, StoreVersionError):
        return

    assert PipelineContext.from_json(ctx.to_json()).to_dict() == ctx.to_dict()

"""The model of the state machine: what it allows, and above all what it does not. One that allows all shows nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from n00dles_testing.conformance.machine.model import ImpossibleError, Model, Worker
from n00dles_testing.conformance.machine.states import canonical
from n00dles_testing.conformance.records import Record

INPUTS = {"topic": "cats"}
OTHERS = {"topic": "dogs"}
NEW = Record.new(INPUTS)


def model_with_a_run(*, keeps_revisions: bool = True) -> tuple[Model, Worker]:
    model = Model(keeps_revisions=keeps_revisions)
    return model, model.loaded(0, INPUTS, NEW)


def allows(model: Model, came: Record) -> bool:
    try:
        model.loaded(0, OTHERS, came)
    except ImpossibleError:
        return False
    return True


def test_an_unknown_run_has_the_inputs_passed_and_nothing_else() -> None:
    model = Model(keeps_revisions=True)

    for came in (Record.new(OTHERS), NEW.after({"a": 1}), Record({}, {}, ())):
        with pytest.raises(ImpossibleError, match="nobody has created it") as caught:
            model.loaded(0, INPUTS, came)
        assert caught.value.wanted == NEW
    assert model.loaded(0, INPUTS, NEW).completed == {}


@pytest.mark.parametrize(
    ("came", "is_allowed"),
    [
        (Record(INPUTS, {"a": 1, "b": True}, ("a", "b")), True),
        (Record(INPUTS, {"a": 1, "b": True}, ("b", "a")), False),
        (Record(INPUTS, {"a": 1, "b": True}, ("a", "b", "a")), False),
        (Record(INPUTS, {"a": 1, "b": True}, ("a",)), False),
        (Record(INPUTS, {"a": 1}, ("a",)), False),
        (Record(INPUTS, {"a": 1, "b": 1}, ("a", "b")), False),
        (Record(INPUTS, {"a": 1.0, "b": True}, ("a", "b")), False),
        (Record(INPUTS, {"a": "1", "b": True}, ("a", "b")), False),
        (Record(INPUTS, {"a": 1, "b": True, "c": None}, ("a", "b", "c")), False),
        (Record(OTHERS, {"a": 1, "b": True}, ("a", "b")), False),
        (NEW, False),
    ],
)
def test_of_an_acknowledged_save_only_its_own_record_may_come(came: Record, is_allowed: bool) -> None:
    model, worker = model_with_a_run()

    assert model.saved(0, worker, {"a": 1, "b": True}, True)

    assert allows(model, came) is is_allowed


def test_whoever_continues_the_newest_state_may_not_be_refused() -> None:
    model, worker = model_with_a_run()
    assert model.saved(0, worker, {"a": 1}, True)

    assert not model.saved(0, worker, {"b": 2}, False)


def test_a_value_for_which_a_store_may_have_no_room_may_be_refused_until_it_was_taken() -> None:
    model, worker = model_with_a_run()
    worker.is_refusable = True

    assert model.saved(0, worker, {"a": 10**40}, False)
    assert model.saved(0, worker, {}, True)

    assert not model.saved(0, worker, {"b": 2}, False)
    assert allows(model, NEW.after({"a": 10**40}))


def test_a_refused_save_changes_nothing() -> None:
    model, worker = model_with_a_run()
    behind = model.loaded(0, INPUTS, NEW)
    model.saved(0, worker, {"a": 1}, True)

    assert model.saved(0, behind, {"b": 2}, False)

    assert not allows(model, NEW.after({"a": 1, "b": 2}))
    assert not allows(model, NEW)
    assert allows(model, NEW.after({"a": 1}))


@pytest.mark.parametrize("keeps_revisions", [True, False])
@pytest.mark.parametrize(
    ("completed", "order", "is_allowed"),
    [
        ({"a": 1, "c": 1, "b": 2}, "acb", True),
        ({"a": 1, "c": 1, "b": 2}, "bca", True),
        ({"a": 1, "c": 3, "b": 2}, "acb", True),
        ({"a": 1, "c": 2, "b": 2}, "acb", False),
        ({"c": 3, "b": 2}, "cb", False),
        ({"a": 1, "c": 1}, "ac", False),
        ({"a": 1, "c": 1, "b": 2, "d": 0}, "acbd", False),
    ],
)
def test_a_save_that_was_behind_and_acknowledged_is_merged_and_loses_nothing(
    completed: dict[str, int], order: str, is_allowed: bool, keeps_revisions: bool
) -> None:
    model, worker = model_with_a_run(keeps_revisions=keeps_revisions)
    behind = model.loaded(0, INPUTS, NEW)
    model.saved(0, worker, {"a": 1, "c": 1}, True)

    assert model.is_stale(0, behind)
    assert model.saved(0, behind, {"b": 2, "c": 3}, True)

    assert allows(model, Record(INPUTS, completed, tuple(order))) is is_allowed


def test_a_cancelled_save_is_done_or_not_and_never_late() -> None:
    for seen in (NEW, NEW.after({"a": 1, "b": 2})):
        model, worker = model_with_a_run()
        assert model.saved(0, worker, {"a": 1, "b": 2}, None)

        assert not allows(model, NEW.after({"a": 1}))
        assert allows(model, seen)
        others = {str(each): each for each in (NEW, NEW.after({"a": 1, "b": 2}))}
        del others[str(seen)]
        assert not any(allows(model, other) for other in others.values())


def test_after_a_cancelled_save_its_worker_may_be_refused_and_a_fresh_one_may_not() -> None:
    model, worker = model_with_a_run()
    model.saved(0, worker, {"a": 1}, None)

    assert model.saved(0, worker, {"b": 2}, False)

    fresh = model.loaded(0, INPUTS, NEW.after({"a": 1}))
    assert not model.saved(0, fresh, {"c": 3}, False)


@pytest.mark.parametrize("acknowledged", [True, False, None])
def test_a_late_save_does_not_bring_a_deleted_run_back(acknowledged: bool | None) -> None:
    model, worker = model_with_a_run()
    model.saved(0, worker, {"a": 1}, True)
    model.deleted(0)

    assert model.saved(0, worker, {"b": 2}, acknowledged)

    assert not allows(model, NEW.after({"a": 1, "b": 2}))
    assert not allows(model, NEW)
    assert allows(model, Record.new(OTHERS))


@pytest.mark.parametrize(("keeps_revisions", "is_allowed"), [(True, False), (False, True)])
def test_only_without_revisions_a_worker_of_the_run_before_may_reach_the_next(
    keeps_revisions: bool, is_allowed: bool
) -> None:
    model, worker = model_with_a_run(keeps_revisions=keeps_revisions)
    model.saved(0, worker, {"a": 1}, True)
    model.deleted(0)
    model.loaded(0, INPUTS, NEW)

    assert model.is_of_another_life(0, worker)
    assert model.saved(0, worker, {"b": 2}, True)

    assert not allows(model, NEW.after({"c": 3}))
    assert allows(model, NEW.after({"a": 1, "b": 2})) is is_allowed


def test_saves_that_overlap_are_all_there_as_far_as_they_were_acknowledged() -> None:
    for acknowledged in (True, False):
        model, first = model_with_a_run()
        second = model.loaded(0, INPUTS, NEW)
        model.overlapped(0, [(first, {"a": 1}, True), (second, {"b": 2}, acknowledged)])

        assert model.states(0) > 0
        assert not allows(model, NEW.after({"b": 2}))
        assert allows(model, NEW.after({"a": 1})) is not acknowledged
        assert allows(model, NEW.after({"b": 2, "a": 1})) is acknowledged


def test_overlapping_saves_of_one_context_may_carry_each_other_s_node() -> None:
    for came, is_allowed in ((NEW.after({"a": 1}), True), (NEW.after({"b": 2, "a": 1}), True), (NEW, False)):
        model, worker = model_with_a_run()
        model.overlapped(0, [(worker, {"a": 1}, True), (worker, {"b": 2}, False)])

        assert allows(model, came) is is_allowed


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), (None, "null"), ([], {}), ((1,), [1]), ({"a": 1}, {"a": True})],
)
def test_values_that_are_not_the_same_have_other_texts(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)
    assert canonical({"b": [one], "a": None}) == canonical({"a": None, "b": [one]})


# Histories of a store with a fence, a dict of this file: each is right, and with one thing changed it is wrong.

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.just(0), st.just(0)),
        st.tuples(st.just("save"), st.integers(0, 3), st.sampled_from([1, True, 1.0, None, "x"])),
        st.tuples(st.just("delete"), st.just(0), st.just(0)),
    ),
    max_size=14,
)


class Fenced:
    """The record of one run, or None, and its number of saves."""

    def __init__(self) -> None:
        self.record: Record | None = None
        self.saves = 0
        self.life = 0

    def load(self, inputs: dict[str, Any]) -> Record:
        if self.record is None:
            self.record, self.saves, self.life = Record.new(inputs), 0, self.life + 1
        return self.record


def record_and_model_of(events: list[tuple[str, int, Any]]) -> tuple[Record, Model]:
    store, model = Fenced(), Model(keeps_revisions=True)
    workers: list[tuple[Worker, int, int]] = []
    for number, (kind, back, value) in enumerate(events):
        if kind == "delete":
            store.record = None
            model.deleted(0)
        elif kind == "load" or not workers:
            came = store.load({"call": number})
            workers.append((model.loaded(0, {"call": number}, came), store.life, store.saves))
        else:
            worker, life, saves = workers.pop(-1 - min(back, len(workers) - 1))
            is_taken = store.record is not None and (life, saves) == (store.life, store.saves)
            if is_taken and store.record is not None:
                store.record, store.saves = store.record.after({f"n{number}": value}), store.saves + 1
            assert model.saved(0, worker, {f"n{number}": value}, is_taken)
            workers.append((worker, life, store.saves if is_taken else saves))
    return store.load({"call": "last"}), model


def wrong_versions_of(record: Record) -> list[Record]:
    wrong = [Record({"call": "never"}, record.completed, record.order), record.after({"nobody": "saved this"})]
    for node in record.order:
        others = {key: value for key, value in record.completed.items() if key != node}
        wrong.append(Record(record.inputs, others, tuple(each for each in record.order if each != node)))
        wrong.append(Record(record.inputs, {**record.completed, node: ["other"]}, record.order))
    if len(record.order) > 1:
        wrong.append(Record(record.inputs, record.completed, record.order[::-1]))
    return wrong


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(EVENTS)
def test_a_right_history_is_allowed_and_none_with_one_thing_changed(events: list[tuple[str, int, Any]]) -> None:
    record, model = record_and_model_of(events)

    for wrong in wrong_versions_of(record):
        with pytest.raises(ImpossibleError):
            model.loaded(0, {"call": "last"}, wrong)
    assert model.loaded(0, {"call": "last"}, record).completed == record.completed

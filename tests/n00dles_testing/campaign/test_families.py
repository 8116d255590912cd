"""What is not about a disturbed life: names, identity, outputs that cannot be stored, two executors on one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import n00dles
from n00dles import RunResult
from n00dles.events import Observer
from n00dles.pipeline import Pipeline
from n00dles.stores.base import StateStore
from n00dles_testing.campaign.changes import changed, changes_of, renamed
from n00dles_testing.campaign.confirm import confirmed
from n00dles_testing.campaign.families import FAMILIES, family_named
from n00dles_testing.campaign.family import Judgement, Trial
from n00dles_testing.campaign.lives_family import LivesFamily
from n00dles_testing.campaign.rival import RivalError, rivals_in_processes
from n00dles_testing.campaign.rivals_family import faults_of_rivals
from n00dles_testing.campaign.search import Found
from n00dles_testing.campaign.stage import Stage
from n00dles_testing.crash.life import Executor, ReferenceExecutor
from n00dles_testing.strategies import InputSpec, NestedSpec, NodeSpec, ParameterSpec, PipelineSpec
from tests.n00dles_testing.campaign import executors

PREVIOUS = ParameterSpec("text", "previous")
CHAIN = PipelineSpec(
    (
        NodeSpec("a", "str", (ParameterSpec("x", "input"),), is_annotated=True),
        NodeSpec("b", "str", (PREVIOUS,), is_annotated=True),
        NodeSpec("c", "Any", (PREVIOUS,)),
    ),
    (InputSpec("x", '"tea"'),),
)
PART = PipelineSpec((NodeSpec("a", "str"), NestedSpec((NodeSpec("b", "str", (PREVIOUS,)),), name="part")))


def judged(trial: Trial, executor: Executor | None = None) -> Judgement:
    with Stage(executor or ReferenceExecutor()) as stage:
        ((_, judgement),) = family_named(trial.family).judged([trial], stage)
    return judgement


def test_the_shares_of_all_families_make_a_whole_and_together_they_speak_of_every_clause() -> None:
    assert sum(family.share for family in FAMILIES) == pytest.approx(1.0)
    assert frozenset[str]().union(*(family.clauses for family in FAMILIES)) == {f"E{n:02}" for n in range(1, 19)}


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("a", "part"), ("b", "part"), ("a", "generated")])
def test_a_name_that_is_taken_is_refused_or_does_no_harm(old: str, new: str) -> None:
    judgement = judged(Trial("names", PART, (old, new)))

    assert list(judgement.faults) == []
    assert judgement.occasions == {"E08": 1}


def test_a_renamed_node_is_read_by_its_new_name() -> None:
    spec = PipelineSpec((NodeSpec("a", "str"), NodeSpec("b", "str", (ParameterSpec("a", "step"), PREVIOUS))))

    assert renamed(spec, "a", "z").nodes()[1].parameters[0] == ParameterSpec("z", "step")


def test_all_kinds_of_changes_are_tried_and_each_leaves_another_valid_pipeline() -> None:
    changes = changes_of(CHAIN)

    assert {kind for kind, _ in changes} == {"append", "rename", "drop", "retype", "reorder", "input"}
    assert all(changed(CHAIN, *change) not in (None, CHAIN) for change in changes)


@pytest.mark.parametrize("change", changes_of(CHAIN), ids=" ".join)
@pytest.mark.parametrize("stopped", ["c", "finished"])
def test_a_changed_run_is_refused_by_name_or_right(change: tuple[str, str], stopped: str) -> None:
    judgement = judged(Trial("identity", CHAIN, (stopped, *change)))

    assert list(judgement.faults) == []
    assert judgement.occasions == {"E09": 1}


class Believes(executors.Executor):
    """Returns what a finished run has stored, whatever its pipeline and its inputs are now."""

    async def run(
        self,
        pipeline: Pipeline,
        *,
        run_id: str,
        store: StateStore,
        observers: Sequence[Observer],
        inputs: Mapping[str, Any],
    ) -> RunResult:
        context = await store.load_or_create(run_id, dict(inputs))
        if context.status == "finished":
            return RunResult(run_id, context.completed[context.order[-1]])
        return await n00dles.arun(pipeline, run_id=run_id, store=store, observers=observers, **inputs)


def test_success_with_nothing_run_is_a_fault() -> None:
    judgement = judged(Trial("identity", CHAIN, ("finished", "input", "x")), Believes())

    ((clause, message, _),) = judgement.faults
    assert clause == "E09"
    assert message.startswith("after input x the resume reported success and called nothing, and returned")


def test_an_executor_that_resumes_nothing_right_shows_nothing_about_identity() -> None:
    judgement = judged(Trial("identity", CHAIN, ("c", "append", "appended")), executors.AlwaysReturnsText())

    assert judgement.faults == ()
    assert judgement.vacuous == "the executor does not resume this run unchanged either"


@pytest.mark.parametrize("value", ["a set", "NaN", "a key that is no text", "a lone surrogate", "an object"])
def test_an_output_that_cannot_be_stored_fails_its_node(value: str) -> None:
    judgement = judged(Trial("outputs", PART, ("a", value)))

    assert list(judgement.faults) == []
    assert judgement.occasions == {"E15": 1}


@pytest.mark.parametrize("store", ["one store in memory", "one SQLite store", "two SQLite stores"])
def test_a_second_executor_is_refused_while_the_first_is_in_a_node(store: str) -> None:
    judgement = judged(Trial("rivals", CHAIN, ("b", store)))

    assert list(judgement.faults) == []
    assert judgement.occasions == {"E16": 1}
    assert judgement.story("")[1].startswith("second   called nothing; raised RunLockedError")


def test_of_two_processes_on_one_file_one_proceeds(tmp_path: Path) -> None:
    first, second = rivals_in_processes(CHAIN, "b", None, tmp_path)

    assert list(faults_of_rivals(CHAIN, first, second)) == []
    assert first.calls == ["a", "b", "c"]
    assert second.calls == []


def test_two_processes_that_do_not_overlap_show_nothing(tmp_path: Path) -> None:
    with pytest.raises(RivalError, match="never was in nowhere"):
        rivals_in_processes(CHAIN, "nowhere", None, tmp_path)


def test_a_fault_of_one_process_alone_is_not_said_to_be_one_of_two() -> None:
    trial = Trial("rivals", CHAIN, ("b", "one store in memory"))

    told = confirmed(Found(trial, ("E16", "", ""), Judgement(), 1), None)

    assert told.startswith("in this process only; of two processes on one SQLite file the second one called nothing")


def test_a_run_lives_on_disk_as_in_memory() -> None:
    family = next(f for f in FAMILIES if isinstance(f, LivesFamily) and f.on_disk)
    with Stage(ReferenceExecutor()) as stage:
        told = list(family.judged([Trial(family.name, CHAIN, ("after-save:a", "after:b"))], stage))

    assert [list(judgement.faults) for _, judgement in told] == [[], []]
    assert told[1][1].occasions["E02"] > 0

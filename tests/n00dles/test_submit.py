"""Submitting: what is stored, what is refused before anything is, and that a repeated submission is one run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    ConfigurationError,
    InMemoryStateStore,
    InputsChangedError,
    InputsError,
    PipelineChangedError,
    agent,
    asubmit,
    pipeline,
    resume,
    run,
    submit,
)
from n00dles.cli import main
from tests.n00dles.started_runs import FourFields


@agent
def twice(text: str, times: int = 2) -> str:
    return text * times


FLOW = pipeline(twice, name="flow")


def stored(store: Any, run_id: str) -> Any:
    return asyncio.run(store.load(run_id))


def test_a_submitted_run_waits_with_its_inputs_and_its_pipeline() -> None:
    store = InMemoryStateStore()

    ctx = stored(store, submit(FLOW, store=store, text="ab"))

    assert (ctx.status, ctx.pipeline, ctx.lives, ctx.inputs, ctx.order) == ("waiting", "flow", 0, {"text": "ab"}, [])
    assert ctx.signature == FLOW.signature()


@pytest.mark.parametrize("start", [resume, run], ids=["resume", "run"])
def test_whoever_resumes_it_is_its_first_life(start: Any) -> None:
    store = InMemoryStateStore()
    submit(FLOW, run_id="r", store=store, text="ab")

    result = start(FLOW, "r", store=store) if start is resume else run(FLOW, run_id="r", store=store, text="ab")

    assert result.output == "abab"
    assert (stored(store, "r").status, stored(store, "r").lives) == ("finished", 1)


@pytest.mark.parametrize("inputs", [{}, {"text": "a", "tex": "b"}, {"text": 5}])
def test_inputs_that_do_not_fit_are_refused_before_anything_is_stored(inputs: dict[str, Any]) -> None:
    store = InMemoryStateStore()

    with pytest.raises(InputsError):
        submit(FLOW, run_id="r", store=store, **inputs)

    assert stored(store, "r") is None


def test_a_submission_may_be_repeated_also_of_a_run_that_is_finished() -> None:
    store = InMemoryStateStore()
    submit(FLOW, run_id="r", store=store, text="ab")
    resume(FLOW, "r", store=store)

    assert submit(FLOW, run_id="r", store=store, text="ab") == "r"
    assert stored(store, "r").status == "finished"


def test_another_run_under_this_id_is_refused() -> None:
    store = InMemoryStateStore()
    submit(FLOW, run_id="r", store=store, text="ab")

    with pytest.raises(InputsChangedError):
        submit(FLOW, run_id="r", store=store, text="cd")
    with pytest.raises(PipelineChangedError):
        submit(pipeline(twice, name="other"), run_id="r", store=store, text="ab")


def test_a_run_that_was_submitted_without_inputs_is_not_given_any() -> None:
    @agent
    def greet(name: str = "you") -> str:
        return f"hello {name}"

    store, greeting = InMemoryStateStore(), pipeline(greet, name="greeting")
    submit(greeting, run_id="r", store=store)

    with pytest.raises(InputsChangedError):
        run(greeting, run_id="r", store=store, name="me")
    assert resume(greeting, "r", store=store).output == "hello you"


def test_submissions_at_once_store_one_run() -> None:
    store = InMemoryStateStore()

    async def work() -> list[str]:
        return await asyncio.gather(*(asubmit(FLOW, run_id="r", store=store, text="ab") for _ in range(8)))

    assert asyncio.run(work()) == ["r"] * 8
    assert stored(store, "r").revision == 1


def test_a_store_that_workers_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="workers cannot share the runs of"):
        submit(FLOW, store=FourFields(), text="ab")


@pytest.mark.parametrize("words", [["submit"], ["worker", "--until-idle"]])
def test_the_commands_refuse_a_store_that_ends_with_them(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["text=ab"] if words == ["submit"] else []

    assert main([*words, "tests/n00dles/test_submit.py:FLOW", "--store", "memory://", *inputs]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert "memory:// ends with this process, so no worker would ever find a run in it." in err


def test_inside_an_event_loop_it_says_what_to_call() -> None:
    async def work() -> None:
        submit(FLOW, store=InMemoryStateStore(), text="ab")

    with pytest.raises(RuntimeError, match=r"Use `await asubmit\(…\)` there"):
        asyncio.run(work())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["text=ab", "times:=3"], 0, ""),
        (["--run-id", "r", "text=ab", "times:=3"], 0, ""),
        (["text"], 2, "ConfigurationError: 'text' is no input: write name=text, or name:=json"),
        (["text=ab", "store=x"], 2, "ConfigurationError: 'store' is an option (--store), and no input."),
        (["times:=3"], 1, "InputsError: the inputs do not fit pipeline 'flow': 'text' is missing (read by twice)."),
    ],
)
def test_the_command_prints_the_id_or_says_why_not(
    arguments: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"

    assert main(["submit", "tests/n00dles/test_submit.py:FLOW", "--store", store, *arguments]) == code

    out, err = capsys.readouterr()
    assert message in err
    assert len(out.split()) == (code == 0)
    if code == 0:
        assert main(["runs", "show", out.strip(), "--store", store]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"^status +waiting$", shown, re.MULTILINE)
        assert re.search(r"^input times +3$", shown, re.MULTILINE)
        assert "it waits for a worker: n00dles worker PIPELINE" in shown

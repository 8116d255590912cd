"""Runs that earlier releases have stored are loaded and resumed by this one, and this one stores runs as it says.

See tests/golden/README.md for what to do when a test here fails after a change of the format.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from n00dles import (
    CorruptCheckpointError,
    InputsChangedError,
    PipelineChangedError,
    PipelineContext,
    RunResult,
    agent,
    idempotency,
    pipeline,
    resume,
    run,
)
from n00dles.events import Event, NodeStarted
from n00dles.serialization import dumps
from n00dles.stores.adapt import as_store
from tests.golden import flows, make
from tests.golden.formats import FORMATS, Format, JsonFile, newest

EXPECTED: dict[str, dict[str, Any]] = {
    form.name: json.loads((form.folder / "expected.json").read_text(encoding="utf-8")) for form in FORMATS
}
ALL = [(form, run_id) for form in FORMATS for run_id in EXPECTED[form.name]]
READABLE = [(form, run_id) for form, run_id in ALL if "unreadable" not in EXPECTED[form.name][run_id]]
BEGUN = [(form, run_id) for form, run_id in READABLE if EXPECTED[form.name][run_id]["order"]]


def _id(part: Format | str) -> str:
    return part.name if isinstance(part, Format) else ascii(part)


golden_runs = pytest.mark.parametrize(("form", "run_id"), READABLE, ids=_id)
with_completed_nodes = pytest.mark.parametrize(("form", "run_id"), BEGUN, ids=_id)


class Run:
    """A golden run in a copy of its file."""

    def __init__(self, form: Format, run_id: str, folder: Path) -> None:
        self.run_id = run_id
        self.expected = EXPECTED[form.name][run_id]
        self.path = folder / form.file
        self.store = form.copied(folder)
        self.called: list[str] = []

    def load(self) -> PipelineContext:
        context = asyncio.run(as_store(self.store).load(self.run_id))  # type: ignore[attr-defined]
        assert context is not None
        return context  # type: ignore[no-any-return]

    def resumed(self, flow: Any = None, **inputs: Any) -> RunResult:
        self.called.clear()
        flow = flow or flows.FLOWS[self.expected["flow"]]
        if inputs:
            return run(flow, run_id=self.run_id, store=self.store, observers=[self.observe], **inputs)
        return resume(flow, self.run_id, store=self.store, observers=[self.observe])

    def observe(self, event: Event) -> None:
        if isinstance(event, NodeStarted):
            self.called.append(event.node)


@pytest.fixture
def golden(form: Format, run_id: str, tmp_path: Path) -> Run:
    return Run(form, run_id, tmp_path)


@golden_runs
def test_a_golden_run_is_loaded_exactly(golden: Run) -> None:
    expected = golden.expected

    context = golden.load()

    # As text, since 1, 1.0 and True are different values.
    assert dumps(context.inputs) == dumps(expected["inputs"])
    assert dumps(dict(context.completed)) == dumps(expected["completed"])
    assert context.order == expected["order"]
    assert (context.status, context.pipeline, context.error) == tuple(
        expected[name] for name in ("status", "pipeline", "error")
    )
    assert (context.lives, context.stalled) == (expected["lives"], expected["stalled"])
    nodes = context.nodes.items()
    assert {node: [record.attempts, record.spent] for node, record in nodes} == expected["attempts"]
    assert {node: [record.input_tokens, record.output_tokens] for node, record in nodes} == expected["tokens"]


@golden_runs
def test_a_resume_calls_exactly_the_unfinished_nodes(golden: Run) -> None:
    result = golden.resumed()

    assert sorted(golden.called) == sorted(golden.expected["called"])
    assert not set(golden.called) & set(golden.expected["completed"])
    assert dumps(result.output) == dumps(golden.expected["output"])
    assert result.total_tokens == golden.expected["total_tokens"]


@golden_runs
def test_a_golden_run_that_is_finished_calls_nothing(golden: Run) -> None:
    first = golden.resumed()

    again = golden.resumed()

    assert golden.called == []
    assert dumps(again.output) == dumps(first.output) == dumps(golden.expected["output"])
    assert golden.load().status == "finished"


@golden_runs
def test_other_inputs_are_refused_and_the_same_ones_are_not(golden: Run) -> None:
    inputs = golden.expected["inputs"]
    name = next(iter(inputs))
    before = golden.load().to_json()

    with pytest.raises(InputsChangedError, match=f"was started with {name}="):
        golden.resumed(**{**inputs, name: ["other"]})

    assert (golden.called, _without_incarnation(golden.load().to_json())) == ([], _without_incarnation(before))
    assert dumps(golden.resumed(**inputs).output) == dumps(golden.expected["output"])


@agent
def in_front() -> str:
    raise AssertionError("called")


@with_completed_nodes
def test_a_changed_pipeline_is_refused_by_name(golden: Run) -> None:
    flow = flows.FLOWS[golden.expected["flow"]]
    first, before = golden.expected["order"][0], golden.load().to_json()

    for changed, difference in (
        (pipeline(in_front >> flow, name=flow.name), "its step 1 was |its node .* is completed, and 'in_front'"),
        (pipeline(flow.steps[0].named("renamed"), name=flow.name), f"its completed node {first!r} is not in"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(PipelineChangedError, match=difference):
            golden.resumed(changed)

    assert (golden.called, _without_incarnation(golden.load().to_json())) == ([], _without_incarnation(before))


@golden_runs
def test_the_idempotency_keys_of_a_golden_run_are_what_they_were(golden: Run) -> None:
    keys = {}
    for node in golden.expected["keys"]:
        with idempotency.node_call(golden.run_id, node, node):
            keys[node] = idempotency.idempotency_key()

    assert keys == golden.expected["keys"]


def old_rows(path: Path) -> list[Any]:
    """Return the runs in a database of 0.3."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT run_id, state, updated_at FROM runs").fetchall()


@pytest.mark.parametrize("run_id", ["not a number", "half a letter"])
def test_what_0_3_should_not_have_stored_is_refused_and_left_as_it_is(run_id: str, tmp_path: Path) -> None:
    golden = Run(FORMATS[0], run_id, tmp_path)
    before = old_rows(golden.path)

    with pytest.raises(CorruptCheckpointError, match="left as it is"):
        golden.load()
    with pytest.raises(CorruptCheckpointError, match="left as it is"):
        golden.resumed(flows.DESK)

    assert golden.called == []
    assert old_rows(golden.path) == before


def test_what_is_expected_of_0_3_is_what_it_wrote(tmp_path: Path) -> None:
    # The other expectations were written by the release that wrote the runs.
    golden = Run(FORMATS[0], "finished", tmp_path)

    rows = old_rows(golden.path)

    assert {run_id for run_id, _, _ in rows} == EXPECTED["n00dles-0.3"].keys()
    for run_id, state, _ in rows:
        expected, stored = EXPECTED["n00dles-0.3"][run_id], json.loads(state)
        if "unreadable" not in expected:
            nodes = {node: output for node, output in stored["completed"].items() if "[" not in node}
            assert dumps(expected["completed"]) == dumps(nodes)
            assert expected["order"] == [node for node in stored["order"] if "[" not in node]


@pytest.mark.parametrize("form", [form for form in FORMATS if form.sha256], ids=_id)
def test_a_released_golden_file_is_as_it_was(form: Format) -> None:
    assert hashlib.sha256((form.folder / form.file).read_bytes()).hexdigest() == form.sha256


def test_the_runs_that_matter_are_there() -> None:
    for form in FORMATS:
        runs = EXPECTED[form.name].values()
        readable = [each for each in runs if "unreadable" not in each]
        assert any(each["called"] and each["completed"] for each in readable)
        assert any(not each["called"] for each in readable)
        assert any(None in each["completed"].values() for each in readable)
        assert any(2**64 in each["completed"].get("numbers", ()) for each in readable)
        if form.name != "n00dles-0.3":
            assert {each["status"] for each in readable} == {"running", "finished", "failed"}
            assert any(
                spent and node in each["called"] for each in readable for node, (_, spent) in each["attempts"].items()
            )
            assert any(each["stalled"] > 1 for each in readable)
            assert any(each["lives"] > 1 for each in readable)


# What this release writes.

ADVICE = "this release stores runs in another form than its newest golden file: see the rules in tests/golden/README.md"


def test_the_record_is_stored_in_the_form_of_its_newest_golden_file(tmp_path: Path) -> None:
    form = newest("runs.jsonl")

    asyncio.run(make.made(form, tmp_path))

    now, then = (
        {run_id: _settled(json.loads(text)) for run_id, text in JsonFile(folder / form.file).texts().items()}
        for folder in (tmp_path, form.folder)
    )
    assert now == then, ADVICE


def _settled(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with what is different each time by its type alone."""
    assert isinstance(record["incarnation"], str)
    for part in (record, *record["nodes"].values()):
        for name in ("incarnation", "created_at", "updated_at", "elapsed_ms", "duration_ms"):
            if name in part:
                part[name] = type(part[name]).__name__
    return {**record, "completed": dumps(record["completed"]), "inputs": dumps(record["inputs"])}


def test_the_database_is_stored_in_the_form_of_its_newest_golden_file(tmp_path: Path) -> None:
    form = newest("runs.sqlite")

    asyncio.run(make.made(form, tmp_path))

    assert _form_of(tmp_path / form.file) == _form_of(form.folder / form.file), ADVICE


def _form_of(path: Path) -> dict[str, list[Any]]:
    """Return all that a database holds, with what is different each time by its type alone."""
    found: dict[str, list[Any]] = {}
    # In write-ahead-log mode also a reader writes, and a golden file is only read.
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        for pragma in ("user_version", "application_id", "encoding", "auto_vacuum"):
            found[pragma] = connection.execute(f"PRAGMA {pragma}").fetchall()
        tables = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        found["schema"] = tables
        for kind, name, _ in tables:
            if kind == "table" and not name.startswith("sqlite_"):
                cursor = connection.execute(f"SELECT * FROM {name}")
                names = [column[0] for column in cursor.description]
                found[name] = [_steady(dict(zip(names, row, strict=True))) for row in cursor]
    found["header"] = list(path.read_bytes()[18:20])  # 2, 2: the write-ahead log
    return found


def _steady(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what is different each time: checksums, durations, and in a head its ids and times."""
    for column in {"checksum", "duration_ms"} & row.keys():
        row[column] = type(row[column]).__name__
    if "content" in row and row["node"] is None:
        text = re.sub(r"[0-9a-f]{32}", "<id>", row["content"])
        row["content"] = re.sub(r"\d+\.\d+(e-?\d+)?|\d+e-\d+", "<float>", text)
    return row


def _without_incarnation(text: str) -> dict[str, Any]:
    # Records that have none get another one at each load.
    record = json.loads(text)
    return {name: value for name, value in record.items() if name not in ("incarnation", "updated_at", "created_at")}

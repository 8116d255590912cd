"""What a home-made loop is given, what is refused as one, and how its functions and its writes are seen."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from n00dles import ConfigurationError
from n00dles.events import Event
from n00dles_testing import PlainFunctions
from n00dles_testing.crash.life import SelfContained
from n00dles_testing.plain import each
from n00dles_testing.plain.interception import copy_of, intercepted
from n00dles_testing.plain.nodes import all_needs
from n00dles_testing.plain.writes import watching_writes
from tests.n00dles_testing.plain import loops


def events_of(subject: PlainFunctions, location: Path, **inputs: Any) -> tuple[Any, list[Event]]:
    events: list[Event] = []
    place = subject.open_store(str(location))
    run = subject.run(subject.pipeline, run_id="r-1", store=place, observers=[events.append], inputs=inputs)
    return asyncio.run(run).output, events


def double(number: int, *, times: int = 2) -> int:
    return number * times


@pytest.fixture
def closing_over() -> Any:
    offset = 10

    def shifted(number: int) -> int:
        return number + offset

    return shifted


def test_a_subject_is_an_executor_that_brings_its_pipeline() -> None:
    assert isinstance(loops.by_name_subject, SelfContained)
    assert [agent.name for agent in loops.by_name_subject.pipeline.agents()] == ["research", "write", "publish"]


def test_events_tell_of_calls_writes_and_what_is_stored_in_order(tmp_path: Path) -> None:
    output, events = events_of(loops.by_name_subject, tmp_path, topic="x")

    assert output == "/articles/4"
    assert [event.name for event in events if event.name != "checkpoint_writing"][:5] == [
        "run_started",
        "node_started",
        "node_returned",
        "known_stored",
        "node_started",
    ]
    assert [event.node for event in events if event.name == "checkpoint_writing"] == [  # type: ignore[attr-defined]
        *("research", "research", "write", "write", "publish", "publish")
    ]


def test_the_loop_gets_its_inputs_the_run_id_and_a_folder_as_it_wants_it(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def loop(topic: str, run_id: str, place: str) -> None:
        seen.update(topic=topic, run_id=run_id, place=place)
        double(1)

    events_of(PlainFunctions(loop, [double], folder="place"), tmp_path, topic="x")

    assert seen == {"topic": "x", "run_id": "r-1", "place": str(tmp_path / "folder")}


def test_a_resume_gives_the_inputs_that_the_run_began_with(tmp_path: Path) -> None:
    subject = loops.by_name_subject
    events_of(subject, tmp_path, topic="first")

    place = subject.open_store(str(tmp_path))
    again = asyncio.run(subject.resume(subject.pipeline, run_id="r-1", store=place, observers=[]))

    assert place.inputs() == {"topic": "first"}
    assert again.output == "/articles/4"


def test_an_older_run_knows_whether_it_has_finished(tmp_path: Path) -> None:
    place = loops.by_name_subject.open_store(str(tmp_path))
    assert asyncio.run(place.load("r-1")) is None

    place.begin("r-1", {"topic": "x"})
    begun = asyncio.run(place.load("r-1"))
    events_of(loops.by_name_subject, tmp_path, topic="x")
    finished = asyncio.run(place.load("r-1"))

    assert begun is not None
    assert finished is not None
    assert (begun.status, begun.order) == ("running", [])
    assert (finished.status, finished.order) == ("finished", ["research", "write", "publish"])


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (functools.partial(double, 2), "is no Python function"),
        (len, "is no Python function"),
        (Iterator, "is no Python function"),
    ],
)
def test_what_cannot_be_watched_is_refused(node: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PlainFunctions(loops.by_name, [node])


def test_a_generator_is_refused() -> None:
    def steps() -> Iterator[int]:
        yield 1

    with pytest.raises(ConfigurationError, match="'steps' is a generator"):
        PlainFunctions(loops.by_name, [steps])


def test_two_functions_of_one_name_and_no_function_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two functions are named 'double'"):
        PlainFunctions(loops.by_name, [double, copy_of(double)])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="nodes= is empty"):
        PlainFunctions(loops.by_name, [])


def test_calls_that_are_listed_need_the_parameter_and_have_names_of_their_own() -> None:
    subject = PlainFunctions(loops.by_name, each(double, "times", [1, "a b"]))

    assert list(subject.nodes) == ["double-1", "double-a-b"]
    with pytest.raises(ConfigurationError, match="`double` has no parameter 'chapter'"):
        PlainFunctions(loops.by_name, each(double, "chapter", [1]))
    with pytest.raises(ConfigurationError, match=r"'double' is listed both by itself and by each"):
        PlainFunctions(loops.by_name, [double, *each(double, "times", [1])])


def test_a_loop_without_the_folder_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"double has no parameter 'folder'.*folder='state_folder'"):
        PlainFunctions(double, loops.NODES)


def test_each_function_needs_those_before_it_unless_it_is_said_otherwise() -> None:
    names = ["a", "b", "c"]

    assert all_needs(names, None) == {"a": [], "b": ["a"], "c": ["a", "b"]}
    assert all_needs(names, {"b": []}) == {"a": [], "b": [], "c": ["a", "b"]}
    assert all_needs(names, {"c": ["b"]}) == {"a": [], "b": ["a"], "c": ["a", "b"]}
    with pytest.raises(ConfigurationError, match="names 'd', which is none"):
        all_needs(names, {"c": ["d"]})
    with pytest.raises(ConfigurationError, match="circle: 'a' needs itself"):
        all_needs(names, {"a": ["b"]})


def test_every_reference_to_a_function_leads_to_its_handler_and_back_afterwards(closing_over: Any) -> None:
    function: Any = double
    alias, listed, bound = double, [double], functools.partial(double, 1)
    original, own = copy_of(function), copy_of(closing_over)
    signature = inspect.signature(double)

    with intercepted({function: lambda *a, **k: ("double", original(*a, **k)), closing_over: lambda n: ("c", own(n))}):
        inside: Any = alias(1), listed[0](2, times=3), bound(), closing_over(1), inspect.signature(double)

    assert inside == (("double", 2), ("double", 6), ("double", 2), ("c", 11), signature)
    assert (double(1), closing_over(1), inspect.signature(double)) == (2, 11, signature)
    assert "__signature__" not in vars(double)


def test_a_coroutine_function_stays_one() -> None:
    async def fetch(number: int) -> int:
        return number

    function: Any = fetch
    own = copy_of(function)

    async def handler(number: int) -> int:
        return 100 + int(await own(number))

    with intercepted({function: handler}):
        assert inspect.iscoroutinefunction(fetch)
        assert asyncio.run(fetch(1)) == 101
    assert asyncio.run(fetch(1)) == 1


def test_a_function_that_calls_itself_is_one_call(tmp_path: Path) -> None:
    def down(number: int) -> int:
        return number if number == 0 else down(number - 1)

    def loop(folder: Path) -> int:
        return down(3)

    output, events = events_of(PlainFunctions(loop, [down]), tmp_path)

    assert output == 0
    assert [event.name for event in events].count("node_started") == 1


def test_a_file_is_seen_as_it_is_emptied_and_before_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("old")
    seen: list[tuple[str, list[str]]] = []

    def moment() -> None:
        seen.append((file.read_text(), sorted(os.listdir(tmp_path))))

    with watching_writes(tmp_path, moment):
        file.write_text("new")
        (tmp_path / "other").write_text("newer")
        os.replace(tmp_path / "other", file)
        file.read_text()
        with open(file, "a") as appended:
            appended.write("!")
    file.write_text("unseen")

    assert seen == [("", ["state"]), ("new", ["other", "state"]), ("new", ["other", "state"])]


def test_a_transaction_of_sqlite_is_seen_before_it_is_committed(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    seen: list[int] = []

    def moment() -> None:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
            seen.append(reader.execute("SELECT count(*) FROM outputs").fetchone()[0])

    with watching_writes(tmp_path, moment), closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE outputs (name TEXT)")
        for name in ("research", "write"):
            connection.execute("INSERT INTO outputs VALUES (?)", [name])
            connection.commit()
        connection.execute("SELECT name FROM outputs").fetchall()
        connection.isolation_level = None
        connection.execute("INSERT INTO outputs VALUES ('publish')")
    with watching_writes(tmp_path, moment), closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE other (name TEXT)")
        connection.execute("INSERT INTO other VALUES ('x')")
        connection.commit()

    assert seen == [0, 1, 2]


def test_what_a_program_writes_elsewhere_is_not_seen(tmp_path: Path) -> None:
    watched, elsewhere = tmp_path / "a", tmp_path / "ab"
    watched.mkdir()
    elsewhere.mkdir()
    seen: list[None] = []

    with watching_writes(watched, lambda: seen.append(None)):
        (elsewhere / "file").write_text("x")

    assert seen == []


def test_what_a_function_writes_is_its_effect_and_no_save(tmp_path: Path) -> None:
    def draw(folder: Path) -> str:
        (folder / "cover.png").write_text("a picture")
        return "cover.png"

    def loop(folder: Path) -> str:
        return draw(folder)

    _, events = events_of(PlainFunctions(loop, [draw]), tmp_path)

    assert [event.name for event in events] == ["run_started", "node_started", "node_returned", "run_finished"]


def test_arguments_have_their_names_and_a_method_is_seen_without_its_self(tmp_path: Path) -> None:
    _, events = events_of(loops.class_subject, tmp_path, topic="x")

    arguments = {event.node: event.arguments for event in events if event.name == "node_started"}  # type: ignore[attr-defined]
    assert arguments == {"gather": {"topic": "x"}, "tell": {"facts": ["x", "more"]}}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("run", [double]), {}, "the loop is 'run', and has to be callable; give the function itself"),
        ((None, [double]), {}, "the loop is None, and has to be callable"),
        ((loops.by_name, double), {}, r"nodes= is <function double.*>, and has to be a list of functions: nodes=\["),
        ((loops.by_name, "double"), {}, "nodes= is 'double', and has to be a list of functions"),
        (
            (loops.by_name, [double]),
            {"needs": ["double"]},
            "needs= is .*, and has to be a list of names for each function",
        ),
        ((loops.by_name, [double]), {"needs": {"double": "x"}}, "needs= is .*, and has to be a list of names for each"),
        ((loops.by_name, [double]), {"stored": ["double"]}, "stored= is .*, and has to be callable, with the folder"),
        (
            (loops.by_name, [double]),
            {"folder": Path("x")},
            "folder= is .*, and has to be the name of a parameter of the loop",
        ),
        ((loops.by_name, [double]), {"name": 3}, "name= is 3, and has to be a text"),
    ],
    ids=lambda value: None,
)
def test_an_argument_of_another_kind_is_named(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PlainFunctions(*arguments, **options)


def test_functions_that_need_the_same_are_a_fan_out_and_routes_are_a_branch() -> None:
    def loop(folder: Path) -> None: ...

    def plan() -> None: ...
    def left() -> None: ...
    def right() -> None: ...
    def refund() -> None: ...
    def reject() -> None: ...

    needs = {"right": ["plan"], "refund": ["left", "right"], "reject": ["left", "right"]}
    subject = PlainFunctions(
        loop, [plan, left, right, refund, reject], needs=needs, routes={"decision": ["refund", "reject"]}
    )

    described = subject.describe()
    assert [group["members"] for group in described["groups"]] == [{"left": ["left"], "right": ["right"]}]
    assert described["branches"] == [{"name": "decision", "routes": {"refund": ["refund"], "reject": ["reject"]}}]
    with pytest.raises(ConfigurationError, match="routes= names 'refuse', which is none of the functions"):
        PlainFunctions(loop, [plan], routes={"decision": ["refuse"]})

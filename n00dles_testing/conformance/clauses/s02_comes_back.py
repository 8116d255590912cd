"""S02: what was saved comes back."""

from __future__ import annotations

from typing import Any

from ..registry import clause
from ..subject import StoreSubject

_OUTPUTS: tuple[tuple[str, Any], ...] = (
    ("text", "three key facts"),
    ("a dict", {"title": "Cats"}),
    ("None", None),
    ("an empty list", []),
    ("an empty dict", {}),
    ("False", False),
    ("True", True),
    ("a nested value", {"title": "Cats", "facts": [{"id": 1, "source": None}, [], {}], "tags": {}}),
    ("a list of nothings", [None, [], {}, "", 0, False]),
    ("keys that look like numbers, or like nothing", {"1": "one", "": "empty", "None": None, "true": False}),
)
_TEXTS: tuple[tuple[str, str], ...] = (
    ("an empty text", ""),
    ("a text of one space", " "),
    ("text with spaces before it", "  three key facts"),
    ("text with spaces behind it", "three key facts  "),
    ("text between tabs", "\tthree key facts\t"),
    ("text between newlines", "\nthree key facts\n"),
    ("lines that end with CRLF", "three\r\nkey facts\r\n"),
    ("lines that end with CR", "three\rkey facts\r"),
    ("text between no-break spaces", "\u00a0three key facts\u00a0"),
    ("quotes, lines and a backslash", 'she said "purr",\n\tthen C:\\cats'),
    ("text that is JSON", '{"title": "Cats"}'),
    ("the text 'null'", "null"),
    ("the text 'None'", "None"),
    ("the text 'true'", "true"),
    ("the text '1'", "1"),
    ("the text '007'", "007"),
    ("the text '1e5'", "1e5"),
    ("a byte order mark first", "\ufeffthree key facts"),
    ("an accent in one character (NFC)", "caf\u00e9"),
    ("the accent as a character of its own (NFD)", "cafe\u0301"),
    ("characters of three and four bytes", "猫, 😺"),
)
"""Also the whole of an output, part of one, and an input: a store may treat each in another way."""
_NUMBERS: tuple[tuple[str, int | float], ...] = (
    ("0", 0),
    ("0.0", 0.0),
    ("1.0", 1.0),
    ("-1", -1),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("2**53", 2**53),
)
_MAY_BE_REFUSED: tuple[tuple[str, Any], ...] = (
    ("text with a NUL", "three\x00key facts"),
    ("2**53 + 1", 2**53 + 1),
    ("2**63", 2**63),
    ("-0.0", -0.0),
    ("1e308", 1e308),
    ("5e-324", 5e-324),
)
"""What a database may have no room for. A refusal is told, and is not a fault; another value in its place is one."""


@clause("S02", level=1, title="what was saved comes back")
async def what_was_saved_comes_back(subject: StoreSubject) -> None:
    """Outputs, completion order and inputs come back as they were saved.

    A `None` output is distinct from no output, and an empty container from a missing one. Whether a node runs again on
    resume hangs on `is_complete`, and what follows it on its output: a store that drops what is falsy makes a node run
    (and be paid for) again, one that sorts nodes by name hands the wrong "previous output" to the next. Texts are tried
    with white space around them, in the two Unicode forms, and looking like numbers or nothing; numbers at the edges of
    what a double or 64 bits hold. For some of these a store may have no room: it may refuse to save them, if the run
    then stays as it was.

    Seen in: HomericIntelligence/Scylla PR #368 (all runs again, a lookup never matched), langchain-ai/langgraph #9021
    and #8388 (values come back as None), dbos-inc/dbos-transact-py #688 (recorded in one order, recovered in another).
    """
    for title, output in (*_OUTPUTS, *_NUMBERS):
        await _one_output(subject, title, output)
    for title, text in _TEXTS:
        await _one_text(subject, title, text)
    for title, output in _MAY_BE_REFUSED:
        await _one_that_may_be_refused(subject, title, output)
    await _none_is_not_missing(subject)
    await _inputs(subject)
    await _order_over_saves(subject)
    await _order_within_a_save(subject)
    await _many_nodes(subject)
    await _runs_side_by_side(subject)
    for _ in range(3):
        await _drawn(subject)
    await _note_whether_revisions_are_kept(subject)


async def _one_output(subject: StoreSubject, title: str, output: Any) -> None:
    async with subject.scenario(f"an output: {title}") as s:
        handle = await s.create()

        await s.save(handle, {"node": output})

        await s.expect_acknowledged(handle.run_id, because="the save was acknowledged")


async def _one_text(subject: StoreSubject, title: str, text: str) -> None:
    async with subject.scenario(f"an output and an input: {title}") as s:
        handle = await s.create({"text": text})

        await s.save(handle, {"node": text})
        await s.save(handle, {"other": {"part": [text], text: "as a key"}})

        await s.expect_acknowledged(handle.run_id, because="both saves were acknowledged")


async def _one_that_may_be_refused(subject: StoreSubject, title: str, output: Any) -> None:
    async with subject.scenario(f"an output, or a refusal: {title}") as s:
        handle = await s.create()
        await s.save(handle, {"before": "kept"})

        if await s.saves_or_refuses(handle, {"node": output}):
            await s.expect_acknowledged(handle.run_id, because="the save was acknowledged")
        else:
            subject.notes.append(f"the store refuses to save {title}")
            await s.expect_acknowledged(handle.run_id, because="the save was refused, so the run stays as it was")


async def _none_is_not_missing(subject: StoreSubject) -> None:
    async with subject.scenario("a node that returned None, and one that has not run") as s:
        handle = await s.create()

        await s.save(handle, {"returned_none": None})

        again = await s.expect_acknowledged(handle.run_id, because="None is an output: the node has completed")
        s.expect(again.context.is_complete("returned_none")).equals(
            True, what="is_complete('returned_none')", because="the node has completed, with None"
        )
        s.expect(again.context.is_complete("never_ran")).equals(
            False, what="is_complete('never_ran')", because="the node has never run"
        )


async def _inputs(subject: StoreSubject) -> None:
    async with subject.scenario("inputs, after saves") as s:
        inputs: dict[str, Any] = {
            "topic": "cats",
            "none": None,
            "list": [],
            "dict": {},
            "deep": {"a": [{"b": {}}]},
            "x": 1.0,
        }
        handle = await s.create(inputs)
        await s.expect_acknowledged(handle.run_id, because="these are the inputs that the run was created with")

        await s.save(handle, {"researcher": "facts"})
        await s.save(handle, {"writer": "text"})

        await s.expect_acknowledged(handle.run_id, because="a save of outputs keeps the inputs")


async def _order_over_saves(subject: StoreSubject) -> None:
    async with subject.scenario("completion order, one save a node, each from a fresh load") as s:
        run_id = (await s.create()).run_id
        for node in ("writer", "researcher", "editor", "10", "9", "Author"):
            handle = await s.load(run_id)
            await s.save(handle, {node: f"by {node}"})
            await s.expect_acknowledged(run_id, because=f"{node!r} completed last; what was there before stays")


async def _order_within_a_save(subject: StoreSubject) -> None:
    async with subject.scenario("completion order, several nodes in one save") as s:
        handle = await s.create()

        await s.save(handle, {"c": 1, "a": 2, "b": 3})
        await s.save(handle, {"0": 4, "z": 5, "B": 6})

        await s.expect_acknowledged(handle.run_id, because="this is the order in which they completed")


async def _many_nodes(subject: StoreSubject) -> None:
    async with subject.scenario("forty nodes, saved through one handle") as s:
        handle = await s.create()
        names = subject.draw.names(40)
        for start in range(0, 40, 8):
            await s.save(handle, {name: {"by": name, "nothing": None} for name in names[start : start + 8]})

        await s.expect_acknowledged(handle.run_id, because="every save was acknowledged")


async def _runs_side_by_side(subject: StoreSubject) -> None:
    async with subject.scenario("two runs with nodes of the same names, saved in turn") as s:
        cats, dogs = await s.create({"topic": "cats"}), await s.create({"topic": "dogs"})
        await s.save(cats, {"researcher": "cats purr"})
        await s.save(dogs, {"writer": "On Dogs", "researcher": "dogs bark"})
        await s.save(cats, {"writer": "On Cats"})

        await s.expect_acknowledged(cats.run_id, because="the other run's saves are not this one's")
        await s.expect_acknowledged(dogs.run_id, because="the other run's saves are not this one's")


async def _drawn(subject: StoreSubject) -> None:
    async with subject.scenario("drawn inputs and outputs") as s:
        handle = await s.create(subject.draw.outputs(3))
        for size in (1, 3, 2):
            fresh = {f"{node}-{subject.draw.token()}": output for node, output in subject.draw.outputs(size).items()}
            await s.save(handle, fresh)
            await s.expect_acknowledged(handle.run_id, because="every save was acknowledged")


async def _note_whether_revisions_are_kept(subject: StoreSubject) -> None:
    """No clause asks for revisions, but whoever reads the report should know what a second writer would do."""
    async with subject.probe("does the store keep a revision?") as s:
        handle = await s.create()
        await s.save(handle, {"node": "saved once"})
        if (await s.load(handle.run_id)).context.revision == 0:
            subject.notes.append("the store keeps no revision: the last writer wins")

"""A story read as a time line: lanes, calls, and how they ended."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from n00dles_testing.report.differences import marked
from n00dles_testing.report.timeline import MOST_LANES, Event, Lane, Mark, read_story


def test_calls_are_read_with_their_outcomes() -> None:
    line = read_story(
        (
            "scenario two workers",
            "open(S08-1) → open",
            "save('r') with {'a': 1} → acknowledged",
            "save('r') with {'b': 1} → raised StaleError",
            "load_or_create('r', {}) → inputs {}, completed {'a': 1}, order ['a']",
            "the clock shows -3600 s",
            "… 12 more calls …",
            "delete('r')",
        )
    )

    assert line.title == "two workers"
    assert [(event.name, event.mark) for event in line.events] == [
        ("open", Mark.DONE),
        ("save", Mark.ACKNOWLEDGED),
        ("save", Mark.RAISED),
        ("load_or_create", Mark.GAVE),
        ("", Mark.NOTE),
        ("", Mark.LEFT_OUT),
        ("delete", Mark.NO_ANSWER),
    ]
    assert line.events[1] == Event(0, "save", "('r') with {'a': 1}", Mark.ACKNOWLEDGED, "acknowledged")


def test_cancelled_calls_and_calls_without_end_are_told_apart() -> None:
    line = read_story(
        (
            "save('r') with {'a': 1}, cancelled at its first await → cancelled",
            "the second thread: save('r', b) → has not ended",
            "acknowledged before: inputs {}",
        )
    )

    assert [(event.lane, event.name, event.mark) for event in line.events] == [
        (0, "save", Mark.CANCELLED),
        (1, "save", Mark.NO_ANSWER),
        (0, "", Mark.NOTE),
    ]
    assert line.lanes[1].name == "the second thread"


def test_processes_are_lanes_from_their_first_to_their_last_event() -> None:
    line = read_story(
        (
            "open(x) → open",
            "process 7: save('r') with {} → acknowledged",
            "process 7: was killed by SIGKILL right after its acknowledgement",
            "close() → closed",
        )
    )

    assert line.lanes == (Lane("here", 0, 3), Lane("process 7", 1, 2))
    assert [(event.lane, event.mark) for event in line.events] == [
        (0, Mark.DONE),
        (1, Mark.ACKNOWLEDGED),
        (1, Mark.KILLED),
        (0, Mark.DONE),
    ]


def test_many_processes_share_the_last_lane() -> None:
    line = read_story([f"process {n}: open(x) → open" for n in range(20)])

    assert len(line.lanes) == MOST_LANES
    assert line.lanes[-1].name == f"process {MOST_LANES - 1} and others"


def test_equal_lines_in_a_row_are_one_event() -> None:
    line = read_story(["open(x) → open"] * 3)

    assert [(event.name, event.times) for event in line.events] == [("open", 3)]


def test_an_arrow_in_what_was_saved_is_no_outcome() -> None:
    [event] = read_story(["save('a → b') with {'x': 'c → d'} → acknowledged"]).events

    assert (event.text, event.outcome) == ("('a → b') with {'x': 'c → d'}", "acknowledged")


def test_labelled_lines_stand_apart() -> None:
    line = read_story(["allowed  1", "came     2", "why      because", "on disk  nothing", "hangs at x.py:3"])

    assert line.details == (
        ("allowed", "1"),
        ("came", "2"),
        ("why", "because"),
        ("on disk", "nothing"),
        ("hangs at", "x.py:3"),
    )
    assert line.detail("came") == "2"
    assert line.detail("raised") is None


@given(st.lists(st.text(max_size=80), max_size=30))
def test_any_text_is_read_and_none_is_lost(story: list[str]) -> None:
    line = read_story(story)

    shown = (
        len(line.details) + sum(event.times for event in line.events) + bool(line.title or story[:1] == ["scenario "])
    )
    assert shown == len(story)
    assert all(event.lane < len(line.lanes) for event in line.events)


@given(st.text("ab ',", max_size=60), st.text("ab ',", max_size=60))
def test_the_parts_of_a_comparison_are_the_texts(allowed: str, came: str) -> None:
    ours, theirs = marked(allowed, came)

    assert "".join(text for text, _ in ours) == allowed
    assert "".join(text for text, _ in theirs) == came
    assert [text for text, is_marked in ours + theirs if is_marked] == [] or allowed != came


def test_what_only_one_text_has_is_marked() -> None:
    ours, theirs = marked("{'a': 1, 'b': 2}", "{'a': 1}")

    assert [text for text, is_marked in ours if is_marked] == [", 'b': 2"]
    assert [text for text, is_marked in theirs if is_marked] == []

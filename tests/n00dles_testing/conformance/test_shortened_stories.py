"""A long story in few lines, with what matters in it."""

from __future__ import annotations

from n00dles_testing.conformance.shortened import shorten

JUDGED = "run-4f-aa11"


def test_a_short_story_is_told_whole() -> None:
    story = [f"thread {number}: save('run-4f-{number}') → raised OSError: {number}" for number in range(24)]

    assert shorten(story) == tuple(story)


def test_errors_that_are_alike_are_told_once() -> None:
    errors = [f"thread {n % 4}: save('run-4f-b{n}', node{n}) → raised RuntimeError: thread id {n}" for n in range(40)]
    last = f"thread 9: load_or_create('{JUDGED}') → inputs {{}}, completed {{}}, order []"

    assert shorten(["scenario four threads", *errors, last]) == (
        "scenario four threads",
        errors[0],
        "… 39 more like it …",
        last,
    )


def test_the_last_call_stays_also_if_it_is_like_the_others() -> None:
    errors = [f"save('run-4f-{number}') → raised OSError: full" for number in range(40)]

    assert shorten(errors) == (errors[0], "… 38 more like it …", errors[-1])


def test_the_calls_of_the_run_that_is_judged_stay_in_their_places() -> None:
    others = [f"save('run-4f-c{number}') with {{'a': {number}}} → acknowledged" for number in range(60)]
    own = [f"save('{JUDGED}') with {{'a': 1}} → acknowledged", f"save('{JUDGED}') with {{'b': 2}} → acknowledged"]
    last = f"load_or_create('{JUDGED}', {{}}) → inputs {{}}, completed {{}}, order []"

    told = shorten([*others[:20], own[0], *others[20:30], own[1], *others[30:], last])

    assert told[8:12] == ("… 12 more calls …", own[0], "… 10 more calls …", own[1])
    assert told[12] == "… 15 more calls …"
    assert told[-1] == last
    assert len(told) < 40


def test_a_call_that_has_not_returned_stays() -> None:
    others = [f"save('run-4f-c{number}') → acknowledged" for number in range(80)]

    told = shorten([*others[:40], "save('run-4f-dd')", *others[40:]])

    assert told == (
        others[0],
        "… 39 more like it …",
        "save('run-4f-dd')",
        others[40],
        "… 38 more like it …",
        others[-1],
    )


def test_a_story_of_nothing_is_empty() -> None:
    assert shorten([]) == ()


def test_calls_in_a_row_that_are_alike_are_told_once_also_in_a_short_story() -> None:
    cycles = [f"process {70 + number}: open use and close → done" for number in range(8)]
    deletes = [f"process 77: delete('run-4f-c{number}') → acknowledged" for number in range(8)]
    other = f"process 70: save('{JUDGED}') → acknowledged"

    told = shorten(["scenario 8 cycles", *cycles, *deletes, *[other] * 4, f"load_or_create('{JUDGED}') → {{}}"])

    assert told == (
        "scenario 8 cycles",
        cycles[0],
        "… 7 more like it …",
        deletes[0],
        "… 7 more like it …",
        *[other] * 4,
        f"load_or_create('{JUDGED}') → {{}}",
    )

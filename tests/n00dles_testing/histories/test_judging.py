"""Rules that no simulated store breaks, and the assumptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from n00dles_testing.histories import History, diagram, judge
from tests.n00dles_testing.histories.hand_made import conflict, delete, load, raced, save, unanswered

_ALONE = [save("a", (n, n + 5), f"u{n}", "t1" if n == 30 else f"u{n - 10}", n // 10 - 1) for n in (30, 40, 50, 60, 70)]


def test_a_race_with_one_winner_passes() -> None:
    judgement = judge(raced())

    assert judgement.kind == "PASS"
    assert (judgement.calls, judgement.runs, judgement.overlap) == (4, 1, 1.0)


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        (History(()), "holds no call"),
        (replace(raced(), starts_empty=False), "not known to be empty"),
        (raced(save("c", (30, 40), "t1", "t1", 2)), "2 saves carry the token 't1'"),
        (raced(load("b", (21, 30), "t1", 1)), "the client b made two calls at once"),
        (raced(unanswered("a", 30, "t3", "t1", 1), load("a", (50, 60), "t1", 1)), "instead of being retired"),
        (raced(load("a", (30, 40), "t1", None)), "some calls were told a revision and some were not"),
        (raced(save("c", (15, 30), "t3", "t1", 2)), "which no call on run 'r' had shown by then"),
        (raced(*_ALONE), "29% of the saves overlapped"),
        (History((load("a", (1, 5)), load("b", (2, 6)))), "no save succeeded"),
    ],
)  # fmt: skip
def test_what_shows_nothing_is_vacuous(history: History, reason: str) -> None:
    judgement = judge(history)

    assert judgement.kind == "VACUOUS"
    assert reason in judgement.reason


def test_a_fault_is_told_though_the_clients_hardly_met() -> None:
    calls = (load("a", (1, 2)), save("a", (3, 4), "t1", None, 1), load("b", (5, 6)))

    judgement = judge(History(calls))

    assert judgement.kind == "FAIL(REALTIME)"
    assert judgement.overlap == 0.0
    assert judgement.violations[0].calls == calls[1:]


def test_a_missing_revision_is_explained_only_by_a_save_without_an_answer() -> None:
    shown = load("c", (50, 60), "t4", 3)
    lost = unanswered("d", 30, "t3", "t1", 1)
    last = replace(unanswered("e", 40, "t4", None, 0), expected=None, executor="x")

    explained = judge(raced(lost, last, shown))
    unexplained = judge(raced(last, shown))

    assert explained.kind == "PASS"
    assert unexplained.kind == "FAIL(REV_GAP)"


def test_a_conflict_without_a_competitor_is_spurious() -> None:
    judgement = judge(raced(conflict("a", (30, 40), "t3", "t1", 1)))

    assert judgement.kind == "FAIL(SPURIOUS_CONFLICT)"
    assert judgement.violations[0].sentence.endswith("had no competitor: nobody has saved revision 2.")


def test_a_completed_node_that_a_later_load_lacks_is_lost_unless_a_delete_explains_it() -> None:
    kept = save("a", (30, 40), "t3", "t1", 2, outputs=("writer",))
    without = load("b", (60, 70), "t3", 2, outputs=())

    assert judge(raced(kept, without)).kind == "FAIL(LOST_OUTPUT)"
    assert judge(raced(kept, replace(without, outputs=("writer",)))).kind == "PASS"
    assert judge(raced(kept, delete("c", (45, 65)), replace(without, token=None, revision=0))).kind == "PASS"


def test_saves_of_one_executor_land_in_its_order() -> None:
    first = save("x1", (30, 50), "t3", "t1", 3, expected=None, executor="x")
    second = save("x2", (31, 45), "t4", "t3", 2, expected=None, executor="x")

    assert judge(raced(first, second)).kind == "FAIL(REORDERED)"
    assert judge(raced(replace(first, revision=2), replace(second, revision=3))).kind == "PASS"


def test_a_diagram_shows_a_row_a_client_and_the_times_of_each_call() -> None:
    calls = (save("a", (1_000_000, 3_000_000), "t1", None, 1), load("b", (4_000_000, 5_500_000)))

    lines = diagram(calls)

    assert lines[0] == "a  ├─save t1 on new run r0 → r1─┤"
    assert lines[1].startswith("b  " + " " * 31)
    assert lines[1].endswith("├─load: nothing saved r0─┤")
    assert lines[2].startswith("time")
    assert lines[3] == "a  1.000 ms … 3.000 ms   save t1 on new run r0 → r1"
    assert lines[4] == "b  4.000 ms … 5.500 ms   load: nothing saved r0"


def test_a_call_without_an_answer_is_drawn_open() -> None:
    lines = diagram((unanswered("a", 1, "t1", None, 0), load("b", (4, 5))))

    assert "save t1 on new run r0 ? no answer" in lines[0]
    assert lines[0].endswith("┄")

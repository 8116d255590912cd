"""A time line folded to a size that can be shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from n00dles_testing.powerloss.folding import MOST, folded
from n00dles_testing.powerloss.telling import Moment

FATES = ("synced", "kept", "partly", "lost", "sync", "failed sync", "unfinished sync", "mark")


def write(position: int, fate: str = "synced", path: str = "a", during: str = "1") -> Moment:
    return Moment(position, f"the data of `{path}`", fate, path, during, "write", size=10)


def sync(position: int) -> Moment:
    return Moment(position, "fsync of `a`", "sync", "a", "1", "sync")


def test_writes_in_a_row_are_one() -> None:
    moments = [write(1, "lost"), write(2, "lost"), write(3, "kept"), write(4, "kept", "b"), sync(5)]

    shown = folded(moments)

    assert [(each.words, each.times, each.size) for each in shown] == [
        ("2 writes to `a` (20 bytes)", 2, 20),
        ("the data of `a`", 1, 10),
        ("the data of `b`", 1, 10),
        ("fsync of `a`", 1, 0),
    ]


def test_what_fits_is_not_left_out() -> None:
    moments = [each for at in range(MOST // 2) for each in (write(2 * at), sync(2 * at + 1))]

    assert folded(moments) == tuple(moments)


def test_what_is_synced_is_left_out_around_what_is_lost() -> None:
    moments = [each for at in range(100) for each in (write(2 * at), sync(2 * at + 1))]
    moments[101] = write(101, "lost", "b")

    shown = folded(moments)

    assert [(each.position, each.words) for each in shown if each.what == "more"] == [
        (2, "and 97 more operations, all of them synced"),
        (104, "and 90 more operations, all of them synced"),
    ]
    assert [each.position for each in shown if each.fate == "lost"] == [101]


def test_a_stretch_in_which_something_is_lost_says_so() -> None:
    moments = [write(at, ("lost", "kept")[at % 2], "ab"[at % 2]) for at in range(400)]

    shown = folded(moments)

    [more] = [each for each in shown if each.what == "more"]
    assert len(shown) == MOST
    assert (more.words, more.fate) == ("and 311 more operations (156 lost, 155 kept)", "lost")


@given(st.lists(st.tuples(st.sampled_from(FATES), st.sampled_from("ab")), max_size=400))
def test_nothing_goes_uncounted_and_all_has_room(drawn: list[tuple[str, str]]) -> None:
    moments = [write(at, fate, path) for at, (fate, path) in enumerate(drawn)]

    shown = folded(moments)

    assert len(shown) <= MOST
    assert [each.position for each in shown] == sorted({each.position for each in shown})
    marks = sum(fate == "mark" for fate, _ in drawn)
    assert len(moments) - marks <= sum(each.times for each in shown) <= len(moments)

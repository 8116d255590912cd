"""A power loss laid out as a picture: lanes, signs, calls, and what was left; and that a page has it, and says it."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n00dles_testing.conformance.expect import BrokenClause
from n00dles_testing.conformance.power_safe import expect_none
from n00dles_testing.conformance.power_workload import saved_again
from n00dles_testing.conformance.scenario import Scenario
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.report.power_loss import PowerLoss
from n00dles_testing.report.power_picture import MOST_LANES, Picture
from n00dles_testing.verdicts import Finding
from tests.n00dles_testing.report.reports import failed, mark, moment, power_loss, report
from tests.n00dles_testing.report.test_html_page import page


def loss(timeline: list[dict[str, Any]] | None = None, **changes: Any) -> PowerLoss:
    form = {"model": "ext4", "calls": ["save('r') with {}", "delete('r')"], "told": []}
    own = {name: changes.pop(name) for name in ("model", "calls", "told") if name in changes}
    return PowerLoss.model_validate({**form, **own, "finding": power_loss(timeline, **changes)})


def drawn(timeline: list[dict[str, Any]] | None = None, **changes: Any) -> Picture:
    picture = Picture.of(loss(timeline, **changes))
    assert picture is not None
    return picture


class TestLanes:
    def test_each_file_has_one_and_the_folder_comes_last(self) -> None:
        assert [lane.name for lane in drawn().lanes] == ["a.tmp", "a", "b", "the folder"]

    def test_at_the_end_of_a_lane_stands_what_was_left(self) -> None:
        assert [lane.left for lane in drawn().lanes] == ["not there", "0 bytes", "not there", "1 name in it"]

    def test_what_is_lost_of_a_file_hurts_it_under_the_name_that_it_gets(self) -> None:
        assert [lane.name for lane in drawn().lanes if lane.is_hurt] == ["a"]

    def test_a_lost_rename_hurts_both_names(self) -> None:
        lost = [moment("the rename", "lost", "a.tmp", what="rename", to_path="a")]

        assert [lane.name for lane in drawn(lost).lanes if lane.is_hurt] == ["a.tmp", "a"]

    def test_of_a_long_name_the_beginning_and_the_end_are_shown(self) -> None:
        [lane] = drawn([moment("a write", "lost", "a-very-long-name-of-a-run-that-is-stored.json")]).lanes

        assert lane.short == "a-very-long-…s-stored.json"

    def test_many_files_share_the_last_one_but_for_those_of_which_something_is_lost(self) -> None:
        timeline = [moment("a write", "synced", f"f{number}") for number in range(40)]
        timeline[30] = moment("a write", "lost", "f30")

        lanes = drawn(timeline, left=[["f39", "1 bytes"]], on_disk=["f39 (1 bytes)"]).lanes

        assert len(lanes) == MOST_LANES
        assert (lanes[-1].name, lanes[-1].left) == ("29 other files", "1 of them is there")
        assert [lane.name for lane in lanes if lane.is_hurt] == ["f30"]

    def test_of_a_list_that_was_cut_nothing_is_concluded(self) -> None:
        lanes = drawn(left=[["a", "0 bytes"]], on_disk=["a (0 bytes)", "and 99 more"]).lanes

        assert [lane.left for lane in lanes][:3] == ["not told", "0 bytes", "not told"]


class TestSigns:
    def test_each_fate_has_a_word_and_a_class_of_its_own(self) -> None:
        fates = ("synced", "kept", "partly", "lost", "sync", "failed sync", "unfinished sync")

        glyphs = drawn([moment("x", fate, "a") for fate in fates]).glyphs

        assert [glyph.word for glyph in glyphs] == [
            "synced",
            "unsynced",
            "part lost",
            "LOST",
            "sync",
            "FAILED",
            "no end",
        ]
        assert len({glyph.css for glyph in glyphs}) == len(fates)

    def test_they_stand_in_their_order_and_a_rename_leads_to_the_lane_of_its_new_name(self) -> None:
        picture = drawn()

        lanes = {lane.name: lane.y for lane in picture.lanes}
        assert [(glyph.symbol, glyph.times) for glyph in picture.glyphs] == [
            ("+", 1),
            ("W", 3),
            ("R", 1),
            ("S", 1),
            ("\N{MINUS SIGN}", 1),
        ]
        assert [glyph.x for glyph in picture.glyphs] == sorted(glyph.x for glyph in picture.glyphs)
        assert [(glyph.y, glyph.to_y) for glyph in picture.glyphs if glyph.to_y] == [(lanes["a.tmp"], lanes["a"])]
        assert all(glyph.x < picture.crash < picture.width for glyph in picture.glyphs)

    def test_a_stretch_that_is_left_out_says_how_much_it_is_and_what_became_of_it(self) -> None:
        words = "and 50 more operations (48 synced, 2 kept)"

        [stretch] = drawn([moment("x", "lost", "a"), moment(words, "kept", what="more", times=50)]).stretches

        assert stretch.lines == ("and 50 more", "48 synced", "2 unsynced")

    def test_nothing_is_drawn_of_a_power_loss_before_the_first_operation(self) -> None:
        assert Picture.of(loss([])) is None
        assert Picture.of(loss([mark("call", "1")])) is None


class TestCalls:
    def test_they_go_from_their_beginning_to_their_acknowledgement_or_to_the_end(self) -> None:
        picture = drawn()

        first, second = picture.spans
        assert (first.token, first.title, first.word, first.is_open) == ("1", "save('r') with {}", "ACK 1", False)
        assert (second.token, second.word, second.is_open, second.end) == ("2", "", True, picture.crash)
        assert first.x < first.end < second.x

    def test_one_that_raised_ends_before_the_next_one(self) -> None:
        timeline = [mark("call", "1"), moment("x", "failed sync", "a"), mark("call", "2"), moment("x", "lost", "a")]

        first, second = drawn(timeline, acknowledged=[], told=["OSError: [Errno 5]", "acknowledged"]).spans

        assert (first.word, first.is_open, second.is_open) == ("error", False, True)
        assert first.end < second.x

    def test_those_that_overlap_stand_one_above_the_other(self) -> None:
        timeline = [mark("call", "1"), mark("call", "2"), moment("x", "lost", "a")]

        assert [span.row for span in drawn(timeline, acknowledged=[]).spans] == [0, 1]

    def test_where_one_ends_in_a_stretch_that_is_left_out_nothing_is_said_of_its_end(self) -> None:
        stretch = moment("and 9 more operations, all of them synced", "synced", what="more", times=9)
        timeline = [mark("call", "1"), stretch, moment("x", "lost", "a")]

        first, second = drawn(timeline).spans

        assert (first.word, first.is_open) == ("", False)
        assert (second.token, second.is_open) == ("2", True)
        assert first.end < second.x


class TestPage:
    def test_it_has_the_picture_and_says_the_same_in_words(self) -> None:
        form = {"model": "ext4", "calls": ["save('r') with {}", "delete('r')"], "told": [], "finding": power_loss()}
        result = failed()
        result["findings"][0]["picture"] = form

        tree = page(report(results=[result]))

        assert len([each for each in tree.of("svg") if each.get("role") == "img"]) == 1
        assert (
            "call 1 begins: save('r') with {} the creation of a.tmp: synced 3 writes to a.tmp (15 bytes): lost "
            "the rename of a.tmp to a: unsynced fsync of the folder call 1 returns call 2 begins: delete('r') "
            "the removal of b: unsynced The power fails here, after the removal of b, at the end. "
            "Left on the disk: a 0 bytes." in tree.words
        )

    def test_after_a_kill_nothing_is_called_a_chance(self) -> None:
        result = failed()
        result["findings"][0]["picture"] = {"model": "kill", "calls": ["save()"], "finding": power_loss()}

        words = page(report(results=[result])).words

        assert "killed here" in words
        assert "by chance" not in words


class _Heard:
    """Takes the place of a scenario."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.location = "somewhere"

    def judged(self) -> None: ...

    def tell(self, line: str) -> None:
        self.lines.append(line)


def test_what_a_check_finds_has_what_the_picture_needs() -> None:
    workload = saved_again("r")
    came = {"model": "ext4", "tried": 9, "findings": [power_loss()]}

    with pytest.raises(BrokenClause) as broken:
        expect_none(cast(Scenario, _Heard()), workload, came, [FaultKind.CORRUPT])

    finding = Finding("P01", broken.value.message, (), None, broken.value.picture)
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    picture = Picture.of(PowerLoss.model_validate(finding.picture))
    assert picture is not None
    assert [span.title for span in picture.spans] == ["load_or_create('r')", "load_or_create('r')"]


FATES = ("synced", "kept", "partly", "lost", "sync", "failed sync", "unfinished sync", "mark", "other")
WHATS = ("create", "write", "rename", "unlink", "sync", "sync all", "call", "return", "more", "", "other")


@given(st.lists(st.tuples(*map(st.sampled_from, (FATES, WHATS, ("", "a", "b"), ("1", "2", "9")))), max_size=40))
def test_any_time_line_is_laid_out(drawn_from: list[tuple[str, str, str, str]]) -> None:
    timeline = [moment("words", fate, path, during, what=what, to_path="c") for fate, what, path, during in drawn_from]

    picture = Picture.of(loss(timeline))

    if picture is not None:
        assert all(0 < glyph.x < picture.crash and 0 < glyph.y < picture.height for glyph in picture.glyphs)
        assert all(0 < span.x <= span.end <= picture.crash for span in picture.spans)
        assert len(picture.entries) == len(timeline)

"""The comparison with others: it is fair in what it compares, goes on where one fails, and tells what it found."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from conformance.benchmarks.peers import RESULTS, Comparison
from conformance.benchmarks.peers.page import page, write
from conformance.benchmarks.peers.plot import plot
from conformance.benchmarks.peers.results import Result, Results, Series
from conformance.benchmarks.peers.subjects import OURS, RAW, Subject, subjects

SVG = "{http://www.w3.org/2000/svg}"
SMALL = Comparison(lengths={3: 1}, limit=30.0, resume_nodes=3, resume_rounds=1, counts_syncs=False)


PROGRAM = """
class Program:
    def __init__(self, folder, output):
        self.output = output

    def build(self, nodes):
        return nodes

    def run(self, nodes, run_id):
        {body}

    def kept(self, run_id):
        return 0

    def close(self):
        pass
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Subject]:
    """Make a subject of the body of its `run`; the raw limit is there beside it."""
    shutil.copy(next(each for each in subjects() if each.name == RAW).path, tmp_path)
    monkeypatch.setattr(import_module("conformance.benchmarks.peers.subjects"), "PROGRAMS", tmp_path)

    def made(body: str) -> Subject:
        (tmp_path / "other.py").write_text(PROGRAM.format(body=body), "utf-8")
        return Subject("other", "other: made for a test", (), "none")

    return made


def result(name: str, costs: dict[int, float], *, syncs: float | None = 1.0, kept: int | None = None) -> Result:
    runs = {nodes: Series([cost], [1.0], nodes if kept is None else kept) for nodes, cost in costs.items()}
    return Result(name, name, f"{name}: made up", "made up", "1.0", syncs, runs)


def compared(*others: Result) -> Results:
    ours = result(OURS, {10: 2.0, 100: 1.2})
    return Results({"Python": "3"}, [10, 100], 1000, [result(RAW, {10: 1.0, 100: 1.0}), ours, *others])


def test_the_raw_limit_and_ours_are_measured_and_told(tmp_path: Path) -> None:
    chosen = [each for each in subjects() if not each.packages]

    figures = list(SMALL.figures(chosen, tmp_path))

    found = {each.name: each for each in Results.read(tmp_path / "peers.json").subjects}
    assert {each.name for each in chosen} == found.keys() == {RAW, OURS}
    assert [each.name for each in figures if each.value is None] == []
    assert found[OURS].runs[3].kept == 3
    assert found[OURS].resumed.called == found[RAW].resumed.called == 1
    assert "| **n00dles** |" in (tmp_path / "peers.md").read_text("utf-8")
    assert ElementTree.parse(tmp_path / "peers.svg").getroot().tag == f"{SVG}svg"


def test_one_that_is_too_slow_is_told_and_not_tried_with_more_nodes(
    program: Callable[[str], Subject], tmp_path: Path
) -> None:
    slow = program("import time; time.sleep(60 if nodes == 3 else 0)")
    comparison = Comparison(lengths={3: 2, 4: 1}, limit=2, resume_nodes=2, resume_rounds=0, counts_syncs=False)
    raw = next(each for each in subjects() if each.name == RAW)

    list(comparison.figures([raw, slow], tmp_path))

    runs = Results.read(tmp_path / "peers.json").subjects[1].runs
    assert [runs[nodes].why for nodes in (3, 4)] == ["not within 2 s", "not tried: fewer nodes took too long"]


def test_one_that_fails_does_not_stop_the_others(program: Callable[[str], Subject], tmp_path: Path) -> None:
    broken = program("if nodes == 3: raise OSError('no such table')")
    raw = next(each for each in subjects() if each.name == RAW)

    list(SMALL.figures([raw, broken], tmp_path))

    limit, other = Results.read(tmp_path / "peers.json").subjects
    assert limit.resumed.seconds
    assert other.runs[3].why == "OSError: no such table"
    assert "OSError: no such table" in (tmp_path / "peers.md").read_text("utf-8")


def test_who_does_not_wait_for_the_disk_or_keep_all_is_not_the_fastest() -> None:
    fair = result("fair", {10: 5.0, 100: 3.0})
    results = compared(
        result("unsynced", {100: 0.1}, syncs=0.0),
        result("forgetful", {100: 0.2}, kept=1),
        result("slow", {100: 9}),
        fair,
    )

    fastest = results.fastest_other(100)

    assert fastest is not None
    assert fastest.title == "fair"
    assert fastest.times == pytest.approx(2.5)


def test_a_label_stands_for_each_line_apart_from_the_others() -> None:
    others = [result(f"peer {number}", {10: 3.0, 100: 2.0 + number / 1000}) for number in range(12)]

    root = ElementTree.fromstring(plot(compared(*others)))

    labels = [each for each in root.iter(f"{SVG}text") if each.get("class") == "label"]
    heights = sorted(float(each.attrib["y"]) for each in labels)
    assert {each.text for each in labels} == {RAW, OURS, *(each.title for each in others)}
    assert min(after - before for before, after in pairwise(heights)) >= 20
    assert heights[-1] < 600
    assert [root.find(f"{SVG}{name}") is not None for name in ("title", "desc")] == [True, True]


def test_twice_the_cost_is_as_far_up_everywhere() -> None:
    root = ElementTree.fromstring(plot(compared(result("twice", {10: 4.0, 100: 2.4}))))

    lines = {each[-1].text: each[0].attrib["points"].split() for each in root.iter(f"{SVG}g")}
    ours, twice = ([float(point.split(",")[1]) for point in lines[name]] for name in (OURS, "twice"))
    assert [a - b for a, b in zip(ours, twice, strict=True)] == [pytest.approx(ours[0] - twice[0], abs=0.2)] * 2
    assert math.copysign(1, ours[0] - twice[0]) == 1


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    results = compared(result("other", {10: 3.0}))

    write(results, tmp_path)

    assert Results.read(tmp_path / "peers.json") == results


def test_the_kept_page_tells_the_kept_figures() -> None:
    if not (RESULTS / "peers.json").exists():
        pytest.skip("nobody has measured it yet: `make bench-peers`")

    assert (RESULTS / "peers.md").read_text("utf-8") == page(Results.read(RESULTS / "peers.json"))

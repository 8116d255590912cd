"""What is odd in a store must not be what breaks the check."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from n00dles_testing.conformance import StoreReport, check_store, select
from n00dles_testing.conformance.durability import require_durable
from n00dles_testing.conformance.ended import STEPS_OF_A_JOURNAL, Story
from n00dles_testing.conformance.records import difference, show
from n00dles_testing.conformance.runner import open_runner
from n00dles_testing.verdicts import Verdict

from .test_what_counts import subject_in

STORES = Path(__file__).with_name("odd_stores.py")


def verdicts(report: StoreReport) -> dict[str, Verdict]:
    return {result.clause: result.verdict for result in report.results}


def test_an_error_whose_message_cannot_be_read_is_told_by_its_type() -> None:
    found = check_store(f"{STORES}:RaisesWhatCannotBeRead", clauses=["S01", "S02", "S03"])

    assert set(verdicts(found).values()) == {Verdict.FAIL}
    assert found.results[0].reason.startswith(
        "save raised UnreadableError: (its message cannot be read: __str__ raises"
    )


def test_a_value_whose_repr_raises_is_shown_by_its_type() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    shown = show(Odd())

    assert shown == "<Odd whose repr raises RuntimeError>"
    assert difference({"a": 1}, {"a": Odd()}) == f"['a'] is {shown} (Odd), not 1 (int)"


def test_a_store_that_changes_the_working_folder_is_opened_again_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(STORES.parent)

    found = check_store("odd_stores.py:GoesElsewhere", clauses=["C01", "C02", "S15"])

    assert set(verdicts(found).values()) == {Verdict.PASS}, [each.reason for each in found.results]
    assert found.target == "odd_stores.py:GoesElsewhere"


def test_a_close_that_hangs_is_for_the_clauses_to_judge() -> None:
    found = check_store(f"{STORES}:ClosesNever", clauses=["S01", "S02"], limit=2)

    assert set(verdicts(found).values()) == {Verdict.FAIL}
    assert found.results[0].reason.endswith("during: close()")


def test_a_store_that_has_the_ends_of_children_ignored_is_killed_and_seen_to_be() -> None:
    found = check_store(f"{STORES}:IgnoresChildren", clauses=["C01", "C02", "S13"])

    assert set(verdicts(found).values()) == {Verdict.PASS}, [each.reason for each in found.results]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_what_a_store_has_started_in_a_session_of_its_own_is_ended_with_the_check() -> None:
    found = check_store(f"{STORES}:StartsAHelper", clauses=["S01", "C02"])

    assert set(verdicts(found).values()) == {Verdict.PASS}, [each.reason for each in found.results]
    assert [each for each in Path("/proc").glob("[0-9]*/cmdline") if _says(each, b"4321.25")] == []


def test_a_store_whose_open_waits_for_its_turn_is_not_taken_for_one_that_hangs() -> None:
    found = check_store(f"{STORES}:WaitsForItsTurn", clauses=["S13", "S15"], limit=6)

    assert set(verdicts(found).values()) == {Verdict.PASS}, [each.reason for each in found.results]
    assert "a second one cannot open it" in found.results[1].reason


def test_a_store_that_waits_for_its_turn_is_never_opened_twice_in_one_process() -> None:
    plan = {"operations": [{"do": "load", "run": 0, "inputs": 0, "second": True}], "ids": "plain", "first_id": 0}

    with open_runner(f"{STORES}:WaitsForItsTurn", limit=6) as runner:
        [clause] = select(["S17"])
        found = runner.check(clause, plan)

    assert found.verdict is Verdict.PASS, found.reason


def test_the_story_of_a_hang_is_that_of_the_scenario_and_of_the_probe_in_its_midst() -> None:
    story = Story(1)
    scenario, probe, another = (STEPS_OF_A_JOURNAL * number for number in (1, 2, 3))
    for number, text in [(scenario, "scenario"), (scenario + 1, "load"), (probe, "a probe"), (another, "a second one")]:
        story.tell(number, text)

    during_a_probe = story.lines
    story.tell(scenario + 2, "save")
    afterwards = story.lines

    assert during_a_probe == ["scenario", "load", "a second one"]
    assert afterwards == ["scenario", "load", "save"]


def test_a_hang_among_probes_is_told_by_the_last_of_them() -> None:
    story = Story()
    for number, text in [(STEPS_OF_A_JOURNAL, "a probe"), (STEPS_OF_A_JOURNAL + 1, "close"), (0, "the last one")]:
        story.tell(number, text)

    assert story.lines == ["the last one"]


def _says(path: Path, word: bytes) -> bool:
    try:
        return word in path.read_bytes()
    except OSError:
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_sockets_pipes_and_links_in_a_location_are_left_out_and_waited_for_by_nobody() -> None:
    found = check_store(f"{STORES}:KeepsSpecialFiles", clauses=["S07", "S10", "S12", "S15"], limit=10)

    assert set(verdicts(found).values()) == {Verdict.PASS}, [each.reason for each in found.results]


def test_a_story_names_a_socket_a_pipe_and_a_link_as_what_they_are() -> None:
    [result] = check_store(f"{STORES}:KeepsSpecialFilesAndForgets", clauses=["S02"]).results

    [on_disk] = [line for line in result.findings[0].story if line.startswith("on disk")]
    assert "owner (link), server.socket (socket), wake-up (named pipe)" in on_disk


@pytest.mark.parametrize(
    ("clause", "note"),
    [
        ("C03", ["that one was not killed, only its client"]),
        ("C04", ["faults were put into its client only"]),
        ("C01", []),
    ],
)
def test_that_a_server_was_not_killed_with_its_client_is_noted(
    clause: str, note: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_in(tmp_path, f"{STORES}:TalksToAServer")
    subject.clause = clause
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("PORT_OF_A_SERVER", str(port))
        asyncio.run(require_durable(subject))
        subject.nursery().close()

    told = f"the store talks to another process (address ('127.0.0.1', {port})): "
    assert subject.notes == [f"{told}{text}" for text in note]


def test_that_nobody_else_is_talked_to_is_not_noted(tmp_path: Path) -> None:
    subject = subject_in(tmp_path)
    subject.clause = "C03"

    asyncio.run(require_durable(subject))
    subject.nursery().close()

    assert subject.notes == []

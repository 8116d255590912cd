"""`--n00dles-store`: the clauses of a store as items without a test file, in a pytest of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

from n00dles_testing.conformance import implemented
from tests.n00dles_testing.store_tests.inner_pytest import FEW, NAMES, inner, installed, run, tried

pytest_plugins = ["pytester"]
__all__ = ["inner"]

BROKEN = "stores.py:Caching"
PART = "no level, since only a part was asked (2 of *)"


def test_a_correct_store_passes_in_a_folder_without_tests_and_is_given_what_it_has_reached(
    inner: pytest.Pytester,
) -> None:
    result = run(inner, "--n00dles-store=memory://", "-v", "-rs")

    crashes = sum(clause.id.startswith("C") for clause in implemented())
    outcomes = result.parseoutcomes()
    assert result.ret == 0
    assert outcomes["passed"] + outcomes["skipped"] == len(NAMES)
    assert outcomes["skipped"] >= crashes
    result.stdout.fnmatch_lines(
        [
            "n00dles-store[[]memory://[]]::S01 PASSED*",
            f"n00dles: memory://: {outcomes['passed']} clauses passed; *C02* NOT APPLICABLE; *level*",
            "SKIPPED*: NOT APPLICABLE: the store keeps nothing beyond its process*",
        ]
    )
    assert "only a part" not in result.stdout.str()
    assert [path.name for path in inner.path.iterdir() if path.name.startswith("n00dles-check-")] == []


def test_a_broken_store_fails_its_item_with_the_story_and_the_line_that_replays_it(inner: pytest.Pytester) -> None:
    result = run(inner, f"--n00dles-store={BROKEN}", "-k", FEW)

    assert tried(result) == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(
        [
            "*= FAILURES =*",
            "_* S05 _*",
            "S05  inputs[[]'topic'[]] is 'spoiled', not 'cats'",
            "  scenario the caller changes the new run that it got",
            "  load_or_create(*",
            "  why      *",
            "  contract S05: what the caller mutates is not what is stored (docs/reference/contract.md#s05)",
            f"  replay   n00dles-testing check {BROKEN} --clause S05 --seed 0",
            f"n00dles: {BROKEN}: 1 clause passed; S05 FAIL; {PART}",
        ],
    )
    result.stdout.no_fnmatch_line("*raceback*")


def test_all_items_of_a_store_share_a_process(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        counted="import os\n"
        "from stores import JSONFiles as open_store\n"
        "with open('processes', 'a') as file:\n    print(os.getpid(), file=file)\n"
    )

    result = run(inner, "--n00dles-store=counted:open_store", "-k", "S01 or S05 or S06")

    assert tried(result) == {"passed": 3}
    assert len((inner.path / "processes").read_text().split()) == 1


def test_items_are_deselected_by_their_ids_and_chosen_by_the_marker_of_their_level(inner: pytest.Pytester) -> None:
    listing = ["--n00dles-store=memory://", "--collect-only", "-q", "--strict-markers"]

    by_id = run(inner, *listing, "--deselect=n00dles-store[memory://]::S01")
    by_level = run(inner, *listing, "-m", "n00dles_level2")

    ids = {name: f"n00dles-store[memory://]::{name}" for name in NAMES}
    assert [line for line in by_id.outlines if "::" in line] == [id_ for name, id_ in ids.items() if name != "S01"]
    assert [line for line in by_level.outlines if "::" in line] == [
        ids[clause.id] for clause in implemented() if clause.level == 2
    ]


def test_collecting_shows_the_titles_and_opens_nothing(inner: pytest.Pytester) -> None:
    result = run(inner, "--n00dles-store=stores.py:raises", "--collect-only")

    assert result.ret == 0
    lines = [line.strip() for line in result.outlines]
    assert [f"<Clause {clause.id}: {clause.title}>" for clause in implemented()] == [
        line for line in lines if line.startswith("<Clause ")
    ]


def test_an_empty_selection_is_no_success(inner: pytest.Pytester) -> None:
    result = run(inner, "--n00dles-store=memory://", "-k", "S99")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.no_fnmatch_line("*n00dles: *")


def test_tests_are_collected_too_if_they_are_named(inner: pytest.Pytester) -> None:
    inner.makepyfile(test_mine="def test_mine(): pass")

    alone = run(inner, "--n00dles-store=memory://", "-k", "S01 or mine")
    both = run(inner, "--n00dles-store=memory://", "-k", "S01 or mine", "test_mine.py")

    assert (alone.parseoutcomes()["passed"], both.parseoutcomes()["passed"]) == (1, 2)


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_store_in_a_settings_file_is_checked_besides_the_tests(inner: pytest.Pytester, workers: list[str]) -> None:
    inner.makepyfile(test_mine="def test_mine(): pass")
    settings = "[pytest]\nasyncio_default_fixture_loop_scope = function\naddopts = --n00dles-store=memory://\n"
    inner.makeini(settings)

    result = run(inner, "-k", "S01 or mine", *workers)

    result.assert_outcomes(passed=2)


def test_what_failed_last_is_run_again(inner: pytest.Pytester) -> None:
    run(inner, f"--n00dles-store={BROKEN}", "-k", FEW)

    result = run(inner, f"--n00dles-store={BROKEN}", "--lf")

    assert tried(result) == {"failed": 1}


@pytest.mark.parametrize("distribution", ["load", "loadscope"])
def test_workers_of_xdist_share_the_items(inner: pytest.Pytester, distribution: str) -> None:
    stores = ["--n00dles-store=memory://", f"--n00dles-store={BROKEN}"]

    result = run(inner, "-n", "2", "--dist", distribution, "--junitxml=junit.xml", *stores, "-k", FEW)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines_random(
        [f"n00dles: memory://: 2 clauses passed; {PART}", f"n00dles: {BROKEN}: 1 clause passed; S05 FAIL; {PART}"]
    )
    assert result.stdout.str().count("n00dles: ") == 2
    properties = ElementTree.parse(inner.path / "junit.xml").getroot().iter("property")
    verdicts = [each.get("value", "") for each in properties if each.get("name") == "n00dles_verdict"]
    assert sorted(verdicts) == ["FAIL", "PASS", "PASS", "PASS"]


def test_a_junit_file_has_all_about_a_clause(inner: pytest.Pytester) -> None:
    run(inner, f"--n00dles-store={BROKEN}", "-k", "S05", "--junitxml=junit.xml", "--n00dles-seed=3")

    [case] = ElementTree.parse(inner.path / "junit.xml").getroot().iter("testcase")
    properties = {each.get("name", ""): each.get("value", "") for each in case.iter("property")}
    assert int(properties.pop("n00dles_scenarios")) > 1
    assert properties == {
        "n00dles_target": BROKEN,
        "n00dles_clause": "S05",
        "n00dles_level": "1",
        "n00dles_title": "what the caller mutates is not what is stored",
        "n00dles_verdict": "FAIL",
        "n00dles_reason": "inputs['topic'] is 'spoiled', not 'cats'",
        "n00dles_replay": f"n00dles-testing check {BROKEN} --clause S05 --seed 3",
    }


def test_a_known_gap_is_an_expected_failure_and_one_that_passes_fails(inner: pytest.Pytester) -> None:
    claims = inner.path / "claims.toml"
    claims.write_text('[known-gaps]\ns05 = "hands out its cache"\nS01 = "was mended"\n')

    result = run(inner, f"--n00dles-store={BROKEN}", "--n00dles-claims=claims.toml", "-k", FEW, "-rx")

    assert tried(result) == {"xfailed": 1, "failed": 1}
    result.stdout.fnmatch_lines(
        [
            "S01 is declared as a known gap (was mended), and passed: remove it from claims.toml",
            "n00dles: *: 1 clause passed; S05 FAIL (known gap); *",
            "XFAIL*S05*known gap: hands out its cache*",
        ]
    )


def test_a_claim_that_is_denied_fails_and_one_that_is_not_made_is_told(inner: pytest.Pytester) -> None:
    (inner.path / "claims.toml").write_text('[claims]\nlevel = 2\ncapabilities = ["durable", "leases"]\n')
    arguments = ["--n00dles-store=stores.py:JSONFiles", "--n00dles-store=memory://", "--n00dles-claims=claims.toml"]

    result = run(inner, *arguments, "-k", "claims or C01")

    assert tried(result) == {"failed": 3, "passed": 1}
    result.stdout.fnmatch_lines(
        [
            "  leases is claimed, and denied: the store has no method acquire",
            "  besides  found, and not claimed: shared",
            "C01  NOT APPLICABLE, and level 2 is claimed (*claims.toml): the store keeps nothing beyond its process*",
            "  durable is claimed, and denied: *",
            "n00dles: stores.py:JSONFiles: 1 clause passed; no level, *; claims FAIL",
        ]
    )


GAPS = '[claims]\nlevel = 1\n[known-gaps]\nS07 = "one life"\nS12 = "one life"\nS17 = "one life"\n'


@pytest.mark.parametrize("workers", [[], ["-n2"]])
@pytest.mark.parametrize("store", ["--n00dles-store=stores.py:InMemory", "test_mine.py"])
def test_a_claimed_level_that_a_known_gap_keeps_from_being_reached_fails_the_run(
    inner: pytest.Pytester, store: str, workers: list[str]
) -> None:
    inner.makepyfile(
        test_mine="from n00dles_testing import StateStoreConformance\nfrom stores import InMemory\n"
        "class TestMine(StateStoreConformance):\n    claims = {'level': 1}\n"
        "    known_gaps = dict.fromkeys(['S07', 'S12', 'S17'], 'one life')\n    def open_store(self):\n"
        "        return InMemory()\n"
    )
    (inner.path / "claims.toml").write_text(GAPS)
    claims = ["--n00dles-claims=claims.toml"] if store.startswith("--") else []

    result = run(inner, store, *claims, *workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert (outcomes["xfailed"], outcomes.get("failed", 0)) == (3, 0)
    result.stdout.fnmatch_lines(
        ["n00dles: *: * S07, S12, S17 FAIL (known gaps); *; level 1 (contract) is claimed, and not reached (*)"]
    )


def test_a_level_of_which_a_part_was_asked_fails_nothing(inner: pytest.Pytester) -> None:
    (inner.path / "claims.toml").write_text(GAPS)

    result = run(inner, "--n00dles-store=stores.py:InMemory", "--n00dles-claims=claims.toml", "-k", FEW)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*not reached*")


def test_a_run_that_was_stopped_is_not_called_one_of_which_a_part_was_asked(inner: pytest.Pytester) -> None:
    result = run(inner, "--n00dles-store=stores.py:InMemory", "-x")

    result.stdout.fnmatch_lines(["n00dles: *S07 FAIL; no level, since the run was stopped (7 of *)"])


def test_where_nothing_is_claimed_and_nothing_could_be_denied_the_item_is_skipped(inner: pytest.Pytester) -> None:
    result = run(inner, "--n00dles-store=memory://", "-k", "claims", "-rs")

    assert tried(result) == {"skipped": 1}
    result.stdout.fnmatch_lines(["SKIPPED*: NOT APPLICABLE: nothing is claimed; found, and not claimed: load, *"])


def test_a_reader_that_fails_is_no_pass(inner: pytest.Pytester) -> None:
    inner.makepyfile(reading="def read(location, run_id):\n    raise OSError('no such disk')\n")

    result = run(inner, "--n00dles-store=stores.py:JSONFiles", "--n00dles-reader=reading:read", "-k", "S01 or S02")

    assert tried(result) == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(["S02  the out-of-band reader reading:read raised OSError: no such disk*"])


def test_each_store_that_cannot_be_opened_is_told_once(inner: pytest.Pytester) -> None:
    stores = ("no_such_module:factory", "nosuch://x", "stores.py:raises", "stores.py:hangs")

    result = run(inner, *(f"--n00dles-store={store}" for store in stores), "--n00dles-limit=1")

    assert tried(result) == {"errors": 4}
    result.stdout.fnmatch_lines(
        [
            "no_such_module:factory cannot be checked: module*",
            "nosuch://x cannot be checked: no store is known for nosuch://*",
            "stores.py:raises cannot be checked: opening the store raised RuntimeError: no database today*",
            "stores.py:hangs cannot be checked: * did not return within 1 s (it is at*",
        ]
    )
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_workers_of_xdist_tell_that_a_store_cannot_be_opened(inner: pytest.Pytester) -> None:
    result = run(inner, "--n00dles-store=stores.py:raises", "-n2")

    assert tried(result) == {"errors": 1}
    result.stdout.fnmatch_lines(["stores.py:raises cannot be checked: opening the store raised RuntimeError*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n00dles-store=memory://", "--n00dles-claims=nothing.toml"], "*nothing.toml cannot be read*"),
        (["--n00dles-store=memory://", "--n00dles-claims=claims.toml"], "*names 'S99', which is no clause*"),
        (["--n00dles-claims=claims.toml"], "*--n00dles-claims is about the stores of --n00dles-store*"),
        (["--n00dles-reader=reading:read"], "*--n00dles-reader is about the stores of --n00dles-store*"),
        (["--n00dles-store=memory://", "--n00dles-limit=soon"], "*'soon' is no number of seconds*"),
    ],
)
def test_options_that_mean_nothing_are_refused(inner: pytest.Pytester, arguments: list[str], message: str) -> None:
    (inner.path / "claims.toml").write_text('[known-gaps]\nS99 = "no such clause"\n')

    result = run(inner, *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_an_interrupt_ends_the_processes_of_the_store(inner: pytest.Pytester) -> None:
    script = (  # what was started in the background of a shell ignores SIGINT
        "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, *installed(), "--n00dles-store=stores.py:Blocks", "-k", "S02"]
    pytest_process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    blocked = inner.path / "blocked"
    while not (blocked.exists() and blocked.read_text()):
        assert pytest_process.poll() is None
        time.sleep(0.05)

    pytest_process.send_signal(signal.SIGINT)

    output, _ = pytest_process.communicate(timeout=30)
    assert pytest_process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert not is_running(int(blocked.read_text()))
    assert "interrupted, during the opening of stores.py:Blocks" in output
    assert "channel.py" not in output


def is_running(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False

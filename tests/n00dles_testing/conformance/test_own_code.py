"""Whose line raised, and whose words were printed: the store's own, and not the suite's or a library's."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from traceback import FrameSummary
from typing import Any

import pytest

import n00dles
from n00dles_testing.conformance import check_store, scenario
from n00dles_testing.conformance.own_code import innermost_of_the_store
from n00dles_testing.conformance.printed import end_of
from n00dles_testing.verdicts import Verdict

from .test_what_counts import judged

STDLIB = f"{sysconfig.get_path('stdlib')}/json/decoder.py"
OURS = f"{Path(n00dles.__file__).parent}/context.py"
SUITE = scenario.__file__
STORE = "/home/somebody/shop/store.py"
INSTALLED = "/home/somebody/.venv/lib/python3.11/site-packages/shop_store/files.py"
OTHER = "/home/somebody/.venv/lib/python3.11/site-packages/redis/client.py"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([SUITE, STORE, OURS], STORE),
        ([SUITE, STORE, STDLIB], STORE),
        ([SUITE, STORE, OTHER, STDLIB], STORE),
        ([SUITE, INSTALLED, OTHER, STDLIB], INSTALLED),
        ([SUITE, OTHER, STORE, OTHER, OURS], STORE),
        ([SUITE, OURS, STDLIB], STDLIB),
    ],
)
def test_the_line_that_raised_is_the_innermost_one_of_the_store(files: list[str], told: str) -> None:
    frames = [FrameSummary(file, number, "f") for number, file in enumerate(files)]

    found = innermost_of_the_store(frames)

    assert found is not None
    assert found.filename == told
    assert found.lineno == max(number for number, file in enumerate(files) if file == told)


def test_a_story_points_into_the_store_though_a_library_raised(tmp_path: Path) -> None:
    store = tmp_path / "reads_nothing.py"
    store.write_text(
        "import json\n\nclass ReadsNothing:\n"
        "    def load_or_create(self, run_id, inputs):\n        return json.loads('')\n"
        "    def save(self, run_id, context): ...\n"
        "    def delete(self, run_id): ...\n"
    )

    [result] = check_store(f"{store}:ReadsNothing", clauses=["S01"]).results

    [raised] = [line for line in result.findings[0].story if line.startswith("raised")]
    assert raised.endswith(f"{store}:5 in load_or_create: return json.loads('')")


def traceback_through(*files: str) -> str:
    lines = [f'  File "{file}", line 3, in f\n    return g()\n           ^^^\n' for file in files]
    return f"Traceback (most recent call last):\n{''.join(lines)}OSError: {json.dumps(files)}\n"


def test_the_suites_own_traceback_is_not_told_as_what_the_store_has_printed() -> None:
    own = traceback_through(SUITE, STDLIB)
    stores = traceback_through(SUITE, STORE, STDLIB)

    assert end_of(f"connected\n{own}closed\n", 400) == "connected\nclosed"
    assert end_of(own, 400) == ""
    assert end_of(stores, 4000) == stores.strip()


def test_where_a_process_hangs_is_not_what_its_store_has_printed() -> None:
    script = """
import faulthandler, os, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
print("connected", file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGUSR1)
print("closed", file=sys.stderr, flush=True)
if sys.argv[1:]:
    os.kill(os.getpid(), signal.SIGSEGV)
"""
    asked, crashed = (
        subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", script, *words], capture_output=True, text=True, check=False
        ).stderr
        for words in ([], ["crash"])
    )

    assert asked.count("most recent call first") == 2
    assert end_of(asked, 4000) == "connected\nclosed"
    assert "Fatal Python error: Segmentation fault" in end_of(crashed, 4000)
    assert "most recent call first" in end_of(crashed, 4000)


def test_a_check_that_breaks_says_where_and_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def check(subject: Any) -> None:
        raise RuntimeError("not the store's fault")

    result = judged(check, tmp_path)

    assert result.verdict is Verdict.VACUOUS
    assert "the check itself broke, please report it: RuntimeError: not the store's fault" in result.reason
    assert f"({__file__}:" in result.reason
    assert capfd.readouterr().err == ""


def test_what_was_printed_is_cut_at_the_beginning_of_a_line() -> None:
    printed = "".join(f"line {number} of many\n" for number in range(100))

    assert end_of(printed, 40) == "line 98 of many\nline 99 of many"
    assert end_of("x" * 60, 50) == "x" * 50

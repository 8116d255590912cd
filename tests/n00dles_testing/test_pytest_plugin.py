"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

SETTINGS = """
[pytest]
asyncio_default_fixture_loop_scope = function
"""

PIPELINES = """
from n00dles import agent, pipeline

@agent
def first(text: str) -> str:
    return text + "!"

@agent
def second(first: str) -> str:
    return first * 2

body_pipeline = pipeline(first >> second, name="body")

@agent(model="gpt-4o-mini")
def writer(text: str) -> str:
    "Write."

model_pipeline = pipeline(first >> writer, name="model")

seen = []

@agent
def forgetful(first: str) -> str:
    seen.append(first)
    return f"{first}{__import__('os').getpid()}"
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini(SETTINGS)
    pytester.makepyfile(pipelines=PIPELINES)
    return pytester


def run(inner: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return inner.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *installed(), *arguments)


def installed() -> list[str]:
    """Load the plugin by hand where the package is not installed: pytest refuses to load it twice."""
    from importlib.metadata import entry_points

    there = any(entry.value == "n00dles_testing.plugin" for entry in entry_points(group="pytest11"))
    return [] if there else ["-p", "n00dles_testing.plugin"]


def test_a_pipeline_that_survives_passes_and_the_summary_says_what_was_killed(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from pipelines import body_pipeline\n"
        "def test_survives(crash_safety):\n"
        "    report = crash_safety.check(body_pipeline, at=['after*:first'], text='x')\n"
        "    assert [row.killed_by for row in report.rows] == [9, 9]\n"
    )

    result = run(inner)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["n00dles: 2 crash points killed by SIGKILL, 0 re-calls, bodies ran * times"])


def test_models_are_answered_by_the_fake_server_without_a_key(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import os\n"
        "from pipelines import model_pipeline\n"
        "def test_survives(crash_safety):\n"
        "    report = crash_safety.check(model_pipeline, at=['before:first', 'during:writer'], text='x')\n"
        "    assert (report.paid, sorted(row.paid for row in report.rows)) == (1, [1, 2])\n"
        "    assert 'OPENAI_BASE_URL' not in os.environ\n"
    )

    result = run(inner)

    result.assert_outcomes(passed=1)


def test_a_pipeline_that_breaks_a_clause_fails_with_its_story(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from n00dles import agent, pipeline\n"
        "from n00dles_testing.crash import ExplorationReport\n"
        "import n00dles_testing.fixtures as fixtures\n"
        "from pipelines import body_pipeline\n"
        "def test_breaks(crash_safety):\n"
        "    crash_safety.check(body_pipeline, at=['before:first'], text='x', store='broken:open_store')\n"
    )
    inner.makepyfile(
        broken="from n00dles_testing.conformance.mutants.s02 import DropsWhatLooksEmpty as Store\n"
        "class Forgets(Store):\n"
        "    def save(self, run_id, context): pass\n"
        "open_store = Forgets\n"
    )

    result = run(inner)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*does not survive every kill*"])


def test_counts_come_back_from_the_workers_of_xdist(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        "from pipelines import body_pipeline\n"
        "@pytest.mark.parametrize('point', ['before:first', 'after:second', 'during:first'])\n"
        "def test_survives(crash_safety, point):\n"
        "    crash_safety.check(body_pipeline, at=[point], text='x')\n"
    )

    result = run(inner, "-n", "2", "--junitxml=junit.xml")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["n00dles: 3 crash points killed by SIGKILL, 0 re-calls, bodies ran * times"])
    properties = ElementTree.parse(inner.path / "junit.xml").getroot().iter("property")
    assert sum(int(each.get("value", "")) for each in properties if each.get("name") == "n00dles_killed") == 3


def test_simulated_deaths_are_not_called_kills(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from pipelines import body_pipeline\n"
        "def test_survives(crash_safety):\n"
        "    crash_safety.check(body_pipeline, at=['before:first'], mode='in-process', text='x')\n"
    )

    result = run(inner)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["n00dles: 1 deaths simulated in-process, 0 re-calls, bodies ran * times"])
    assert "SIGKILL" not in result.stdout.str()


def test_what_could_not_be_told_is_counted_and_explained_in_the_summary(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pipelines\n"
        "from n00dles import pipeline\n"
        "def test_survives(crash_safety):\n"
        "    crash_safety.check(pipelines.differing, at=['before:first'], allow_unknown=True, text='x')\n"
    )
    inner.makepyfile(
        pipelines=PIPELINES
        + "\n@agent\ndef draw(first: str) -> str:\n    return first + __import__('os').urandom(8).hex()\n"
        + "differing = pipeline(first >> draw, name='differing')\n"
    )

    result = run(inner, "--color=yes")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*33m*n00dles: 1 crash points killed by SIGKILL, 0 re-calls, bodies ran * times, 2 clauses UNKNOWN*",
            "*33m*n00dles: pipelines:differing: E04, E05 could not be told: two undisturbed runs differ: `draw` *",
        ]
    )


def test_a_run_that_kills_nothing_says_nothing(inner: pytest.Pytester) -> None:
    inner.makepyfile("def test_something(): pass")

    result = run(inner)

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*n00dles:*")


def test_the_plugin_imports_nothing_heavy() -> None:
    script = (
        "import pytest, sys; before = set(sys.modules); import n00dles_testing.plugin; "
        "print(sorted(set(sys.modules) - before))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)

    assert done.stdout.strip() == "['n00dles_testing', 'n00dles_testing.isolating', 'n00dles_testing.plugin']"


def test_public_names_are_there_at_their_first_use() -> None:
    import n00dles_testing

    assert [name for name in n00dles_testing.__all__ if getattr(n00dles_testing, name, None) is None] == []
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = n00dles_testing.nonsense


def test_a_marker_checks_its_pipeline_before_the_body_of_the_test(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        "from pipelines import body_pipeline\n"
        "@pytest.mark.crash_safe(body_pipeline, at=['after*:first'], text='x')\n"
        "def test_survives():\n"
        "    pass\n"
        "@pytest.mark.crash_safe(body_pipeline, at=['after:first'], how='all', inputs={'text': 'x'})\n"
        "def test_its_report_is_there(crash_safety):\n"
        "    assert [len(report.rows) for report in crash_safety.reports] == [4]\n"
    )

    result = run(inner, "--strict-markers")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["n00dles: 3 crash points killed by SIGKILL, 3 other disturbances, 0 re-calls, bodies ran * times"]
    )


def test_a_test_fails_with_its_marker_and_its_body_is_not_run(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        "from n00dles import pipeline\n"
        "from pipelines import first, forgetful\n"
        "@pytest.mark.crash_safe(pipeline(first >> forgetful), mode='in-process', budget=1, text='x')\n"
        "def test_survives():\n"
        "    print('the body was run')\n"
        "@pytest.mark.crash_safe(pipeline(first), budget='soon', text='x')\n"
        "def test_is_no_budget():\n"
        "    pass\n"
    )
    inner.makepyfile(
        pipelines=PIPELINES.replace("{__import__('os').getpid()}", "{len(seen)}"),
    )

    result = run(inner)

    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line("*the body was run*")
    result.stdout.fnmatch_lines(["*UNKNOWN*could not be told*", "*budget='soon' is no budget*"])


def test_a_marker_without_a_pipeline_gives_the_defaults_of_the_checks(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        "from pipelines import body_pipeline\n"
        "pytestmark = pytest.mark.crash_safe(how=['cancel'], text='x', budget=3)\n"
        "@pytest.mark.crash_safe(at=['first'])\n"
        "def test_survives(crash_safety):\n"
        "    report = crash_safety.check(body_pipeline, budget=2)\n"
        "    assert [str(row.point) for row in report.rows] == ['cancel@before:first', 'cancel@after:first']\n"
    )

    run(inner).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "marked",
    [
        "@pytest.mark.crash_safe\ndef test_nothing(): pass\n",
        "@pytest.mark.crash_safe(how='all')\ndef test_nothing(): pass\n",
        "@pytest.mark.crash_safe\ndef test_nothing(crash_safety): pass\n",
        "@pytest.mark.crash_safe\nclass TestAll:\n    def test_nothing(self): pass\n",
    ],
)
def test_a_marker_that_tries_nothing_fails(inner: pytest.Pytester, marked: str) -> None:
    inner.makepyfile(f"import pytest\n{marked}")

    result = run(inner)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*test_nothing is marked crash_safe, but nothing was tried*"])


def test_a_test_that_asks_for_the_fixture_and_tries_nothing_fails(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import pytest\n"
        "def test_nothing(crash_safety): pass\n"
        "def test_fails_by_itself(crash_safety): assert 1 == 2\n"
        "def test_skips(crash_safety): pytest.skip('not here')\n"
        "@pytest.fixture\n"
        "def ready(crash_safety): return crash_safety\n"
        "def test_by_a_fixture(ready): pass\n"
    )

    result = run(inner)

    result.assert_outcomes(failed=2, skipped=1, passed=1)
    result.stdout.fnmatch_lines(["test_nothing asks for crash_safety, but nothing was tried*"])
    assert str(result.stdout).count("nothing was tried") <= 2  # the test, and its line in the summary


def test_defaults_of_a_module_ask_nothing_of_a_test_that_checks_nothing_or_gets_the_fixture_later(
    inner: pytest.Pytester,
) -> None:
    inner.makepyfile(
        "import pytest\n"
        "from pipelines import body_pipeline\n"
        "pytestmark = pytest.mark.crash_safe(text='x', budget=1)\n"
        "def test_something_else(): pass\n"
        "@pytest.mark.crash_safe(at=['first'])\n"
        "def test_later(request):\n"
        "    request.getfixturevalue('crash_safety').check(body_pipeline)\n"
    )

    run(inner).assert_outcomes(passed=2)


def test_a_test_that_patches_is_told_that_killed_processes_are_not_patched(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from pipelines import body_pipeline\n"
        "def test_killed(crash_safety, monkeypatch):\n"
        "    crash_safety.check(body_pipeline, budget=1, text='x')\n"
        "def test_simulated(crash_safety, monkeypatch):\n"
        "    crash_safety.check(body_pipeline, budget=1, text='x', mode='in-process')\n"
    )

    result = run(inner, "--color=yes")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*33m*n00dles: 1 crash points killed*", "*33m*test_killed: it uses monkeypatch, but *"]
    )
    result.stdout.no_fnmatch_line("*test_simulated: it uses*")


def test_the_summary_says_how_often_bodies_ran_and_which_may_run_twice(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "from pipelines import body_pipeline\n"
        "def test_survives(crash_safety):\n"
        "    report = crash_safety.check(body_pipeline, at='after:second', text='x', mode='in-process')\n"
        "    assert report.bodies == 9  # two undisturbed runs, a look at a resumed one, and second once more\n"
        "def test_survives_too(crash_safety):\n"
        "    crash_safety.check(body_pipeline, at='after:second', text='x', mode='in-process')\n"
    )

    result = run(inner)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "n00dles: 2 deaths simulated in-process, 0 re-calls, bodies ran * times",
            "n00dles: *`second` may run twice: *",
        ]
    )
    assert result.stdout.str().count("may run twice") == 1


def test_what_a_failure_prints_replays_where_pytest_was_started(inner: pytest.Pytester) -> None:
    inner.makeini(f"{SETTINGS}pythonpath = src\n")
    for name, text in {
        "src/app/flow.py": "from app.steps import first, shortcut\nfrom n00dles import pipeline\n"
        "flow = pipeline(first >> shortcut)\n",
        "src/app/steps.py": SHORTCUT,
        "tests/helper.py": "from app.flow import flow\n",
        "tests/test_flow.py": "from helper import flow\ndef test_flow(crash_safety):\n"
        "    crash_safety.check(flow, text='x', at='after-save:first')\n",
    }.items():
        file = inner.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    result = run(inner)
    line = next(line for line in result.outlines if "n00dles-testing replay" in line)
    again = inner.run(sys.executable, "-m", "n00dles_testing", *line.split("n00dles-testing")[1].split())
    astray = inner.mkdir("astray")
    elsewhere = subprocess.run(
        [sys.executable, "-m", "n00dles_testing", *line.split("n00dles-testing")[1].split()],
        cwd=astray, capture_output=True, text=True, check=False,
    )  # fmt: skip

    result.assert_outcomes(failed=1)
    assert again.ret == 1
    again.stdout.fnmatch_lines(["E04 *"])
    assert elsewhere.returncode == 2
    assert "app.flow" in elsewhere.stderr
    assert f"It was looked for from {astray}" in " ".join(elsewhere.stderr.split())
    assert "PYTHONPATH=src" in elsewhere.stderr


SHORTCUT = """
from n00dles import agent

seen = []

@agent
def first(text: str) -> str:
    seen.append(text)
    return text

@agent
def shortcut(first: str) -> str:
    return f"{len(seen)}"
"""

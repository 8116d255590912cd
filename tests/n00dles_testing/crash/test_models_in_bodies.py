"""`crash_safety` answers for models that a body calls through an SDK of its own, as it does for `model=`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[3]

BODIES = """
import openai
from n00dles import agent, pipeline

EARLY = openai.OpenAI(api_key="any", max_retries=0)

def answer(client, text):
    reply = client.chat.completions.create(model="gpt-4o-mini", messages=[{"role": "user", "content": text}])
    return reply.choices[0].message.content

@agent
def ask(text: str) -> str:
    return answer(openai.OpenAI(max_retries=0), text)

@agent
def ask_early(text: str) -> str:
    return answer(EARLY, text)

late = pipeline(ask, name="late")
both = pipeline(ask_early >> ask, name="both")
"""

PLAIN = """
from n00dles import agent, pipeline

@agent
def shout(text: str) -> str:
    return text.upper()

plain = pipeline(shout, name="plain")
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(bodies=BODIES, plain=PLAIN)
    return pytester


def run(inner: pytest.Pytester) -> pytest.RunResult:
    return inner.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly")


def test_a_client_in_a_body_or_made_at_the_import_needs_no_key_and_leaves_the_machine_in_no_mode(
    inner: pytest.Pytester,
) -> None:
    inner.makepyfile(
        "from bodies import both, late\n"
        "def test_late(crash_safety):\n"
        "    crash_safety.check(late, at='before', mode='in-process', text='x')\n"
        "def test_both(crash_safety):\n"  # forks, and for the second undisturbed run a fresh interpreter
        "    crash_safety.check(both, at='before', budget=1, text='x')\n"
    )

    run(inner).assert_outcomes(passed=2)


def test_no_server_is_started_where_no_body_can_call_one(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        "import n00dles_testing.fixtures\n"
        "from plain import plain\n"
        "def test_no_sdk(crash_safety, n00dles_llm, monkeypatch):\n"
        "    monkeypatch.setattr(n00dles_testing.fixtures, '_SDKS', ('an_sdk_that_is_not_installed',))\n"
        "    crash_safety.check(plain, budget=1, text='x')\n"
        "    assert n00dles_llm._server is None\n"
        "def test_another_server(crash_safety, n00dles_llm, monkeypatch):\n"
        "    monkeypatch.setenv('OPENAI_BASE_URL', 'http://localhost:1/v1')\n"
        "    crash_safety.check(plain, budget=1, text='x')\n"
        "    assert n00dles_llm._server is None\n"
        "def test_an_sdk(crash_safety, n00dles_llm):\n"
        "    report = crash_safety.check(plain, budget=1, text='x')\n"
        "    assert (n00dles_llm._server is not None, report.paid) == (True, None)\n"
    )

    run(inner).assert_outcomes(passed=3)

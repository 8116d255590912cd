"""The kill at the worst moment: the call is paid, its reply never comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import openai
import pytest

from n00dles_testing.llm import LLMServer, arm_kill

PROMPTS = ["one", "two", "three"]
CHILD = """
import http.client, json, os
from urllib.parse import urlsplit
from n00dles_testing.llm import arm_kill

def ask(*prompts, url="OPENAI_BASE_URL"):
    place = urlsplit(os.environ[url])
    connection = http.client.HTTPConnection(place.hostname, place.port)
    for prompt in prompts:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]})
        connection.request("POST", place.path + "/chat/completions", body, {"Authorization": "Bearer x"})
        connection.getresponse().read()

"""


def in_a_child(code: str, **environment: str) -> int:
    """Run `code` in a process of its own and return how it ended: -9 for SIGKILL."""
    return subprocess.run(
        [sys.executable, "-c", CHILD + code], check=False, env={**os.environ, **environment}
    ).returncode


def ask(prompt: str) -> Any:
    with openai.OpenAI(max_retries=0) as client:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": prompt}])


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_process_is_killed_at_the_request_it_names_after_that_is_paid(server: LLMServer, at: int) -> None:
    ended = in_a_child(f"arm_kill(os.environ['N00DLES_LLM_CONTROL'], os.getpid(), request={at}); ask(*{PROMPTS!r})")

    calls = server.journal()
    assert ended == -signal.SIGKILL
    assert [call.prompt for call in calls] == PROMPTS[:at]
    assert [(call.paid, call.sent, call.killed) for call in calls] == [
        *[(True, True, False)] * (at - 1),
        (True, False, True),
    ]


def test_a_kill_is_used_up_and_later_calls_are_answered(server: LLMServer) -> None:
    first = in_a_child("arm_kill(os.environ['N00DLES_LLM_CONTROL'], os.getpid()); ask('one')")
    second = in_a_child("ask('one')")

    assert (first, second) == (-signal.SIGKILL, 0)
    assert [(call.killed, call.sent) for call in server.journal()] == [(True, False), (False, True)]


def test_a_kill_that_does_not_come_to_pass_kills_nobody_and_is_no_killed_call(server: LLMServer) -> None:
    ended = in_a_child(f"arm_kill(os.environ['N00DLES_LLM_CONTROL'], os.getpid(), request=4); ask(*{PROMPTS!r})")
    ask("the fourth, from another process")

    calls = server.journal()
    assert ended == 0
    assert [call.killed for call in calls] == [False] * 4
    assert "could not be killed" in calls[-1].note
    assert calls[-1].sent


def test_a_later_kill_takes_the_place_of_an_earlier_one_and_a_reset_of_both(server: LLMServer) -> None:
    arming = "arm_kill(os.environ['N00DLES_LLM_CONTROL'], os.getpid()); "
    replaced = in_a_child(f"{arming} arm_kill(os.environ['N00DLES_LLM_CONTROL'], os.getpid(), request=9); ask('one')")
    server.reset()

    for _ in range(9):
        ask("two")

    assert replaced == 0
    assert [call.note for call in server.journal()] == [""] * 9


def test_a_kill_in_one_channel_is_not_fired_by_another(server: LLMServer) -> None:
    server.reset("mine")
    mine = server.environment_of("mine")

    ended = in_a_child(
        "arm_kill(os.environ['MINE_CONTROL'], os.getpid()); ask('default'); ask('mine', url='MINE')",
        MINE=mine["OPENAI_BASE_URL"],
        MINE_CONTROL=mine["N00DLES_LLM_CONTROL"],
    )

    assert ended == -signal.SIGKILL
    assert [call.killed for call in server.journal()] == [False]
    assert [call.killed for call in server.journal("mine")] == [True]


@pytest.mark.parametrize("pid", [0, 1, -1, 2**22 + 1])
def test_no_kill_can_be_armed_for_what_is_no_process_of_ours(server: LLMServer, pid: int) -> None:
    with pytest.raises(RuntimeError, match="refused 'kill'"):
        server.arm_kill(pid)

    ask("one")
    assert [(call.killed, call.note) for call in server.journal()] == [(False, "")]


def test_the_server_does_not_kill_itself(server: LLMServer) -> None:
    with pytest.raises(RuntimeError, match="refused 'kill'"):
        server.arm_kill(server.pid or 0)


def test_arming_at_a_server_that_is_gone_says_so() -> None:
    with LLMServer() as server:
        url = server.control_url()

    with pytest.raises(RuntimeError, match="cannot be reached"):
        arm_kill(url, os.getpid())


def test_a_kill_with_a_key_waits_for_the_request_that_carries_it(server: LLMServer) -> None:
    code = """
def ask_with(key):
    place = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(place.hostname, place.port)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": key}]})
    headers = {"Authorization": "Bearer x", "Idempotency-Key": key}
    connection.request("POST", place.path + "/chat/completions", body, headers)
    connection.getresponse().read()

arm_kill(os.environ["N00DLES_LLM_CONTROL"], os.getpid(), key="mine")
ask_with("a sibling's"); ask("no key"); ask_with("mine"); ask_with("too late")
"""

    ended = in_a_child(code)

    assert ended == -signal.SIGKILL
    assert [(call.prompt, call.killed) for call in server.journal()] == [
        ("a sibling's", False),
        ("no key", False),
        ("mine", True),
    ]

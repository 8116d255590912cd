"""`n00dles-testing llm-server --script`: what it says of the calls, and how it ends."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from n00dles_testing.cli import main

CLIENT = """
import http.client, json, os, sys
from urllib.parse import urlsplit
place = urlsplit(os.environ["OPENAI_BASE_URL"])
for node in sys.argv[1:]:
    connection = http.client.HTTPConnection(place.hostname, place.port)
    body = json.dumps({"model": "gpt-x", "messages": [{"role": "user", "content": "Go on."}]})
    headers = {"Authorization": "Bearer k", "N00dles-Node": node}
    if node == "keyless":
        del headers["Authorization"]
    connection.request("POST", place.path + "/chat/completions", body, headers)
    connection.getresponse().read()
"""
SCRIPT = [{"node": "a", "text": "one two"}, {"node": "b", "fault": "Overloaded"}, {"node": "b", "text": "three"}]


def served(tmp_path: Path, *nodes: str, script: Any = SCRIPT, options: tuple[str, ...] = ()) -> Result:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(script))
    program = [sys.executable, "-S", "-c", CLIENT, *nodes]
    return CliRunner().invoke(main, ["llm-server", "--script", str(file), *options, "--", *program])


def test_a_script_that_is_followed_ends_with_0_and_a_line_for_each_call(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    result = served(tmp_path, "a", "b", "b", options=("--port", str(port)))

    assert result.exit_code == 0, result.output
    lines = result.stderr.splitlines()
    assert lines[0].startswith("2 calls, ")
    assert lines[0].endswith(" tokens would have been paid for")
    assert [line.split("  ")[:2] for line in (each.strip() for each in lines[1:])] == [
        ["1", "a (gpt-x)"],
        ["2", "b (gpt-x)"],
        ["3", "b (gpt-x)"],
    ]
    assert "not paid  Overloaded()" in lines[2]
    assert lines[1].endswith("+2 tokens")


def test_a_request_that_was_refused_is_told_with_the_reason(tmp_path: Path) -> None:
    result = served(tmp_path, "keyless", script=[])

    assert result.exit_code == 0, result.output
    assert "call 1 was refused: no API key was sent" in result.stderr.splitlines()


def test_what_was_not_scripted_and_what_was_not_used_is_said_and_ends_with_1(tmp_path: Path) -> None:
    result = served(tmp_path, "a", "c")

    assert result.exit_code == 1
    assert (
        "call 2 was not scripted: the script has no reply for this request to 'gpt-x' from the node 'c'"
        in result.stderr
    )
    assert "not used: fail('b', Overloaded())" in result.stderr
    assert "not used: reply('b', 'three')" in result.stderr


def test_a_mistake_in_the_script_is_named_and_ends_with_2(tmp_path: Path) -> None:
    result = served(tmp_path, script=["fine", {"text": "x", "times": 0}])

    assert result.exit_code == 2
    assert f"reply 2 of {tmp_path / 'script.json'}: times=0 would never be used" in result.stderr


def test_a_port_in_use_ends_with_2(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = served(tmp_path, options=("--port", str(taken.getsockname()[1])))

    assert result.exit_code == 2
    assert "did not start" in result.stderr
    said = capfd.readouterr().err
    assert "cannot listen on port" in said
    assert "Traceback" not in said

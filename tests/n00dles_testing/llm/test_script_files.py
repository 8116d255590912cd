"""Scripts in files: every field goes both ways, and a mistake is named with its file and entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing import Hangs, RateLimited, Reply, ToolCall
from n00dles_testing.llm import faults
from n00dles_testing.llm.script_file import ScriptFileError, load_script, plain_entry, write_script

SCRIPT = [
    Reply(text="Three facts.", node="researcher"),
    Reply(
        data={"title": "ü"}, model="^claude", system="brief", prompt="x", times=None, input_tokens=3, output_tokens=4
    ),
    Reply(tool_calls=[ToolCall("search", {"query": "x"}), ToolCall("stop")], times=2),
    Reply(fault=RateLimited(retry_after=2), node="writer"),
    Reply(text="No.", stop="refusal"),
    Reply(status=404, text="no such model"),
]


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "script.json"

    write_script(file, map(plain_entry, SCRIPT))

    assert load_script(file) == SCRIPT
    assert file.read_text(encoding="utf-8").splitlines()[1] == '  {"text": "Three facts.", "node": "researcher"},'
    write_script(file, [])
    assert load_script(file) == []


@pytest.mark.parametrize("fault", [kind() for kind in faults._FAULTS.values()], ids=str)
def test_every_fault_goes_both_ways(tmp_path: Path, fault: faults.Fault) -> None:
    file = tmp_path / "script.json"

    write_script(file, [plain_entry(Reply(fault=fault))])

    assert load_script(file) == [Reply(fault=fault)]


def test_a_text_and_the_name_of_a_fault_are_enough(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('["hello", {"fault": "Hangs"}]')

    assert load_script(file) == [Reply(text="hello"), Reply(fault=Hangs())]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (3, "is neither an object nor a text: 3"),
        ({}, "answers nothing; give it one of text, data, tool_calls, fault, status"),
        ({"txt": "x", "text": "x"}, "a reply has no field 'txt', only text, data, node"),
        ({"text": 3}, "text=3 has the wrong type"),
        ({"text": "x", "times": "2"}, "times='2' has the wrong type"),
        ({"text": "x", "times": 0}, "times=0 would never be used"),
        ({"text": "x", "prompt": "("}, "prompt='(' is no regular expression: missing )"),
        ({"text": "x", "stop": "never"}, "stop='never' is none of"),
        ({"tool_calls": [{"tool": "x"}]}, "is no list of objects with name, arguments"),
        ({"tool_calls": [{"name": "x", "arguments": "{}"}]}, "arguments='{}' of the tool 'x' are no JSON object"),
        ({"fault": "Sleeps"}, "'Sleeps' is no fault; there are RateLimited, ServerError"),
        ({"fault": {"fault": "Hangs", "seconds": 1}}, "Hangs has no setting 'seconds', none"),
        ({"fault": {"fault": "SlowDrip", "second": 1}}, "SlowDrip has no setting 'second', only seconds"),
        ({"fault": {"fault": "SlowDrip", "seconds": -1}}, "seconds=-1 is not a number of at least 0"),
        ({"fault": {"fault": "DropsMidStream", "after": 1.5}}, "after=1.5 is no number of events"),
        ({"fault": {"fault": "ServerError", "status": 404}}, "status=404 is no server error; those are 500 to 599"),
        ({"fault": {"fault": "TruncatedJSON", "of": "x"}}, "of='x' is neither 'response' nor 'answer'"),
    ],
)
def test_a_mistake_is_named_with_its_file_and_entry(tmp_path: Path, entry: Any, says: str) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(["fine", entry]))

    with pytest.raises(ScriptFileError) as error:
        load_script(file)

    assert str(error.value).startswith(f"reply 2 of {file}")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'["a",\n "b"', r"script.json is not JSON: Expecting ',' delimiter: line 2 column"),
        (b'{"text": "x"}', r"script.json is no list of replies"),
        (b"\xff", "script.json is not JSON: 'utf-8' codec"),
        (None, "script.json cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_script_is_named(tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "script.json"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(ScriptFileError, match=says):
        load_script(file)


@pytest.mark.parametrize("data", [{1, 2}, object(), float("nan"), {"a": b"x"}])
def test_data_that_no_model_can_answer_is_refused_where_it_is_written(data: Any) -> None:
    with pytest.raises(ValueError, match="cannot be a model's answer"):
        Reply(data=data)

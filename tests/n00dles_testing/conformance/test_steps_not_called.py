"""A step that could not be made, since the load before it had failed, is told so: it is no error of anybody's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.deeds import expect_no_error
from n00dles_testing.conformance.disturbed import play, told
from n00dles_testing.conformance.expect import BrokenClause
from n00dles_testing.conformance.target import StoreTarget

STORE = """
class LoadsNever:
    def load_or_create(self, run_id, inputs):
        raise OSError("no route")
    def save(self, run_id, context): ...
    def delete(self, run_id): ...
"""


def played(tmp_path: Path) -> list[dict[str, Any]]:
    file = tmp_path / "loads_never.py"
    file.write_text(STORE)
    load = {"do": "load_or_create", "run": "r", "inputs": {}}
    save = {"do": "save", "run": "r", "outputs": {"a": 1}}
    target = StoreTarget.parse(f"{file}:LoadsNever")
    came = asyncio.run(play(target, None, before=[], call=load, after=[save], disturbance={"by": "count"}))
    return [came["came"], *came["after"]]


def test_a_save_behind_a_load_that_failed_is_not_called_and_the_story_says_why(tmp_path: Path) -> None:
    load, save = played(tmp_path)

    assert told(load) == "raised OSError: no route"
    assert told(save) == "not called, since the load of 'r' before it had failed"


def test_that_it_was_not_called_is_what_fails(tmp_path: Path) -> None:
    _, save = played(tmp_path)

    with pytest.raises(BrokenClause) as broken:
        expect_no_error(save, "save after that", because="the store goes on")

    assert broken.value.message == "save after that was not called, since the load of 'r' before it had failed"

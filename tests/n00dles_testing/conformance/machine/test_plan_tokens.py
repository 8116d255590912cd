"""The token of a sequence of operations: data only, checked before anything is played."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.machine import Plan, PlanToken
from n00dles_testing.conformance.machine.operations import describe
from n00dles_testing.crash.tokens import BadTokenError

OPERATIONS: tuple[dict[str, Any], ...] = (
    {"do": "load", "run": 0, "inputs": 1, "second": False},
    {
        "do": "save",
        "run": 0,
        "back": 1,
        "nodes": [["a", {"json": [1, None]}], ["b", {"hostile": "-0.0"}]],
        "second": True,
    },
    {"do": "overlap", "run": 1, "backs": [0, 1], "nodes": [["a", {"json": 1}], ["b", {"json": 2}]]},
    {"do": "cancel", "run": 2, "back": 0, "nodes": [], "after": 3},
    {"do": "delete", "run": 0, "second": False},
    {"do": "reopen"},
    {"do": "elsewhere", "run": 0, "what": "save", "inputs": 0, "nodes": [["c", {"json": "x"}]], "kill": True},
    {"do": "clock", "seconds": -3600},
    {"do": "edit", "run": 0, "back": 0, "what": "reply"},
)
TOKEN = PlanToken("sqlite:///runs.db", 7, Plan(OPERATIONS, "case", 2))


def packed(form: Any) -> str:
    return "s1" + base64.urlsafe_b64encode(zlib.compress(json.dumps(form).encode())).decode().rstrip("=")


def form_with(**changes: Any) -> dict[str, Any]:
    return {
        "target": "memory://",
        "seed": 0,
        "plan": {"operations": [OPERATIONS[0]], "ids": "plain", "first_id": 0} | changes,
    }


def test_a_token_carries_store_seed_and_operations() -> None:
    text = TOKEN.encode()

    assert PlanToken.decode(f" {text}\n") == TOKEN
    assert text.startswith("s1")
    assert text.replace("-", "").replace("_", "").isalnum()


def test_a_file_below_this_folder_has_the_same_token_in_every_checkout() -> None:
    here = PlanToken(f"{Path.cwd()}/tests/store.py:open_store", 0, TOKEN.plan)

    assert PlanToken.decode(here.encode()).target == "tests/store.py:open_store"


@pytest.mark.parametrize("cut", [0, 2, 5, 40, -1])
def test_a_damaged_token_says_so(cut: int) -> None:
    with pytest.raises(BadTokenError):
        PlanToken.decode(TOKEN.encode()[:cut])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ([1], "it holds no sequence"),
        ({"executor": None, "family": "lives", "spec": {}, "rest": []}, "it holds no sequence"),
        ({**form_with(), "seed": "0"}, "of other types"),
        ({**form_with(), "plan": None}, "it is no sequence of operations"),
        (form_with(operations=[]), "it has no operations"),
        (form_with(operations=[OPERATIONS[5]] * 201), "more than 200"),
        (form_with(operations=[OPERATIONS[5], {"do": "exec"}]), "its operation 2 does what nobody knows"),
        (form_with(operations=[{"do": "delete", "run": 0}]), "its operation 1 (delete) needs run, second"),
        (form_with(operations=[{**OPERATIONS[0], "run": 3}]), "(load) has a bad run"),
        (form_with(operations=[{**OPERATIONS[0], "run": True}]), "(load) has a bad run"),
        (form_with(operations=[{**OPERATIONS[0], "inputs": -1}]), "(load) has a bad inputs"),
        (form_with(operations=[{**OPERATIONS[1], "nodes": [["a", {"json": float("nan")}]]}]), "(save) has a bad nodes"),
        (form_with(operations=[{**OPERATIONS[1], "nodes": [["\ud800", {"json": 1}]]}]), "(save) has a bad nodes"),
        (form_with(operations=[{**OPERATIONS[1], "nodes": [["a", {"hostile": "no such"}]]}]), "(save) has a bad nodes"),
        (form_with(operations=[{**OPERATIONS[1], "nodes": [["a", {"pickle": "x"}]]}]), "(save) has a bad nodes"),
        (form_with(operations=[{**OPERATIONS[2], "nodes": []}]), "(overlap) has a bad nodes"),
        (form_with(operations=[{**OPERATIONS[6], "what": "reply"}]), "(elsewhere) has a bad what"),
        (form_with(operations=[{**OPERATIONS[7], "seconds": 10**12}]), "(clock) has a bad seconds"),
        (form_with(ids="no such group"), "a group that there is not"),
        (form_with(operations=[{**OPERATIONS[1], "nodes": [["a", {"json": "x" * 300_000}]]}]), "longer than"),
    ],
)
def test_what_cannot_be_played_is_refused_by_name(form: Any, message: str) -> None:
    with pytest.raises(BadTokenError) as caught:
        PlanToken.decode(packed(form))

    assert message in str(caught.value)


def test_a_token_that_unpacks_to_more_than_anybody_needs_is_refused() -> None:
    bomb = "s1" + base64.urlsafe_b64encode(zlib.compress(b"[" * 10**8)).decode()

    with pytest.raises(BadTokenError, match="too long"):
        PlanToken.decode(bomb)


def test_a_deeply_nested_token_is_refused() -> None:
    deep = "s1" + base64.urlsafe_b64encode(zlib.compress(b"[" * 10**5)).decode()

    with pytest.raises(BadTokenError):
        PlanToken.decode(deep)


def test_every_operation_can_be_told() -> None:
    assert [describe(operation) for operation in OPERATIONS] == [
        "load run 0, or create it, with {'topic': 'dogs', 'depth': [1, {}]}",
        "save a=[1, None], b=-0.0 of run 0 by an older worker (loaded 1 before the newest) through a second instance",
        "save a=1, b=2 of run 1 at once, by the newest worker and by an older worker (loaded 1 before the newest)",
        "save nothing new of run 2 by the newest worker, and cancel it",
        "delete run 0",
        "close the store, and open it again",
        "save c='x' of run 0 in another process, which is killed then",
        "move the clock by -3600 s",
        "edit the reply of the newest worker of run 0",
    ]

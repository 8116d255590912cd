"""A token is one scenario as data: the same everywhere, and harmless to read."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.crash.points import Point
from n00dles_testing.crash.tokens import BadTokenError, Token

PLAN = (Point.parse("after-save:draft"), Point.parse("during:edit#2"))
INPUTS = {"topic": "zwei Wörter \ud83d", "n": 1.0, "tags": ["a", None, {"b": True}]}


def packed(form: Any) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(form).encode())).decode()


def test_a_token_comes_back_as_it_was_and_is_one_word() -> None:
    token = Token("flows.py:flow", INPUTS, "sqlite:///x.db", "spawn", PLAN)

    text = token.encode()

    assert Token.decode(text) == token
    assert Token.decode(f"  {text}\n") == token
    assert text.replace("-", "").replace("_", "").isalnum()


def test_the_order_of_the_inputs_and_the_place_of_the_checkout_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        inputs = {"a": 1, "b": 2} if name == "one" else {"b": 2, "a": 1}
        texts.append(Token(f"{folder}/flows.py:flow", inputs, None, "fork", PLAN).encode())

    assert texts[0] == texts[1]
    assert Token.decode(texts[0]).target == "flows.py:flow"


GOOD = {"v": 1, "target": "a:b", "inputs": {}, "store": None, "mode": "fork", "plan": []}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no token|is cut short"),
        ("after-save:writer", "is no token"),
        ("ÄÖÜ", "is no token"),
        (base64.urlsafe_b64encode(pickle.dumps(PLAN)).decode(), "is no token"),
        (base64.urlsafe_b64encode(zlib.compress(pickle.dumps(PLAN))).decode(), "is no token"),
        (Token("a:b", INPUTS, None, "fork", PLAN).encode()[:-8], "is cut short|is no token"),
        (base64.urlsafe_b64encode(zlib.compress(b"[" * 100_000)).decode(), "is no token"),
        (base64.urlsafe_b64encode(zlib.compress(b" " * (65 * 2**20))).decode(), "unpacks to more than"),
        (packed({**GOOD, "v": 2}), "another release"),
        (packed([1]), "another release"),
        (packed({**GOOD, "plan": ["nonsense"]}), "damaged: 'nonsense' is no crash point"),
        (packed({**GOOD, "plan": 3}), "damaged"),
        (packed({**GOOD, "plan": [3]}), "damaged"),
        (packed({**GOOD, "inputs": []}), "damaged"),
        (packed({**GOOD, "target": {"a": 1}}), "damaged"),
        (packed({name: GOOD[name] for name in GOOD if name != "mode"}), "damaged: 'mode'"),
    ],
)
def test_what_is_no_token_is_an_error_that_says_so(text: str, message: str) -> None:
    with pytest.raises(BadTokenError, match=message):
        Token.decode(text)

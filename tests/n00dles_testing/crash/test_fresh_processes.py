"""What a process makes anew at its start is the same in all that are forked from one, and not in a resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.crash import explore
from n00dles_testing.verdicts import Verdict

SIGNING = """
import secrets
from n00dles import agent, pipeline

KEY = {key}

@agent
async def sign(topic: str) -> str:
    return f"{{topic}} {{KEY}}"

@agent
async def verify(signed: str) -> str:
    if not signed.endswith(KEY):
        raise ValueError("signed by somebody else")
    return "verified"

flow = pipeline(sign >> verify, name="flow")
"""


@pytest.mark.parametrize(("key", "verdict"), [("secrets.token_hex(4)", Verdict.UNKNOWN), ("'fixed'", Verdict.PASS)])
def test_what_is_made_anew_at_import_is_seen_though_lives_are_forked_from_one_import(
    tmp_path: Path, key: str, verdict: Verdict
) -> None:
    (tmp_path / "signing.py").write_text(SIGNING.format(key=key))

    report = explore(f"{tmp_path}/signing.py:flow", {"topic": "x"}, mode="fork", at=["after-save:sign"])

    assert report.verdict is verdict
    assert ("`sign` returned" in report.unknown) is (verdict is Verdict.UNKNOWN)
    assert report.ok is (verdict is Verdict.PASS)

"""S11: what counts as naming size and limit, and what is done where memory is short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.clauses import s11_large_outputs
from n00dles_testing.conformance.expect import MisuseError
from n00dles_testing.conformance.mutants.correct import JSONFiles
from n00dles_testing.conformance.records import show
from n00dles_testing.conformance.sizes import names_size_and_limit
from n00dles_testing.verdicts import ClauseResult, Verdict
from tests.n00dles_testing.conformance.test_what_counts import subject_in

HERE = f"{Path(__file__)}"
MB = 1024 * 1024
LIMIT = 400 * 1024


class HasALimit(JSONFiles):
    """Says what is too large, and by how much."""

    def write(self, run_id: str, record: dict[str, Any]) -> None:
        size = len(json.dumps(record))
        if size > LIMIT:
            raise ValueError(f"run {run_id!r} has {size / 1024:.1f} KiB, and the limit is {LIMIT // 1024} KiB")
        super().write(run_id, record)


class NamesTheLimitOnly(HasALimit):
    def write(self, run_id: str, record: dict[str, Any]) -> None:
        try:
            super().write(run_id, record)
        except ValueError:
            raise ValueError(f"run {run_id!r} is larger than {LIMIT} bytes") from None


def s11_of(target: str) -> ClauseResult:
    [result] = check_store(target, clauses=["S11"]).results
    return result


def test_a_limit_is_no_fault_if_the_refusal_names_it_and_the_size() -> None:
    result = s11_of(f"{HERE}:HasALimit")

    assert (result.verdict, result.scenarios) == (Verdict.PASS, 5)
    assert result.reason == "; ".join(
        f"refused, naming size and limit: {title}"
        for title in ("one text of 1 MB", "one text of 16 MB", "one text of 64 MB", "1 MB in 1024 parts")
    )


def test_a_refusal_that_names_the_limit_only_is_a_fault() -> None:
    result = s11_of(f"{HERE}:NamesTheLimitOnly")

    assert result.verdict is Verdict.FAIL
    assert result.findings[0].story[0] == "scenario an output: one text of 1 MB"
    assert result.findings[0].message == "the refusal does not name the size and the limit"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("the document has 16777262 bytes, the maximum is 16777216", 16 * MB),
        ("item of 67,108,912 bytes exceeds 409,600 bytes", 64 * MB),
        ("1.0 MiB, at most 400 KiB", MB),
        ("1048 KB is more than 400KB", MB),
        ("limit 0.4 MB (got 1_048_600)", MB),
        ("payload of 89478486 characters (base64), limit 16 MB", 64 * MB),
    ],
)
def test_size_and_limit_are_read_in_any_unit(text: str, size: int) -> None:
    assert names_size_and_limit(text, size)


@pytest.mark.parametrize(
    "text",
    [
        "too large",
        "error 413: too large",
        "more than 409600 bytes",
        "1048576 bytes are too many",
        "1 MiB is too much",
        "1.0 MiB in attempt 3 of 5",
        "67108864 bytes, at most 409600",
    ],
)
def test_one_of_the_two_is_not_both(text: str) -> None:
    assert not names_size_and_limit(text, MB)


def test_where_memory_is_short_the_largest_size_is_left_out_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s11_large_outputs, "_free_memory", lambda: 200 * MB)
    subject = subject_in(Path("unused"))

    tried = [title for title, size in s11_large_outputs._SIZES if s11_large_outputs._has_memory(subject, title, size)]

    assert tried == ["100 KB", "1 MB", "16 MB"]
    assert subject.notes == [
        "64 MB was not tried: 200 MB of memory are free, and an output of that size with its copies may take 768 MB"
    ]


def test_where_there_is_no_memory_for_16_mb_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s11_large_outputs, "_free_memory", lambda: 100 * MB)

    with pytest.raises(MisuseError, match=r"16 MB was not tried: 100 MB of memory are free, and .* may take 192 MB"):
        s11_large_outputs._has_memory(subject_in(Path("unused")), "16 MB", 16 * MB)


@pytest.mark.parametrize("length", [10, 1000, 100_000, 100_001, MB])
def test_a_huge_text_is_shown_like_any_other(length: int) -> None:
    value = {"node": {"text": "ab" * (length // 2)}, "other": None}

    text = repr(value)
    assert show(value) == (text if len(text) <= 160 else f"{text[:160]}… ({len(text)} characters)")

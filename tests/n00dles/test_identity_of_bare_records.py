"""Identity of runs of which four fields were kept: by the 0.3 release, or by a store that keeps no more."""

from __future__ import annotations

from typing import Any

import pytest

from n00dles import PipelineChangedError, branch, pipeline, resume
from n00dles.pipeline import Step
from tests.n00dles.started_runs import READER, A, B, C, D, FourFields, calls


@pytest.fixture(autouse=True)
def _fresh() -> None:
    calls.clear()


@pytest.mark.parametrize(
    ("order", "flow", "difference"),
    [
        ("ab", A >> D >> B >> C, "its node 'b' is completed, and 'd', which comes before it now, is not"),
        ("ab", D >> A >> B, "its node 'b' is completed, and 'd', which comes before it now, is not"),
        ("ab", B >> A >> C, "its node 'a' had completed before 'b', and comes after it now"),
        ("ab", (A | D) >> B, "its node 'b' is completed, and 'd', which comes before it now, is not"),
        ("ba", (B >> D >> A) | C, "its node 'a' is completed, and 'd', which comes before it now, is not"),
        ("ab", A >> branch(x=D) >> B, r"its node 'b' is completed, and 'branch\[x\]', which comes"),
        (
            "ab",
            A >> branch(x=C >> B) >> D,
            "its node 'b' is completed, and 'c', which comes before it now, is not",
        ),
        ("abc", A >> C >> B, "its node 'b' had completed before 'c', and comes after it now"),
        ("az", A >> B, "its completed node 'z' is not in the pipeline any more"),
    ],
    ids=["inserted", "in front", "reordered", "joined", "in a member", "branch", "in a route", "swapped", "unknown"],
)
def test_a_record_without_a_signature_is_judged_by_what_is_complete(order: str, flow: Step, difference: str) -> None:
    with pytest.raises(PipelineChangedError, match=difference):
        resume(pipeline(flow, name="content"), "r", store=FourFields(*order))

    assert calls == []


@pytest.mark.parametrize(
    ("order", "flow", "output", "called"),
    [
        ("ab", A >> B >> C, "c(y)", ["c"]),
        ("ab", A >> B, "y", []),
        ("ba", (A | B) >> READER, {"a": "y", "b": "y"}, ["reader"]),
        ("b", (A >> D) | B, {"a_d": "d(a(x))", "b": "y"}, ["a", "d"]),
        ("ab", A >> branch(y=B, default=D) >> C, "c(y)", ["c"]),
        ("ad", A >> branch(y=(D >> B), default=C), "b(y)", ["b"]),
    ],
    ids=["chain", "done", "fan-out", "half a fan-out", "branch", "half a route"],
)
def test_a_record_without_a_signature_carries_on_where_it_fits(
    order: str, flow: Step, output: Any, called: list[str]
) -> None:
    result = resume(pipeline(flow, name="content"), "r", store=FourFields(*order))

    assert (result.output, calls) == (output, called)

"""How steps are put together, and what is refused when they are."""

from __future__ import annotations

from typing import Any, cast

import pytest

from n00dles import Agent, PipelineBuildError, agent, branch, parallel, pipeline


def node(name: str) -> Agent:
    @agent
    def body(value: str = "") -> str:
        return value

    return body.named(name)


A, B, C, D, E = (node(name) for name in "abcde")


def test_a_chain_has_its_steps_in_order() -> None:
    chain = A >> B >> (C >> D)

    assert [step.name for step in chain.steps] == ["a", "b", "c", "d"]
    assert chain.name == "a_b_c_d"
    assert (chain >> E).name == "a_to_e"


def test_a_fan_out_is_named_after_its_members() -> None:
    group = A | B | C

    assert group.name == "parallel[a,b,c]"
    assert [member.name for member in group.members] == ["a", "b", "c"]
    assert group.max_concurrency is None


def test_a_limited_fan_out_stays_one_member_of_a_larger_one() -> None:
    limited = parallel(A, B, max_concurrency=1)

    larger = limited | C

    assert larger.members == (limited, C)
    assert limited.max_concurrency == 1


def test_precedence_makes_a_chain_a_member_of_a_fan_out() -> None:
    group = A >> B | C

    assert group.name == "parallel[a_b,c]"


def test_a_branch_knows_its_routes_and_its_default() -> None:
    routed = branch(x=A, y=B, default=C)

    assert routed.name == "branch[x,y]"
    assert routed.routes == {"x": A, "y": B}
    assert routed.default is C
    assert routed.agents() == [A, B, C]


def test_one_step_may_serve_several_routes() -> None:
    flow = pipeline(A >> branch(x=B, y=B, default=B))

    assert [each.name for each in flow.agents()] == ["a", "b"]


def test_a_named_pipeline_is_one_step_of_another() -> None:
    inner = pipeline(A >> B, name="inner")

    outer = pipeline(inner >> C, name="outer")

    assert [step.name for step in outer.steps] == ["inner", "c"]
    assert [each.name for each in outer.agents()] == ["a", "b", "c"]


def test_settings_keep_a_chain_one_step() -> None:
    strict = pipeline(A >> B, retry=1)

    outer = strict >> C

    assert outer.steps == (strict, C)


def test_pipeline_names_what_it_is_given_and_changes_nothing_else() -> None:
    chain = A >> B

    named = pipeline(chain, name="content", retry=2, timeout=5.0)

    assert named.steps == chain.steps
    assert (named.name, named.timeout, chain.name) == ("content", 5.0, "a_b")


def test_the_signature_has_one_line_a_step() -> None:
    inner = pipeline(D >> E, name="inner")
    flow = pipeline(A >> (B | C) >> branch(x=inner, default=node("f")))

    assert flow.signature() == [
        "a(value: str) -> str",
        "(b(value: str) -> str | c(value: str) -> str)",
        "branch(x=inner[d(value: str) -> str >> e(value: str) -> str], default=f(value: str) -> str)",
    ]


NAMED = pipeline(C >> D, name="inner")


@pytest.mark.parametrize(
    "build",
    [
        lambda: A >> A,
        lambda: A >> B >> A,
        lambda: A | A,
        lambda: A >> (B | A),
        lambda: (A | B) >> (A | C),
        lambda: A >> branch(x=B, y=node("b")),
        lambda: A >> branch(x=node("a")),
        lambda: A >> B >> pipeline(A >> C, name="inner"),
        lambda: node("inner") >> NAMED,
        lambda: NAMED >> NAMED,
        lambda: pipeline(node("inner") >> C, name="inner") >> D,
        lambda: A >> B >> (node("a_b") | (C >> D)) >> (pipeline(node("x"), name="c_d") | E),
        lambda: pipeline(A >> pipeline(A >> B)),
    ],
    ids=range(13),
)
def test_two_nodes_of_one_name_are_refused_when_the_pipeline_is_built(build: Any) -> None:
    with pytest.raises(PipelineBuildError, match=r"named '\w+'.*rename one: \w+\.named\("):
        build()


NOT_A_STEP: Any = len


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: A >> NOT_A_STEP, "plain function.*decorate it with @agent"),
        (lambda: A | NOT_A_STEP, "plain function"),
        (lambda: A >> cast(Any, "text"), "no step of a pipeline"),
        (lambda: pipeline(cast(Any, None)), "no step of a pipeline"),
        (lambda: pipeline(cast(Any, [A])), "no step of a pipeline"),
        (lambda: branch(x=NOT_A_STEP), "plain function"),
        (branch, "at least one route"),
        (lambda: branch(default=A), "at least one route"),
        (parallel, "at least two members"),
        (lambda: parallel(A), "at least two members"),
        (lambda: parallel(A, B, max_concurrency=0), "at least 1"),
        (lambda: parallel(A, B, max_concurrency=True), "at least 1"),
        (lambda: pipeline(A, name="no way"), "cannot be the name"),
        (lambda: pipeline(A, timeout=0), "positive number of seconds"),
        (lambda: pipeline(A, retry=0), "no attempt at all"),
    ],
    ids=range(15),
)
def test_what_is_no_pipeline_is_refused_with_advice(build: Any, what: str) -> None:
    with pytest.raises(PipelineBuildError, match=what):
        build()


def test_an_empty_pipeline_is_refused() -> None:
    from n00dles import Pipeline

    with pytest.raises(PipelineBuildError, match="at least one step"):
        Pipeline([])

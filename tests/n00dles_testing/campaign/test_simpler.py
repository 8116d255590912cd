"""Simpler pipelines are valid, and lead to one that cannot be made simpler."""

from __future__ import annotations

from hypothesis import given

from n00dles_testing.campaign.simpler import simpler
from n00dles_testing.campaign.subjects import _given, specs
from n00dles_testing.strategies import ALWAYS, FanOutSpec, InputSpec, NodeSpec, ParameterSpec, PipelineSpec
from n00dles_testing.strategies.check import check

NODE = NodeSpec("a", "str")


@given(specs())
def test_each_is_valid_and_is_simpler_and_they_come_to_an_end(spec: PipelineSpec) -> None:
    for _ in range(100):
        found = list(simpler(spec))
        for each in found:
            check(each)
            assert len(each.nodes()) <= len(spec.nodes())
        if not found:
            break
        spec = found[-1]

    assert list(simpler(spec)) == []


def test_a_member_is_dropped_with_the_input_that_only_it_reads() -> None:
    reads = NodeSpec("b", "str", parameters=(ParameterSpec("x", "input"),))
    spec = PipelineSpec((FanOutSpec((NODE, reads, NodeSpec("c", "str"))),), (InputSpec("x", '"text"'),))

    assert PipelineSpec((FanOutSpec((NODE, NodeSpec("c", "str"))),)) in list(simpler(spec))


def test_what_reads_a_node_that_is_gone_reads_what_there_is() -> None:
    spec = PipelineSpec(
        (NODE, NodeSpec("b", "int"), NodeSpec("c", "str", parameters=(ParameterSpec("b", "previous"),)))
    )

    assert PipelineSpec((NODE, NodeSpec("c", "str", parameters=(ParameterSpec("b", "previous"),)))) in list(
        simpler(spec)
    )


def test_nothing_is_given_to_no_node_that_does_not_take_it_though_one_before_it_fails() -> None:
    fails = NodeSpec("a", "str", fails=ALWAYS)
    takes_text = NodeSpec("b", "str", parameters=(ParameterSpec("x", "input", "str"), ParameterSpec("a", "step")))
    spec = PipelineSpec((fails, takes_text), (InputSpec("x", '"text"'),))

    assert _given(spec, "0") == spec

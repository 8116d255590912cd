"""Which pipelines a campaign draws: small ones, in which each clause finds an occasion early.

`strategies.pipelines()` draws everything there is, evenly. Here every second pipeline has one of a few shapes in which
executors go wrong (a fan-out with something before and behind it, a branch, typed hand-overs, retries and fallbacks),
made of the same genes, so that it shrinks in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st
from pydantic import ValidationError

from ..strategies import InputSpec, PipelineSpec, SpecError, predict
from ..strategies.check import check
from ..strategies.genes import (
    FATAL,
    RECOVERING,
    Body,
    BranchGene,
    ChainGene,
    Failing,
    FanOutGene,
    NestedGene,
    NodeGene,
    Router,
    StepGene,
    chains,
    nodes,
)
from ..strategies.grow import grow
from .failures import healed

__all__ = ["MOST_NODES", "specs"]

MOST_NODES = 5


@cache
def specs(*, failures: bool = True) -> st.SearchStrategy[PipelineSpec]:
    """Draw small pipelines; with `failures`, some fail for good when nobody disturbs them."""
    return _specs(_shapes(failures))


@st.composite
def _specs(draw: st.DrawFn, genes: st.SearchStrategy[ChainGene]) -> PipelineSpec:
    drawn = draw(genes)
    is_chain = all(isinstance(gene, NodeGene) for gene in drawn)
    spec = grow(drawn, _LONGEST_CHAIN if is_chain else MOST_NODES, draw(_RETRIES))
    nothing = draw(_NOTHINGS) if spec.inputs else ""
    return _given(spec, nothing) if nothing else spec


def _given(spec: PipelineSpec, value: str) -> PipelineSpec:
    """Return `spec` with the first input that may be it being `value`: None, False or 0, which are easily lost."""
    for each in spec.inputs:
        inputs = tuple(InputSpec(each.name, value) if one is each else one for one in spec.inputs)
        try:
            changed = replace(spec, inputs=inputs)
            check(changed)
            predict(healed(changed))  # what comes after a node that fails has to take it, too
        except (SpecError, ValidationError):
            continue
        return changed
    return spec


_LONGEST_CHAIN = 8
_NOTHINGS = st.sampled_from(("", "", "", "null", "false", "0"))
_RETRIES = st.sampled_from((1, 1, 2))
_ROUTERS: tuple[Router, ...] = ("text", "record", "model", "enum", "unrelated")
_TRUE = st.sampled_from((False, *(True,) * 9))


def _shapes(fatal: bool) -> st.SearchStrategy[ChainGene]:
    node = nodes(fatal)
    well = nodes(False, failings=_WELL)
    pausing = nodes(False, bodies=_PAUSING, failings=_WELL)
    model = nodes(False, bodies=_MODEL, failings=_WELL)
    retried = nodes(False, failings=RECOVERING)
    fan_out = _fan_outs(pausing, node)
    limited = _fan_outs(pausing, pausing, limits=(1, 1, 2))
    branch = _branches(well)
    nested: st.SearchStrategy[StepGene] = st.tuples(
        _TRUE, st.lists(node, min_size=1, max_size=2), st.booleans(), st.sampled_from((None, 2))
    ).map(lambda drawn: NestedGene(*drawn))
    aimed = [
        *(st.tuples(node, node), st.tuples(well, well, well), st.tuples(model, model)),
        *(st.tuples(retried, well), st.tuples(retried)),
        *(st.tuples(fan_out), st.tuples(fan_out, well), st.tuples(well, fan_out)),
        *(st.tuples(limited), st.tuples(limited), st.tuples(limited, well)),
        *(st.tuples(branch), st.tuples(branch, well), st.tuples(branch, well)),
        st.tuples(nested, well),
        st.lists(well, min_size=_LONGEST_CHAIN - 1, max_size=_LONGEST_CHAIN).map(tuple),
    ]
    if fatal:
        failing = nodes(True, failings=FATAL)
        aimed += [
            st.tuples(failing, well),
            st.tuples(_fan_outs(failing, pausing)),
            st.tuples(_fan_outs(pausing, failing)),
        ]
    return st.one_of(*(shape.map(list) for shape in aimed), *[chains(fatal)] * 2)


def _fan_outs(
    one: st.SearchStrategy[StepGene],
    other: st.SearchStrategy[StepGene],
    *,
    limits: tuple[int | None, ...] = (None, 1, 2),
) -> st.SearchStrategy[StepGene]:
    """Draw fan-outs of `one` and `other`, and of one more: which is listed first may say which is done first."""
    members = st.tuples(_single(one), _single(other)) | st.tuples(_single(other), _single(one), _single(other))
    return st.tuples(_TRUE, members.map(list), st.sampled_from(limits)).map(lambda drawn: FanOutGene(*drawn))


def _branches(node: st.SearchStrategy[StepGene]) -> st.SearchStrategy[StepGene]:
    routes = st.tuples(_single(node), _single(node)).map(list)
    drawn = st.tuples(_TRUE, routes, st.sampled_from(_ROUTERS), st.booleans(), st.booleans())
    return drawn.map(lambda values: BranchGene(*values))


def _single(node: st.SearchStrategy[StepGene]) -> st.SearchStrategy[ChainGene]:
    return st.tuples(node).map(list)


_PAUSING: tuple[Body, ...] = (("async", 1), ("async", 2), ("async", 5))
_WELL = (Failing(),)
_MODEL: tuple[Body, ...] = (("model", 0),)

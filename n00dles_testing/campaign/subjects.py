"""Which pipelines a campaign draws: small ones, in which each clause finds an occasion early.

`strategies.pipelines()` draws everything there is, evenly. Here every second pipeline has one of a few shapes in which
executors go wrong (a fan-out with something before and behind it, a branch, typed hand-overs, retries and fallbacks),
made of the same genes, so that it shrinks in the same way.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from ..strategies import PipelineSpec
from ..strategies.genes import BranchGene, ChainGene, FanOutGene, NestedGene, Router, StepGene, chains, nodes
from ..strategies.grow import grow

__all__ = ["MOST_NODES", "specs"]

MOST_NODES = 5


@cache
def specs(*, failures: bool = True) -> st.SearchStrategy[PipelineSpec]:
    """Draw small pipelines; with `failures`, some fail for good when nobody disturbs them."""
    return _specs(_shapes(failures))


@st.composite
def _specs(draw: st.DrawFn, genes: st.SearchStrategy[ChainGene]) -> PipelineSpec:
    return grow(draw(genes), MOST_NODES, draw(_RETRIES))


_RETRIES = st.sampled_from((1, 1, 2))
_ROUTERS: tuple[Router, ...] = ("text", "record", "model", "enum", "unrelated")
_TRUE = st.sampled_from((False, *(True,) * 9))


def _shapes(fatal: bool) -> st.SearchStrategy[ChainGene]:
    node = nodes(fatal)
    single: st.SearchStrategy[ChainGene] = st.tuples(node).map(list)
    fan_out: st.SearchStrategy[StepGene] = st.tuples(
        _TRUE, st.lists(single, min_size=2, max_size=3), st.sampled_from((None, None, 1, 2))
    ).map(lambda drawn: FanOutGene(*drawn))
    branch: st.SearchStrategy[StepGene] = st.tuples(
        _TRUE,
        st.lists(single, min_size=1, max_size=2),
        st.sampled_from(_ROUTERS),
        st.booleans(),
        st.booleans(),
    ).map(lambda drawn: BranchGene(*drawn))
    nested: st.SearchStrategy[StepGene] = st.tuples(
        _TRUE, st.lists(node, min_size=1, max_size=2), st.booleans(), st.sampled_from((None, 2))
    ).map(lambda drawn: NestedGene(*drawn))
    aimed = (
        st.tuples(node, node),
        st.tuples(node, node, node),
        st.tuples(fan_out),
        st.tuples(fan_out, node),
        st.tuples(node, fan_out, node),
        st.tuples(branch, node),
        st.tuples(node, branch),
        st.tuples(nested, node),
    )
    return st.one_of(*(shape.map(list) for shape in aimed), *[chains(fatal)] * 4)

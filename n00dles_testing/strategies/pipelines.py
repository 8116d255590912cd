"""Whole pipelines, drawn as data.

@given(pipelines())
def test_a_run_does_what_its_spec_says(spec):
    assert run(build(spec), store=InMemoryStateStore(), **spec.input_values()).output == predict(spec).output
"""

from __future__ import annotations

from hypothesis import strategies as st

from .genes import ChainGene, chains
from .grow import grow
from .spec import PipelineSpec

__all__ = ["pipelines"]


def pipelines(*, max_nodes: int = 6, failures: bool = True) -> st.SearchStrategy[PipelineSpec]:
    """Draw specs of pipelines: `build` makes the real one, `predict` says what it has to do, `describe` shows it.

    There are chains, fan-outs with and without `max_concurrency`, branches by text, dict, model and enum, and pipelines
    inside pipelines; bodies that are async, sync or a model (answered in this process); parameters from the output
    before, from older outputs by name, from a route that may not have been taken, from inputs and from defaults, with
    and without annotations; outputs of JSON, None, and Pydantic models; nodes that fail their first attempts, with
    retries and fallbacks. With `failures` some runs fail for good; without, every undisturbed run finishes.

    At most `max_nodes` nodes (fallbacks not counted). No node waits or uses the network. Shrinks to one node that
    returns text.
    """
    return _pipelines(chains(failures), max_nodes)


# A composite, since hypothesis shows what it gives as its `repr`, which is a line that makes it again.
@st.composite
def _pipelines(draw: st.DrawFn, genes: st.SearchStrategy[ChainGene], max_nodes: int) -> PipelineSpec:
    return grow(draw(genes), max_nodes, draw(_RETRIES))


_RETRIES = st.sampled_from((1, 1, 1, 2, 3))

"""What the messages of errors look like, whatever text went into them."""

from __future__ import annotations

import pytest

from n00dles.errors import PipelineFailure


@pytest.mark.parametrize("message", ["it must be a dict, or a Pydantic model.", "no full stop", "and then..."])
def test_the_cause_of_a_failure_ends_with_one_full_stop(message: str) -> None:
    text = str(PipelineFailure("r1", "writer", ValueError(message)))

    assert f"ValueError: {message.rstrip('.')}. Completed nodes are kept" in text

"""What a generated node does when it is called: count the attempt, fail as planned, or answer for its arguments.

Its output follows from its name and a digest of its arguments with their types, so an argument that is wrong, missing,
or a dict in place of a model changes this output, and through it the last one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from n00dles.providers import LLMResponse
from n00dles.serialization import dumps

from ..crash.typed import canonical, encode
from .attempts import Attempts, current_attempts
from .model_values import json_form, value_from
from .spec import ALWAYS, NodeSpec

__all__ = ["GeneratedProvider", "PlannedFailure", "digest", "perform", "planned_output"]

MODEL = "generated-model"
_MISTYPED = [["mistyped"]]


class PlannedFailure(RuntimeError):
    """What a generated node raises in an attempt that its spec says fails."""


def digest(arguments: Mapping[str, Any]) -> str:
    """Return a short digest of arguments, their names and their types."""
    text = canonical({name: encode(value) for name, value in arguments.items()})
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def planned_output(node: NodeSpec, arguments: Mapping[str, Any]) -> Any:
    """Return the output that `node` has to give for these arguments, in the type that it declares."""
    return value_from(node.output, f"{node.name}:{digest(arguments)}", node.payload)


def perform(node: NodeSpec, of: NodeSpec, arguments: Mapping[str, Any], attempts: Attempts | None) -> Any:
    """Be one attempt of `node`: return the output, or what its failure returns, or raise `PlannedFailure`.

    `of` is the node in whose stead a fallback answers. It gives the same output: a kill takes nothing back from the
    world, so a node that was to fail once may answer itself when it is resumed.
    """
    if node.fails:
        attempt = current_attempts(attempts).count(node.name)
        if node.fails == ALWAYS or attempt <= node.fails:
            if node.failure == "raises":
                raise PlannedFailure(f"{node.name} fails in attempt {attempt}, as planned")
            return _MISTYPED if node.failure == "mistyped" else {f"{node.name} cannot be stored"}
    return planned_output(of, arguments)


class GeneratedProvider:
    """The model of one generated node: answers from the prompt, in this process, and bills a token a character."""

    def __init__(self, node: NodeSpec, of: NodeSpec, attempts: Attempts | None) -> None:
        self._node = node
        self._of = of
        self._attempts = attempts

    async def complete(self, prompt: str, system: str, **kwargs: Any) -> LLMResponse:
        """Answer as the spec of the node says."""
        answer = perform(self._node, self._of, {"prompt": prompt, "system": system}, self._attempts)
        content = answer if self._node.output == "str" and isinstance(answer, str) else dumps(json_form(answer))
        return LLMResponse(content=content, model=MODEL, input_tokens=len(prompt), output_tokens=len(content))

"""An answer as bytes: what the model says in the provider's shape, or the fault that stands in its place.

Faults of the connection (a reset, a hang, …) are not here: whoever delivers the answer has them happen.
"""

from __future__ import annotations

from dataclasses import replace

from .faults import HTTPFault, MalformedJSON, TruncatedJSON
from .shapes import EVENTS, Answer, Completion, LLMRequest, Shape

__all__ = ["written"]

_WEB_PAGE = b"<html><body><h1>Bad gateway</h1></body></html>"


def written(shape: Shape, request: LLMRequest, completion: Completion, serial: str) -> Answer:
    """Return the answer to `request`; `serial` makes up its ids."""
    answer = _written(shape, request, completion, serial)
    return replace(answer, headers={shape.id_header: f"req_{serial}", **answer.headers})


def _written(shape: Shape, request: LLMRequest, completion: Completion, serial: str) -> Answer:
    match completion.fault:
        case HTTPFault() as fault:
            return replace(shape.error(fault.http_status, fault.message), headers=fault.headers)
        case TruncatedJSON(of="response"):
            return _spoiled(shape.answer(request, completion, serial), None)
        case MalformedJSON(of="response"):
            return _spoiled(shape.answer(request, completion, serial), _WEB_PAGE)
    return shape.answer(request, completion, serial)


def _spoiled(answer: Answer, instead: bytes | None) -> Answer:
    """Cut the JSON in half, or put something else in its place; in a stream, that of its middle event, the last one."""
    if answer.content_type != EVENTS:
        return replace(answer, pieces=[_half(answer.pieces[0]) if instead is None else instead])
    middle = len(answer.pieces) // 2
    head, data = answer.pieces[middle].rstrip(b"\n").split(b"data: ", 1)
    spoiled = head + b"data: " + (_half(data) if instead is None else instead) + b"\n\n"
    return replace(answer, pieces=[*answer.pieces[:middle], spoiled])


def _half(text: bytes) -> bytes:
    return text[: len(text) // 2]

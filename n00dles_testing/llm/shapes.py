"""What the wire formats have in common: what a request says, and how a reply is written.

A shape knows nothing of scripts, journals or connections. `answer` gives the bytes in the pieces in which a provider
would send them: one for a plain reply, one an event for a streamed one.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

__all__ = [
    "EVENTS",
    "JSON",
    "Answer",
    "Completion",
    "LLMRequest",
    "Shape",
    "TurnedDownError",
    "count_tokens",
    "encoded",
    "in_pieces",
    "make_request",
    "plain_text",
]

JSON = "application/json"
EVENTS = "text/event-stream"


class TurnedDownError(Exception):
    """A request that gets an HTTP error instead of a reply. `unexpected`: the script has no entry for it."""

    def __init__(self, message: str, status: int = 400, *, unexpected: bool = False) -> None:
        self.status = status
        self.unexpected = unexpected
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """What a request asks for, whatever its shape. `prompt` is the last message, `schema` what the answer must fit."""

    shape: str
    body: dict[str, Any]
    canonical: str
    body_sha256: str
    model: str
    system: str
    prompt: str
    schema: dict[str, Any] | None
    tool: str | None
    stream: bool
    idempotency_key: str = ""

    @property
    def sha256(self) -> str:
        """The hash of the canonical body."""
        return hashlib.sha256(self.canonical.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def tokens(self) -> int:
        """The tokens of all its text, the schema included."""
        return count_tokens(self.canonical)


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model says, before it is written in a shape. `stop` is as in `Reply`."""

    text: str
    stop: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response, ready to be sent. More than one piece: streamed."""

    status: int
    content_type: str
    pieces: list[bytes] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)


def count_tokens(text: str) -> int:
    """Return how many tokens a text counts for: a word or a sign each. Not what any model counts, but exact."""
    return len(re.findall(r"\w+|[^\w\s]", text))


class Shape(ABC):
    """One provider's HTTP API."""

    name: ClassVar[str]
    path: ClassVar[str]

    def read(self, raw: bytes, headers: Mapping[str, str]) -> LLMRequest:
        """Parse a request. Raises `TurnedDownError` for one that makes no sense to the provider."""
        if not self._has_key(headers):
            raise TurnedDownError("no API key was sent", 401)
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise TurnedDownError(f"the body is not JSON: {error}") from None
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
            raise TurnedDownError("the body has no 'messages'")
        if not all(isinstance(message, dict) for message in body["messages"]):
            raise TurnedDownError("a message is no object")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise TurnedDownError("the body has no 'model'")
        return replace(self._request(raw, body, headers), idempotency_key=headers.get("idempotency-key", ""))

    @abstractmethod
    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write `completion` as the provider would; `serial` makes up the id."""

    @abstractmethod
    def error(self, status: int, message: str) -> Answer:
        """Write an error as the provider would."""

    @abstractmethod
    def _has_key(self, headers: Mapping[str, str]) -> bool: ...

    @abstractmethod
    def _request(self, raw: bytes, body: dict[str, Any], headers: Mapping[str, str]) -> LLMRequest: ...


def make_request(
    shape: str, raw: bytes, body: dict[str, Any], *, system: str, schema: Any, tool: str | None = None
) -> LLMRequest:
    """Fill in what is read in the same way in every shape."""
    return LLMRequest(
        shape=shape,
        body=body,
        canonical=json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
        body_sha256=hashlib.sha256(raw).hexdigest(),
        model=body["model"],
        system=system,
        prompt=plain_text(body["messages"][-1].get("content")),
        schema=schema if isinstance(schema, dict) else None,
        tool=tool,
        stream=bool(body.get("stream")),
    )


def plain_text(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def in_pieces(content: str) -> list[str]:
    """Cut a text into the pieces in which it is streamed: a word each."""
    return re.findall(r"\S+\s*|\s+", content)


def encoded(value: Any) -> bytes:
    """Return JSON text as bytes; ASCII only, so that a lone surrogate is no matter."""
    return json.dumps(value).encode()

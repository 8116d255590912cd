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
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import unquote

from .calls import ToolCall
from .faults import Fault

__all__ = [
    "AGENT_HEADER",
    "EVENTS",
    "JSON",
    "NODE_HEADER",
    "Answer",
    "Completion",
    "LLMRequest",
    "Shape",
    "TurnedDownError",
    "Wanted",
    "callers_in",
    "count_tokens",
    "encoded",
    "in_pieces",
    "json_object",
    "plain_text",
    "spoken",
    "unread",
]

JSON = "application/json"
EVENTS = "text/event-stream"

NODE_HEADER = "N00dles-Node"
"""In which n00dles' providers tell a fake server, and no other, which node calls; percent-encoded."""

AGENT_HEADER = "N00dles-Agent"
"""The same for a fallback that is called for the node."""


class TurnedDownError(Exception):
    """A request that gets an HTTP error instead of a reply. `unexpected`: the script has no entry for it."""

    def __init__(self, message: str, status: int = 400, *, unexpected: bool = False) -> None:
        self.status = status
        self.unexpected = unexpected
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """What a request asks for, whatever its shape.

    `messages` is the conversation as in `LLMCall`, `prompt` its last message. `schema` is what the answer must fit;
    `tool` the tool that must be called, if there is one, and `tools` the names of all that are offered. `node` is the
    node that calls, where that is known, and `agent` the fallback that is called for it, if there is one.
    """

    shape: str
    body: dict[str, Any]
    canonical: str
    body_sha256: str
    model: str
    messages: list[dict[str, str]]
    schema: dict[str, Any] | None
    tool: str | None
    tools: tuple[str, ...]
    stream: bool
    node: str = ""
    agent: str = ""
    idempotency_key: str = ""

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(each["content"] for each in self.messages if each["role"] in ("system", "developer"))

    @property
    def prompt(self) -> str:
        """The last message."""
        return self.messages[-1]["content"] if self.messages else ""

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
    tool_calls: tuple[ToolCall, ...] = ()
    fault: Fault | None = None


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


@dataclass(frozen=True, slots=True)
class Wanted:
    """The form of answer that a request asks for: `schema` is that of the answer; of the tools, those of their input.

    `choice` is the tool that must be called; `True` for any one of them.
    """

    schema: Any = None
    tools: Mapping[str, Any] = field(default_factory=dict)
    choice: str | bool = False

    @property
    def tool(self) -> str | None:
        """The one tool that must be called, if that is settled."""
        if isinstance(self.choice, str):
            return self.choice
        return next(iter(self.tools)) if self.choice and len(self.tools) == 1 else None

    def read_schema(self) -> dict[str, Any] | None:
        """Return what the answer must fit. Raises `TurnedDownError` for a tool that is not offered."""
        if self.tool is not None and self.tool not in self.tools:
            raise TurnedDownError(f"tool_choice: tool {self.tool!r} is not among the tools")
        schema = self.schema if self.tool is None else self.tools[self.tool]
        return schema if isinstance(schema, dict) else None


class Shape(ABC):
    """One provider's HTTP API. `path` is how the path of its URL ends, `id_header` has the id of an answer."""

    name: ClassVar[str]
    path: ClassVar[str]
    id_header: ClassVar[str] = "x-request-id"
    conversation: ClassVar[str] = "messages"

    def read(self, raw: bytes, headers: Mapping[str, str], node: str | None = None, agent: str = "") -> LLMRequest:
        """Parse a request. The names of `headers` are in lower case; they say `node` and `agent` unless it is given.

        Raises `TurnedDownError` for one that makes no sense to the provider.
        """
        if not self._has_key(headers):
            raise TurnedDownError("no API key was sent", 401)
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise TurnedDownError(f"the body is not JSON: {error}") from None
        said = body.get(self.conversation) if isinstance(body, dict) else None
        said = [{"role": "user", "content": said}] if isinstance(said, str) else said
        if not isinstance(said, list) or not said:
            raise TurnedDownError(f"the body has no {self.conversation!r}")
        if not all(isinstance(message, dict) for message in said):
            raise TurnedDownError("a message is no object")
        if not isinstance(body.get("model"), str) or not body["model"]:
            raise TurnedDownError("the body has no 'model'")
        wanted = self._wanted(body, headers)
        if node is None:
            node, agent = callers_in(headers)
        system = self._system(body)
        messages = [{"role": "system", "content": system}] if system else []
        return LLMRequest(
            shape=self.name,
            body=body,
            canonical=json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
            body_sha256=hashlib.sha256(raw).hexdigest(),
            model=body["model"],
            messages=[*messages, *({"role": _role(each), "content": _said(each)} for each in said)],
            schema=wanted.read_schema(),
            tool=wanted.tool,
            tools=tuple(wanted.tools),
            stream=bool(body.get("stream")),
            node=node,
            agent=agent if agent != node else "",
            idempotency_key=headers.get("idempotency-key", ""),
        )

    @abstractmethod
    def answer(self, request: LLMRequest, completion: Completion, serial: str) -> Answer:
        """Write `completion` as the provider would; `serial` makes up the id."""

    @abstractmethod
    def error(self, status: int, message: str) -> Answer:
        """Write an error as the provider would."""

    def turned_down(self, error: TurnedDownError) -> Answer:
        """Write why a request gets no reply, so that the provider's SDK shows it to a person."""
        return self.error(error.status, str(error))

    def _has_key(self, headers: Mapping[str, str]) -> bool:
        bearer = headers.get("authorization", "").removeprefix("Bearer").strip()
        return bool(bearer or headers.get("x-api-key") or headers.get("api-key"))

    def _system(self, body: dict[str, Any]) -> str:
        """Return the system prompt where it is not one of the messages."""
        return ""

    @abstractmethod
    def _wanted(self, body: dict[str, Any], headers: Mapping[str, str]) -> Wanted:
        """Say what form of answer the request asks for. Raises `TurnedDownError` if that makes no sense."""


def unread(shape: str = "", raw: bytes = b"", *, node: str = "", agent: str = "") -> LLMRequest:
    """Return what can be told of a request that makes no sense, for the journal: at least its body, as a text."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    model = body.get("model") if isinstance(body, dict) else None
    return LLMRequest(
        shape=shape,
        body=body if isinstance(body, dict) else {},
        canonical=raw.decode(errors="replace"),
        body_sha256=hashlib.sha256(raw).hexdigest() if raw else "",
        model=model if isinstance(model, str) else "",
        messages=[],
        schema=None,
        tool=None,
        tools=(),
        stream=False,
        node=node,
        agent=agent,
    )


def callers_in(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the node that calls, and its fallback, as n00dles' providers tell them; empty texts where they do not."""
    node, agent = (unquote(headers.get(name.lower(), "")) for name in (NODE_HEADER, AGENT_HEADER))
    return node, agent


def plain_text(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts; what tools have returned counts, too."""
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        return "\n".join(str(part["text"]) if "text" in part else plain_text(part.get("content")) for part in parts)
    return content if isinstance(content, str) else ""


def spoken(request: LLMRequest, completion: Completion) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text and the tool calls of an answer: JSON becomes the input of the tool that must be called."""
    if request.tool is not None and completion.stop == "end" and not completion.tool_calls:
        tool_input = json_object(completion.text)
        if tool_input is not None:
            return "", (ToolCall(request.tool, tool_input),)
    return completion.text, completion.tool_calls


def json_object(content: str) -> dict[str, Any] | None:
    """Return what a tool can take as its input, or None for any other text."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _role(message: dict[str, Any]) -> str:
    return str(message.get("role") or message.get("type") or "")


def _said(message: dict[str, Any]) -> str:
    # The Responses API has the calls of tools, and what they returned, among its messages.
    return plain_text(message.get("content", message.get("output", message.get("arguments"))))


def in_pieces(content: str) -> list[str]:
    """Cut a text into the pieces in which it is streamed: a word each."""
    return re.findall(r"\S+\s*|\s+", content)


def encoded(value: Any) -> bytes:
    """Return JSON text as bytes; ASCII only, so that a lone surrogate is no matter."""
    return json.dumps(value).encode()

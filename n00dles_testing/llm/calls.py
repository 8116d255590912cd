"""What is scripted and what is recorded: a reply to give, and a call that was made."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from http import HTTPStatus
from typing import Any, Self
from uuid import UUID

from .faults import Fault

__all__ = ["LLMCall", "Reply", "ToolCall"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls instead of answering. `arguments` is a JSON object, as a dict."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arguments = _plain(self.arguments)
        if not isinstance(arguments, dict):
            raise ValueError(f"arguments={self.arguments!r} of the tool {self.name!r} are no JSON object")  # noqa: TRY004
        object.__setattr__(self, "arguments", arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply of a script, for the requests that it fits.

    `node` is the name of the node that calls, exactly, or of the fallback that is called for it. `model`, `system` and
    `prompt` are regular expressions, searched in the request's model, system prompt and last message. A reply without
    any of these fits every request. It is used `times` times (None: as often as it fits).

    What is answered is `text`, or `data` as JSON (a Pydantic model, a dataclass, or what `json.dumps` takes): as text,
    or as the input of the tool, if the request demands that a certain tool is called. `tool_calls` come after the text.
    `stop` is "end", "length" (cut off), "filter" or "refusal" (the text then says why). Tokens are counted from the
    texts unless given. With a `fault`, that goes wrong; see `n00dles_testing.llm.faults`. A `status` of 400 or more is
    an HTTP error with `text` as its message, and is not paid.
    """

    text: str = ""
    data: Any = None
    node: str | None = None
    model: str | None = None
    system: str | None = None
    prompt: str | None = None
    times: int | None = 1
    tool_calls: Sequence[ToolCall] = ()
    fault: Fault | None = None
    stop: str = "end"
    input_tokens: int | None = None
    output_tokens: int | None = None
    status: int = 200

    def __post_init__(self) -> None:
        for name in ("model", "system", "prompt"):
            _check_pattern(name, getattr(self, name))  # a wrong one fails here, where it stands, not in the server
        if self.stop not in ("end", "length", "filter", "refusal"):
            raise ValueError(f"stop={self.stop!r} is none of 'end', 'length', 'filter', 'refusal'")
        if self.status != HTTPStatus.OK and self.status < HTTPStatus.BAD_REQUEST:
            raise ValueError(f"status={self.status} is neither 200 nor an error of 400 or more")
        if self.times is not None and self.times < 1:
            raise ValueError(f"times={self.times} would never be used; give a positive number, or None for no limit")
        object.__setattr__(self, "data", _plain(self.data))
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))

    @property
    def content(self) -> str:
        """The text that the model says."""
        return self.text if self.data is None else json.dumps(self.data, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return its plain JSON form, in which it goes to the server and into script files."""
        record: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        record["tool_calls"] = [asdict(call) for call in self.tool_calls]
        record["fault"] = self.fault.to_dict() if self.fault else None
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; what is left out has its default. Raises `ValueError` for anything else."""
        known = [each.name for each in fields(cls)]
        if unknown := sorted(record.keys() - set(known)):
            raise ValueError(f"a reply has no field {unknown[0]!r}, only {', '.join(known)}")
        for name, value in record.items():
            if name in _TYPES and not isinstance(value, _TYPES[name]):
                raise ValueError(f"{name}={value!r} has the wrong type")
        given = dict(record)
        try:
            given["tool_calls"] = [ToolCall(**call) for call in record.get("tool_calls") or ()]
        except TypeError:
            raise ValueError(
                f"tool_calls={record['tool_calls']!r} is no list of objects with name, arguments"
            ) from None
        given["fault"] = Fault.from_dict(record["fault"]) if record.get("fault") else None
        return cls(**given)

    @classmethod
    def of(cls, entry: Any) -> Reply:
        """Read an entry of a script: a `Reply`, a text, or a Pydantic model or JSON value as `data`."""
        if isinstance(entry, Reply):
            return entry
        return cls(text=entry) if isinstance(entry, str) else cls(data=entry)


_WORDS = (str, type(None))
_COUNT = (int, type(None))
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("node", "model", "system", "prompt"), _WORDS),
    **dict.fromkeys(("times", "input_tokens", "output_tokens"), _COUNT),
    **{"text": (str,), "stop": (str,), "status": (int,), "tool_calls": (list,), "fault": (dict, str, type(None))},
}


def _check_pattern(name: str, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{name}={pattern!r} is no regular expression: {error}") from None


def _plain(data: Any) -> Any:
    """Return data as plain JSON, with models in the form in which a provider's answer has them."""
    try:
        return json.loads(json.dumps(data, default=_dumped, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"data={data!r} cannot be a model's answer: {error}") from None


def _dumped(value: Any) -> Any:
    # Aliases, as the schema that goes to the model has them; no computed fields, which it has not.
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, _ALSO) or (is_dataclass(value) and not isinstance(value, type)):
        from pydantic_core import to_jsonable_python  # not in the server's process

        return to_jsonable_python(value, by_alias=True, round_trip=True)
    raise TypeError(f"{type(value).__name__} is neither JSON nor a Pydantic model, a dataclass, a date or an enum")


_ALSO = (date, time, timedelta, Enum, Decimal, UUID)


@dataclass(slots=True, kw_only=True)
class LLMCall:
    """One request that reached the server. It is recorded before a byte of its reply is sent.

    `n` counts from 1 in its channel, `time` is in seconds since the epoch. `node` is the node that called, where that
    is known, and `agent` the fallback that was called for it, if it was one. `messages` is the conversation, the same
    for every provider: dicts with `role` and `content`, a text; the system prompt comes first. `request` is the
    canonical JSON text of the body (sorted keys) and `sha256` its hash; `body_sha256` is that of the bytes as they
    came.

    `reply` is the text that was answered, `tool_calls` are the tools that were called. `fault` is the scripted fault,
    as it is written in Python. `paid` is false for a request that the provider would not bill, `unexpected` true if the
    script has no entry for it; `note` says more. `sent`: the reply was handed to the connection. `killed`: the client
    was killed instead.
    """

    n: int
    channel: str
    time: float
    shape: str
    model: str
    system: str
    prompt: str
    request: str
    sha256: str
    body_sha256: str
    reply: str
    input_tokens: int
    output_tokens: int
    paid: bool
    node: str = ""
    agent: str = ""
    messages: list[dict[str, str]] = field(default_factory=list)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""
    idempotency_key: str = ""
    sent: bool = False
    killed: bool = False
    unexpected: bool = False
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the form in which it leaves the server."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(**record)

    @property
    def why_turned_down(self) -> str:
        """Why the request got an HTTP error that is no scripted fault: nothing was wrong with the script; else ""."""
        return "" if self.paid or self.fault or self.unexpected else self.note

    @property
    def body(self) -> dict[str, Any]:
        """The request body, parsed."""
        body: dict[str, Any] = json.loads(self.request)
        return body

"""What is scripted and what is recorded: a reply to give, and a call that was made."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Self

__all__ = ["LLMCall", "Reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One reply of a script, for the requests that it fits.

    `model`, `system` and `prompt` are regular expressions, searched in the request's model, system prompt and last
    user message; a reply without any fits every request. It is used `times` times (None: as often as it fits).

    What is answered is `text`, or `data` as JSON text. `stop` is "end", "length" (cut off), "filter" or "refusal" (the
    text then says why). Tokens are counted from the texts unless given. A `status` of 400 or more is an HTTP error with
    `text` as its message, and is not paid.
    """

    text: str = ""
    data: Any = None
    model: str | None = None
    system: str | None = None
    prompt: str | None = None
    times: int | None = 1
    stop: str = "end"
    input_tokens: int | None = None
    output_tokens: int | None = None
    status: int = 200

    def __post_init__(self) -> None:
        for pattern in filter(None, (self.model, self.system, self.prompt)):
            re.compile(pattern)  # a wrong one fails here, where it stands, and not in the server
        if self.stop not in ("end", "length", "filter", "refusal"):
            raise ValueError(f"stop={self.stop!r} is none of 'end', 'length', 'filter', 'refusal'")
        if self.status != HTTPStatus.OK and self.status < HTTPStatus.BAD_REQUEST:
            raise ValueError(f"status={self.status} is neither 200 nor an error of 400 or more")
        if self.times is not None and self.times < 1:
            raise ValueError(f"times={self.times} would never be used; give a positive number, or None for no limit")

    @property
    def content(self) -> str:
        """The text that the model says."""
        return self.text if self.data is None else json.dumps(self.data, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the form in which it goes to the server."""
        return asdict(self)

    @classmethod
    def of(cls, entry: str | Reply) -> Reply:
        """Read an entry of a script: a `Reply`, or a text that answers any request."""
        return entry if isinstance(entry, Reply) else cls(text=entry)


@dataclass(slots=True, kw_only=True)
class LLMCall:
    """One request that reached the server. It is recorded before a byte of its reply is sent.

    `n` counts from 1 in its channel, `time` is in seconds since the epoch. `request` is the canonical JSON text of the
    body (sorted keys) and `sha256` its hash; `body_sha256` is that of the bytes as they came. `paid` is false for a
    request that got an HTTP error, `unexpected` true if that is because the script has no entry for it; `note` says
    more. `sent`: the reply was handed to the connection. `killed`: the client was killed instead.
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
    def body(self) -> dict[str, Any]:
        """The request body, parsed."""
        body: dict[str, Any] = json.loads(self.request)
        return body

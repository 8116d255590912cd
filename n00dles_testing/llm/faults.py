"""What can go wrong between a program and a model, as plain data: for scripts, for the server, for `mock_llm`.

    mock_llm.fail("writer", RateLimited(retry_after=2), then="ok")

`paid` says of each whether the provider bills for the call. A fault that is not paid comes before the model has begun;
one that is paid loses or spoils an answer that has been made, and trying again pays a second time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal

__all__ = [
    "ConnectionReset",
    "DropsMidStream",
    "Fault",
    "HTTPFault",
    "Hangs",
    "KillsClient",
    "LostReply",
    "MalformedJSON",
    "Overloaded",
    "RateLimited",
    "Refusal",
    "ServerError",
    "SlowDrip",
    "TruncatedJSON",
    "WrongSchema",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which a call goes wrong. The class attribute `paid` says whether it is billed."""

    paid: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """Return its plain JSON form, as in a script file: its name, and its settings."""
        return {"fault": type(self).__name__, **asdict(self)}

    @staticmethod
    def from_dict(record: dict[str, Any] | str) -> Fault:
        """Read what `to_dict` wrote; a name alone, or settings that are left out: defaults. Raises `ValueError`."""
        settings = {"fault": record} if isinstance(record, str) else dict(record)
        name = settings.pop("fault", None)
        kind = _FAULTS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(f"{name!r} is no fault; there are {', '.join(_FAULTS)}")
        known = [each.name for each in fields(kind)]
        if unknown := sorted(settings.keys() - set(known)):
            has = f"only {', '.join(known)}" if known else "none"
            raise ValueError(f"{name} has no setting {unknown[0]!r}, {has}")
        return kind(**settings)


class HTTPFault(Fault, ABC):
    """A fault that is an HTTP error: `http_status`, `message` and `headers` are what the client gets. Not paid."""

    __slots__ = ()
    paid = False
    message: str

    @property
    @abstractmethod
    def http_status(self) -> int:
        """The status of the error."""

    @property
    def headers(self) -> dict[str, str]:
        """Headers that go with the error."""
        return {}


@dataclass(frozen=True, slots=True)
class RateLimited(HTTPFault):
    """HTTP 429. `retry_after`: the seconds that the client is told to wait, in the header of that name. Not paid."""

    retry_after: float | None = None
    message: str = field(default="rate limit reached", repr=False)

    def __post_init__(self) -> None:
        if self.retry_after is not None:
            _at_least("retry_after", self.retry_after, 0)

    @property
    def http_status(self) -> int:
        """429."""
        return 429

    @property
    def headers(self) -> dict[str, str]:
        """`retry-after`, if it is set."""
        return {} if self.retry_after is None else {"retry-after": f"{self.retry_after:g}"}


@dataclass(frozen=True, slots=True)
class ServerError(HTTPFault):
    """HTTP 500, or another error of the 500s, such as 503. Not paid."""

    status: int = 500
    message: str = field(default="the server had an error", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.status, int) or not 500 <= self.status <= 599:  # noqa: PLR2004 - HTTP's own numbers
            raise ValueError(f"status={self.status!r} is no server error; those are 500 to 599")

    @property
    def http_status(self) -> int:
        """The same as `status`."""
        return self.status


@dataclass(frozen=True, slots=True)
class Overloaded(HTTPFault):
    """HTTP 529, Anthropic's status for too many requests of all its customers. Not paid."""

    message: str = field(default="overloaded", repr=False)

    @property
    def http_status(self) -> int:
        """529."""
        return 529


@dataclass(frozen=True, slots=True)
class Hangs(Fault):
    """The request is accepted and never answered, until the client's time-out. Not paid."""

    paid = False


@dataclass(frozen=True, slots=True)
class ConnectionReset(Fault):
    """The connection is reset (TCP RST) when the request has arrived. Not paid."""

    paid = False


@dataclass(frozen=True, slots=True)
class DropsMidStream(Fault):
    """The connection ends after the headers and `after` events of the stream. Paid.

    A reply that is not streamed breaks off in the middle of its body. At least the last event is always lost.
    """

    after: int = 1

    def __post_init__(self) -> None:
        _at_least("after", self.after, 0)
        if not isinstance(self.after, int):
            raise ValueError(f"after={self.after!r} is no number of events")  # noqa: TRY004 - as the others


@dataclass(frozen=True, slots=True)
class TruncatedJSON(Fault):
    """JSON that ends too early, in an HTTP response that is otherwise whole. Paid.

    `of="response"` cuts what the provider sends (of a stream: one event); `of="answer"` cuts what the model says, in a
    response that can be parsed, and with the stop reason of a complete answer.
    """

    of: Literal["response", "answer"] = "response"

    def __post_init__(self) -> None:
        _check_of(self.of)


@dataclass(frozen=True, slots=True)
class MalformedJSON(Fault):
    """Something else than JSON, in an HTTP response that is otherwise whole. Paid.

    `of="response"` puts a web page where the provider's JSON should be, as a proxy does (of a stream: in one event);
    `of="answer"` has the model wrap its answer in words and a Markdown fence.
    """

    of: Literal["response", "answer"] = "response"

    def __post_init__(self) -> None:
        _check_of(self.of)


@dataclass(frozen=True, slots=True)
class Refusal(Fault):
    """The model refuses, and says `text`; the same as a reply with `stop="refusal"`. Paid."""

    text: str = "I can't help with that."


@dataclass(frozen=True, slots=True)
class WrongSchema(Fault):
    """The answer is JSON, but not of the schema that was asked for. Paid.

    Every property has a value of another type; where no schema was asked for, it is an object with `unexpected` in it.
    """


@dataclass(frozen=True, slots=True)
class SlowDrip(Fault):
    """The whole answer comes, in pieces, with so many `seconds` between them. Paid.

    Pieces are the events of a stream, or 64 bytes of a body. No single wait need be long enough for the client's
    time-out for reading, though all of them may take longer than a node has.
    """

    seconds: float = 0.05

    def __post_init__(self) -> None:
        _at_least("seconds", self.seconds, 0)


@dataclass(frozen=True, slots=True)
class LostReply(Fault):
    """The request is accepted and paid; then the connection is closed, and the reply is lost."""


@dataclass(frozen=True, slots=True)
class KillsClient(Fault):
    """The request is accepted and paid; then the process that sent it is killed with SIGKILL. No reply is sent.

    From `llm_server` it kills whichever process sent the request: have a child send it. From `mock_llm` that is the
    process of the test itself.
    """


def _at_least(name: str, value: Any, least: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise ValueError(f"{name}={value!r} is not a number of at least {least:g}")


def _check_of(of: Any) -> None:
    if of not in ("response", "answer"):
        raise ValueError(f"of={of!r} is neither 'response' nor 'answer'")


_FAULTS: dict[str, type[Fault]] = {
    kind.__name__: kind
    for kind in (
        RateLimited,
        ServerError,
        Overloaded,
        Hangs,
        ConnectionReset,
        DropsMidStream,
        TruncatedJSON,
        MalformedJSON,
        Refusal,
        WrongSchema,
        SlowDrip,
        LostReply,
        KillsClient,
    )
}

"""The same face on the real API: what `mock_llm` is with `--n00dles-live`. It answers nothing, and hears everything."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from n00dles.idempotency import current_agent, current_node

from .calls import Reply
from .heard import heard
from .interception import Sent
from .known_shapes import shape_for
from .listening import listening
from .mock import MockLLM
from .secrets_removed import REMOVED, secrets_of, without_secrets
from .shapes import LLMRequest, TurnedDownError

__all__ = ["LiveLLM"]

_LONGEST_PATTERN = 200


class LiveLLM(MockLLM):
    """Lets all calls through, and keeps what was asked and answered.

    The script of the test is not used: `reply` and `fail` do nothing, and nothing is missing or left. `calls` is as
    ever; `replies` are what a script needs to have it all said again, and `lost` says of which that could not be told.
    `secrets` are the keys and names that went with the requests, and must not be written anywhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.replies: list[Reply] = []
        self.lost: list[str] = []
        self.secrets: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def started(self) -> Iterator[LiveLLM]:
        """Listen in the `with` block. Keys and hosts are those of the environment."""
        with listening(self._listen):
            yield self

    @property
    def environment(self) -> dict[str, str]:
        """Nothing: other processes find the real API, too. What they are answered is not heard."""
        return {}

    @property
    def unused(self) -> list[Reply]:
        """Nothing: a script is not used."""
        return []

    def _add(self, reply: Reply) -> None:
        """Leave the script to the tests that are not live."""

    def _listen(self, sent: Sent) -> Callable[[int, str], None] | None:
        shape = shape_for(sent.path) if sent.method == "POST" else None
        if shape is None:
            return None
        self.secrets |= secrets_of(sent.headers)
        try:
            request = shape.read(sent.body, sent.headers, node=current_node() or "", agent=current_agent() or "")
        except TurnedDownError:
            return None  # the provider will say so itself
        return lambda status, body: self._keep(request, status, body)

    def _keep(self, request: LLMRequest, status: int, body: str) -> None:
        try:
            said = heard(request.shape, status, body, streamed=request.stream)
        except ValueError as error:
            self.lost.append(f"a reply of {request.model!r} was not kept: {error}")
            return
        who = (
            {"node": request.node}
            if request.node
            else {"prompt": _pattern(without_secrets(request.prompt, self.secrets))}
        )
        kept = Reply.from_dict({**said, **who, "model": f"^{re.escape(request.model)}$"})
        with self._lock:
            self.replies.append(kept)
            self._channel.script([kept], automatic=False)
            try:
                call, _ = self._channel.pay(request)
            except TurnedDownError:
                return  # an HTTP error, which the journal has now
            self._channel.settle(call, sent=True)


def _pattern(prompt: str) -> str:
    start = ".*".join(re.escape(part) for part in prompt[:_LONGEST_PATTERN].split(REMOVED))
    return f"^{start}{'$' if len(prompt) <= _LONGEST_PATTERN else ''}"

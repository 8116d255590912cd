"""Which reply a request gets: from the script, or made up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

from .auto import automatic_reply
from .calls import Reply
from .shapes import Completion, LLMRequest, TurnedDownError, count_tokens

__all__ = ["ReplySource"]


class ReplySource:
    """Gives each request its reply. Without a script, and after it if `automatic`, replies are made up."""

    def __init__(self, script: Sequence[Reply], *, automatic: bool) -> None:
        self._script = script
        self._uses = [0] * len(script)
        self._automatic = automatic

    def reply_to(self, request: LLMRequest) -> Completion:
        """Return what the model says.

        The first entry of the script that fits and is not used up is taken. Raises `TurnedDownError` if that is an HTTP
        error, if there is none, or if nothing can be made up for the request's schema.
        """
        reply = self._scripted(request)
        if reply is None:
            if not self._automatic:
                raise TurnedDownError(self._why_none(request), unexpected=True)
            reply = Reply(text=self._made_up(request))
        if reply.status != HTTPStatus.OK:
            raise TurnedDownError(reply.text, reply.status)
        text = reply.content
        return Completion(
            text=text,
            stop=reply.stop,
            input_tokens=request.tokens if reply.input_tokens is None else reply.input_tokens,
            output_tokens=count_tokens(text) if reply.output_tokens is None else reply.output_tokens,
        )

    def unused(self) -> list[Reply]:
        """Return the entries of the script that have been used less often than they say; one without a limit: never."""
        return [reply for reply, uses in zip(self._script, self._uses, strict=True) if uses < (reply.times or 1)]

    def _scripted(self, request: LLMRequest) -> Reply | None:
        for place, reply in enumerate(self._script):
            if (reply.times is None or self._uses[place] < reply.times) and _fits(reply, request):
                self._uses[place] += 1
                return reply
        return None

    def _made_up(self, request: LLMRequest) -> str:
        try:
            return automatic_reply(request.canonical, request.prompt, request.schema)
        except (ValueError, RecursionError) as error:
            raise TurnedDownError(f"no reply could be made up: {error}. Script one.", unexpected=True) from error

    def _why_none(self, request: LLMRequest) -> str:
        used_up = sum(uses == reply.times for reply, uses in zip(self._script, self._uses, strict=True))
        return (
            f"the script has no reply for this request to {request.model!r} ({used_up} of {len(self._script)} entries "
            f"are used up): {request.prompt[:80]!r}"
        )


def _fits(reply: Reply, request: LLMRequest) -> bool:
    wanted = ((reply.model, request.model), (reply.system, request.system), (reply.prompt, request.prompt))
    return all(pattern is None or re.search(pattern, text) for pattern, text in wanted)

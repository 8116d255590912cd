"""Which reply a request gets: from the script, or made up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .auto import automatic_reply
from .calls import Reply
from .shapes import Completion, LLMRequest, count_tokens

__all__ = ["NoReplyError", "ReplySource"]


class NoReplyError(Exception):
    """The script has no reply for a request."""


class ReplySource:
    """Gives each request its reply. Without a script, and after it if `automatic`, replies are made up."""

    def __init__(self, script: Sequence[Reply], *, automatic: bool) -> None:
        self._script = script
        self._left = [reply.times for reply in script]
        self._automatic = automatic

    def reply_to(self, request: LLMRequest) -> Completion:
        """Return what the model says.

        The first entry of the script that fits and is not used up is taken. Raises `NoReplyError` if there is none, or
        if nothing can be made up for the request's schema.
        """
        reply = self._scripted(request)
        if reply is None:
            if not self._automatic:
                raise NoReplyError(self._why_none(request))
            reply = Reply(text=self._made_up(request))
        text = reply.content
        return Completion(
            text=text,
            stop=reply.stop,
            input_tokens=request.tokens if reply.input_tokens is None else reply.input_tokens,
            output_tokens=count_tokens(text) if reply.output_tokens is None else reply.output_tokens,
        )

    def unused(self) -> list[Reply]:
        """Return the entries of the script that have uses left. One without a limit counts until its first use."""
        return [
            reply
            for reply, left in zip(self._script, self._left, strict=True)
            if (left is None if reply.times is None else left)
        ]

    def _scripted(self, request: LLMRequest) -> Reply | None:
        for place, reply in enumerate(self._script):
            if self._left[place] != 0 and _fits(reply, request):
                left = self._left[place]
                self._left[place] = -1 if left is None or left < 0 else left - 1  # -1: used, and without a limit
                return reply
        return None

    def _made_up(self, request: LLMRequest) -> str:
        try:
            return automatic_reply(request.canonical, request.prompt, request.schema)
        except (ValueError, RecursionError) as error:
            raise NoReplyError(f"no reply could be made up: {error}. Give one in the script.") from error

    def _why_none(self, request: LLMRequest) -> str:
        used_up = sum(left == 0 for left in self._left)
        return (
            f"the script has no reply for this request to {request.model!r} ({used_up} of {len(self._script)} entries "
            f"are used up): {request.prompt[:80]!r}"
        )


def _fits(reply: Reply, request: LLMRequest) -> bool:
    wanted = ((reply.model, request.model), (reply.system, request.system), (reply.prompt, request.prompt))
    return all(pattern is None or re.search(pattern, text) for pattern, text in wanted)

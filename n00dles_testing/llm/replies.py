"""Which reply a request gets: from the script, or made up."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from .auto import automatic_reply
from .calls import Reply
from .faults import Fault, MalformedJSON, Refusal, TruncatedJSON, WrongSchema
from .misfits import misfit
from .shapes import Completion, LLMRequest, TurnedDownError, count_tokens, json_object
from .unscripted import in_words, why_unscripted
from .wrong_answers import wrong_answer

__all__ = ["ReplySource"]


class ReplySource:
    """Gives each request its reply. Without a script, and after it if `automatic`, replies are made up.

    `name` is what a test calls the object whose methods write the script, for messages; none for a list of replies.
    """

    def __init__(self, script: Sequence[Reply], *, automatic: bool, name: str = "") -> None:
        self.name = name
        self._script = list(script)
        self._uses = [0] * len(script)
        self.automatic = automatic
        self._unfit: dict[str, str] = {}

    def add(self, reply: Reply) -> None:
        """Append an entry to the script."""
        self._script.append(reply)
        self._uses.append(0)

    def reply_to(self, request: LLMRequest) -> Completion:
        """Return what the model says, with the fault that is to befall it.

        The first entry of the script that fits and is not used up is taken. Raises `TurnedDownError` if that is an HTTP
        error without a fault, if there is none, or if nothing can be made up for the request's schema.
        """
        reply = self._scripted(request)
        if reply is None:
            if not self.automatic:
                raise TurnedDownError(self._why_none(request), unexpected=True)
            reply = Reply(text=self._made_up(request))
        if reply.status != HTTPStatus.OK:
            raise TurnedDownError(reply.text, reply.status)
        _check_tools(reply, request)
        if reply.fault is not None:
            reply = self._spoiled(reply, reply.fault, request)
        text = _content(reply, request)
        self._remember(reply, text, request)
        said = " ".join([text, *(str(call.arguments) for call in reply.tool_calls)])
        is_paid = reply.fault is None or reply.fault.paid
        return Completion(
            text=text if is_paid else "",
            stop=reply.stop,
            input_tokens=_tokens(reply.input_tokens, request.tokens, is_paid),
            output_tokens=_tokens(reply.output_tokens, count_tokens(said), is_paid),
            tool_calls=tuple(reply.tool_calls) if is_paid else (),
            fault=reply.fault,
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

    def _spoiled(self, reply: Reply, fault: Fault, request: LLMRequest) -> Reply:
        """Return the reply as the fault has it say; without words of its own, those that would have been made up."""
        match fault:
            case Refusal():
                return replace(reply, text=fault.text, data=None, tool_calls=(), stop="refusal")
            case WrongSchema():
                return replace(reply, text="", data=wrong_answer(request.schema), tool_calls=())
        if fault.paid and not reply.content and not reply.tool_calls:
            reply = replace(reply, text=self._made_up(request))
        match fault:
            case TruncatedJSON(of="answer"):
                text = reply.content.rstrip()
                return replace(reply, text=text[: max(1, len(text) // 2)], data=None)
            case MalformedJSON(of="answer"):
                return replace(reply, text=f"Sure, here it is:\n```json\n{reply.content}\n```", data=None)
        return reply

    def _remember(self, reply: Reply, text: str, request: LLMRequest) -> None:
        """Keep in mind whether a reply did not fit: if the caller then asks again, that is why."""
        who = request.node or request.model
        wrong = ""
        if request.schema is not None and reply.fault is None and reply.stop == "end" and not reply.tool_calls:
            wrong = misfit(text, request.schema)
        title = (request.schema or {}).get("title") or "the schema"
        self._unfit[who] = f"{in_words(reply)}, did not fit {title}: {wrong}" if wrong else ""

    def _why_none(self, request: LLMRequest) -> str:
        if self.name:
            script = list(zip(self._script, self._uses, strict=True))
            unfit = self._unfit.get(request.node or request.model, "")
            who = {"node": request.node, "agent": request.agent, "model": request.model, "prompt": request.prompt}
            return why_unscripted(self.name, script, **who, schema=request.schema, unfit=unfit)
        used_up = sum(uses == reply.times for reply, uses in zip(self._script, self._uses, strict=True))
        node = f" from the node {request.node!r}" if request.node else ""
        return (
            f"the script has no reply for this request to {request.model!r}{node} ({used_up} of {len(self._script)} "
            f"entries are used up): {request.prompt[:80]!r}"
        )


def _fits(reply: Reply, request: LLMRequest) -> bool:
    if reply.node is not None and reply.node not in (request.node, request.agent or request.node):
        return False
    wanted = ((reply.model, request.model), (reply.system, request.system), (reply.prompt, request.prompt))
    return all(pattern is None or re.search(pattern, text) for pattern, text in wanted)


def _content(reply: Reply, request: LLMRequest) -> str:
    """Return what the model says; a bare value in the object in which n00dles' providers ask for it.

    A node that returns one of several words, a number or a list asks for `{"value": …}`: an API takes only schemas of
    objects. Nobody wants to script that.
    """
    properties = (request.schema or {}).get("properties")
    if reply.fault is not None or reply.stop != "end" or not isinstance(properties, dict) or [*properties] != ["value"]:
        return reply.content
    value = reply.text if reply.data is None else reply.data
    is_text = reply.data is None
    if isinstance(value, dict) or (is_text and (json_object(reply.text) or not _is_word(properties["value"]))):
        return reply.content
    return json.dumps({"value": value}, ensure_ascii=False)


def _is_word(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return schema.get("type") == "string" or all(isinstance(each, str) for each in schema.get("enum", [None]))


def _check_tools(reply: Reply, request: LLMRequest) -> None:
    unknown = [call.name for call in reply.tool_calls if call.name not in request.tools]
    if unknown:
        offered = ", ".join(request.tools) or "none"
        raise TurnedDownError(
            f"the script calls the tool {unknown[0]!r}, and the request to {request.model!r} offers {offered}",
            unexpected=True,
        )


def _tokens(given: int | None, counted: int, is_paid: bool) -> int:
    if not is_paid:
        return 0
    return counted if given is None else given

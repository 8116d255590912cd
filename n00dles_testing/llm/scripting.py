"""A script that a test writes line by line, and what came of it: what `mock_llm` and `llm_server` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .arguments import check_count, check_fault, check_said, check_tool_calls, name_of
from .calls import LLMCall, Reply, ToolCall
from .faults import Fault
from .script_file import load_script
from .unscripted import in_words

__all__ = ["Scripted"]

_NOTHING: Any = object()
_SHOWN = 3


class Scripted(ABC):
    """A script that grows, and the calls that were made.

    Entries are tried in the order in which they were written; the first that fits, and is not used up, answers. `node`
    is the name of a node (or the agent itself), or None for any caller, also one that is no node at all. A fallback
    that is called for a node is answered under its own name, too.
    """

    name = "script"
    no_calls = "nothing"
    _told = 0

    def reply(
        self,
        node: Any,
        what: Any = _NOTHING,
        *,
        model: str | None = None,
        prompt: str | None = None,
        system: str | None = None,
        times: int | None = 1,
        tool_calls: Sequence[ToolCall] = (),
        fault: Fault | None = None,
        stop: str = "end",
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        """Add a reply.

            mock_llm.reply("researcher", "Three facts.")
            mock_llm.reply("writer", Article(title="…"))            # as JSON, or as the input of the tool asked for
            mock_llm.reply(None, "Hello", prompt="(?i)greet", times=None)

        `what` is a text, an instance of a Pydantic model or a dataclass, or what else JSON can hold; it may be left out
        beside `tool_calls`. `model`, `prompt` and `system` are regular expressions, searched in the request. It answers
        `times` times; None: as often as it fits, and at least once. `fault` befalls this very answer, such as
        `SlowDrip()`. `stop` is as in `Reply`; tokens are counted from the texts unless given.
        """
        if what is _NOTHING and not tool_calls:
            raise TypeError(
                f"{self.name}.reply({node!r}) says nothing; write {self.name}.reply(node, what), with None as the node "
                "for any caller"
            )
        call = f"{self.name}.reply"
        who = name_of(node, call)
        check_said(what, call)
        check_count(times, call)
        check_tool_calls(tool_calls, call)
        if fault is not None:
            check_fault(fault, call)
        self._add(
            Reply(
                node=who,
                model=model,
                prompt=prompt,
                system=system,
                times=times,
                tool_calls=tool_calls,
                fault=fault,
                stop=stop,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                **_said(what),
            )
        )

    def fail(
        self,
        node: Any,
        fault: Fault,
        then: Any = _NOTHING,
        *,
        model: str | None = None,
        prompt: str | None = None,
        system: str | None = None,
        times: int = 1,
    ) -> None:
        """Have a call go wrong, `times` times; with `then`, the next one gets that reply.

        mock_llm.fail("writer", RateLimited(retry_after=2), then="ok")
        """
        call = f"{self.name}.fail"
        who = name_of(node, call)
        check_fault(fault, call)
        check_count(times, call, none=False)
        if then is not _NOTHING:
            check_said(then, call)
        self._add(Reply(node=who, fault=fault, times=times, model=model, prompt=prompt, system=system))
        if then is not _NOTHING:
            self.reply(node, then, model=model, prompt=prompt, system=system)

    def replay(self, file: str | Path) -> None:
        """Add the replies of a script file, as `--n00dles-record` writes it; see `n00dles_testing.llm.script_file`.

        Raises `ScriptFileError` for what is no script.
        """
        for reply in load_script(file):
            self._add(reply)

    @property
    @abstractmethod
    def calls(self) -> list[LLMCall]:
        """Every call so far, in order, also those that got an error (`paid` is then false)."""

    @property
    @abstractmethod
    def unused(self) -> list[Reply]:
        """The entries that have been used less often than they say."""

    def problems(self) -> list[str]:
        """Say what was not as scripted, a text each: calls without a reply, and replies that nobody asked for."""
        said = self.unscripted()
        if unused := self.unused:
            said.append(self._about_unused(unused))
        return said

    def unscripted(self) -> list[str]:
        """Say which calls had no reply, of those that have not been told of before."""
        notes = [call.note for call in self.calls if call.unexpected]
        fresh, self._told = list(dict.fromkeys(notes[self._told :])), len(notes)
        if (more := len(fresh) - _SHOWN) > 0:
            fresh[_SHOWN:] = [f"and {more} more calls without a reply; {self.name}.calls has them all"]
        return fresh

    def _about_unused(self, unused: Sequence[Reply]) -> str:
        listed = "".join(f"\n  {in_words(reply)}" for reply in unused)
        called = ", ".join(filter(None, dict.fromkeys(map(_caller, self.calls)))) or self.no_calls
        return f"{self.name}: nobody asked for {len(unused)} of its replies:{listed}\n  called were: {called}"

    @abstractmethod
    def _add(self, reply: Reply) -> None: ...


def _caller(call: LLMCall) -> str:
    """Return who called, and why that was refused, if it was not for the script to answer."""
    who = call.node or call.model
    return f"{who or 'an unknown model'} (refused: {call.why_turned_down})" if call.why_turned_down else who


def _said(what: Any) -> dict[str, Any]:
    if what is _NOTHING:
        return {}
    return {"text": what} if isinstance(what, str) else {"data": what}

"""What to tell a person whose script has no reply for a call: who asked, what is left, and the line that is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .calls import Reply

__all__ = ["in_words", "shortened", "why_unscripted"]

_LONGEST = 120
_LONGEST_REPLY = 40
_LISTED = 5


def why_unscripted(
    name: str,
    script: Sequence[tuple[Reply, int]],
    *,
    node: str,
    agent: str,
    model: str,
    prompt: str,
    schema: dict[str, Any] | None = None,
    unfit: str = "",
) -> str:
    """Return the message about a call that no entry fits. `script` has each entry with how often it was used.

    `name` is what the test calls the mock, "mock_llm" or "llm_server". `unfit` is why the reply before did not fit.
    """
    fallback = f", whose fallback {agent!r} is called" if agent else ""
    who = f"node {node!r}{fallback} ({model})" if node else f"a call of {model!r} that no node makes"
    left = [reply for reply, uses in script if reply.times is None or uses < reply.times]
    spent = [reply for reply, uses in script if node and reply.node in (node, agent or node) and uses == reply.times]
    lines = [f"{name} has no reply for {who}, which was asked: {shortened(prompt)!r}"]
    if spent and not unfit:
        used = sum(reply.times or 0 for reply in spent)
        lines.append(f"  used up: what the script had for {node!r}, which has been called {used} times before")
        if name == "llm_server":
            lines.append("  a run that is killed asks again when it is resumed (crash_safety): give replies times=None")
    if unfit:
        lines.append(f"  the reply before, {unfit}; so it was asked for again. Mend that reply")
    if left:
        more = f", and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        lines.append(f"  left, and for other calls: {', '.join(in_words(reply) for reply in left[:_LISTED])}{more}")
    elif not unfit:
        lines.append(f"  left: nothing, {'all of it is used up' if script else 'the script is empty'}")
    if not unfit:
        lines.append(f"  to add: {_line(name, agent or node, model, schema)}")
    return "\n".join(lines)


def in_words(reply: Reply) -> str:
    """Return an entry as the call that adds it."""
    said = [repr(reply.node)]
    if reply.fault is not None:
        said.append(repr(reply.fault))
    elif reply.data is not None:
        said.append(shortened(repr(reply.data), _LONGEST_REPLY))
    elif reply.text or not reply.tool_calls:
        said.append(repr(shortened(reply.text, _LONGEST_REPLY)))
    if reply.tool_calls:
        said.append(f"tool_calls={list(reply.tool_calls)!r}")
    said += [
        f"{name}={value!r}"
        for name, value in (("model", reply.model), ("prompt", reply.prompt), ("system", reply.system))
        if value is not None
    ]
    if reply.times != 1:
        said.append(f"times={reply.times}")
    return f"{'reply' if reply.fault is None else 'fail'}({', '.join(said)})"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text in one line, its end left out if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _line(name: str, node: str, model: str, schema: dict[str, Any] | None) -> str:
    title = (schema or {}).get("title")
    is_bare = schema is None or [*schema.get("properties", ())] == ["value"]
    what = '"…"' if is_bare else f"{title}(…)" if isinstance(title, str) and title.isidentifier() else "{…}"
    return f'{name}.reply("{node}", {what})' if node else f'{name}.reply(None, {what}, model="{model}")'

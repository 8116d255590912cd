"""`n00dles-testing llm-server`: fake models for any program on this machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence

import click

from .exits import FAILED, PASSED, UnusableError
from .llm import LLMCall, LLMServer, Reply
from .llm.script_file import ScriptFileError, load_script
from .llm.unscripted import in_words

__all__ = ["run_llm_server"]


def run_llm_server(command: Sequence[str], script_file: str | None = None, port: int = 0) -> int:
    """Serve until interrupted, or for as long as `command` runs; return the exit code.

    That is the command's own if it is not 0; else 1 if the script of `script_file` was not followed.
    """
    script = None if script_file is None else _loaded(script_file)
    server = LLMServer(script, port=port)
    try:
        server.start()
    except RuntimeError as error:
        raise UnusableError(str(error)) from None
    try:
        code = _run(command, server) if command else _serve(server)
        calls, unused = server.calls(), server.unused()
    finally:
        server.stop()
    _tell(calls, unused, with_names=script is not None)
    was_followed = not unused and not any(call.unexpected for call in calls)
    return code or (PASSED if was_followed or script is None else FAILED)


def _loaded(script_file: str) -> list[Reply]:
    try:
        return load_script(script_file)
    except ScriptFileError as error:
        raise UnusableError(str(error)) from None


def _tell(calls: Sequence[LLMCall], unused: Sequence[Reply], *, with_names: bool) -> None:
    paid = [call for call in calls if call.paid]
    tokens = sum(call.input_tokens + call.output_tokens for call in paid)
    click.echo(f"{len(paid)} call{'' if len(paid) == 1 else 's'}, {tokens} tokens would have been paid for", err=True)
    if with_names:
        for call in calls:
            click.echo(f"  {_in_a_line(call)}", err=True)
    for call in calls:
        if call.unexpected:
            click.echo(f"call {call.n} was not scripted: {call.note}", err=True)
        elif call.why_turned_down:
            click.echo(f"call {call.n} was refused: {call.why_turned_down}", err=True)
    for reply in unused:
        click.echo(f"not used: {in_words(reply)}", err=True)


def _in_a_line(call: LLMCall) -> str:
    who = f"{call.node} ({call.model})" if call.node else call.model
    cost = f"{call.input_tokens}+{call.output_tokens} tokens" if call.paid else "not paid"
    ended = call.fault or ("client killed" if call.killed else "" if call.sent or not call.paid else "reply not sent")
    return "  ".join(filter(None, [str(call.n), who, cost, ended]))


def _serve(server: LLMServer) -> int:
    stopped = threading.Event()
    before = [signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        for name, value in server.environment.items():
            click.echo(f"export {name}={shlex.quote(value)}")
        click.echo(f"serving fake models on {server.url}; Ctrl-C ends it", err=True)
        stopped.wait()
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    return PASSED


def _run(command: Sequence[str], server: LLMServer) -> int:
    try:
        return subprocess.run(command, env={**os.environ, **server.environment}, check=False).returncode
    except OSError as error:
        raise UnusableError(f"{command[0]} cannot be run: {error.strerror}") from error

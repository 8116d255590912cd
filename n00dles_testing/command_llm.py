"""`n00dles-testing llm-server`: fake models for any program on this machine."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence

import click

from .exits import PASSED, UnusableError
from .llm import LLMServer

__all__ = ["run_llm_server"]


def run_llm_server(command: Sequence[str]) -> int:
    """Serve until interrupted, or for as long as `command` runs; return the exit code."""
    with LLMServer() as server:
        code = _run(command, server) if command else _serve(server)
        calls = server.journal()
    tokens = sum(call.input_tokens + call.output_tokens for call in calls)
    click.echo(f"{len(calls)} calls, {tokens} tokens would have been paid for", err=True)
    return code


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

"""`n00dles-testing llm-server`: what can be typed."""

from __future__ import annotations

import click

__all__ = ["llm_server"]


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="""\b
Examples:
  n00dles-testing llm-server                        print what to export, serve until Ctrl-C
  n00dles-testing llm-server -- python app.py       run a program against it, say what it would have paid
  n00dles-testing llm-server --script calls.json -- node app.js
""",
)
@click.option("--script", type=click.Path(), metavar="FILE", help="A JSON list of replies; without, they are made up.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def llm_server(command: tuple[str, ...], script: str | None, port: int) -> None:
    """Serve fake models on this machine, over the wire formats of the official SDKs.

    Without COMMAND it prints the environment variables by which clients find it, and serves until Ctrl-C. With COMMAND
    it runs that with the variables set, and ends with its exit code. A script is strict: it ends with 1 if a request
    had no reply, or a reply was not used.
    """
    from ..command_llm import run_llm_server

    raise SystemExit(run_llm_server(command, script, port))

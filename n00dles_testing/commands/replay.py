"""`n00dles-testing replay`: what can be typed."""

from __future__ import annotations

import click

from ..exits import EXIT_CODES
from .shared_options import llm_option

__all__ = ["replay"]


@click.command(
    epilog=f"""\b
Examples:
  n00dles-testing replay eNoljUEKgzAQRa8i2Q5Iqu3GQ5RCF91YKWmc...    from explore, or a test of a pipeline
  n00dles-testing replay s1eNqVj8EKwkAMRP8l51LqSdib-BmlSOymsromZ... from check, clause S17

The token holds the target, the inputs, the store, the mode and the crash points, or a store and a sequence of
operations, as data; reading it runs nothing. The target is then imported as by explore or check, from the current
folder: do not replay the token of somebody whom you would not let choose which of your modules to import.

{EXIT_CODES}"""
)
@click.argument("token")
@llm_option
def replay(token: str, llm: str) -> None:
    """Live one scenario again, and tell its story.

    TOKEN is what a failure prints after `replay`. It works in every checkout of the same code, in the folder in which
    it was printed.
    """
    if token.startswith("c1"):  # of a campaign, see `campaign.tokens`
        from ..show_campaign import run_campaign_replay

        raise SystemExit(run_campaign_replay(token))
    if token.startswith("s1"):  # of a state machine, see `conformance.machine.tokens`
        from ..show_machine import run_machine_replay

        raise SystemExit(run_machine_replay(token))
    from ..command_explore import run_replay

    raise SystemExit(run_replay(token, llm == "auto"))

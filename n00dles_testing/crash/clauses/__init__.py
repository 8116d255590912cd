"""The contract of an executor, E01 to E18: one file a clause, with its check, its occasions and its documentation.

A check looks at what truly happened (the ledger) and at what the store held between the lives, and compares with an
undisturbed run of the same pipeline. It reports nothing that a correct executor could do, however different from that
of n00dles it is built. `occasions` counts how often a scenario could have broken the clause: none is no pass.
"""

from __future__ import annotations

from ..case import Clause
from . import (
    e01_durable_before_dispatch,
    e02_no_completed_node_again,
    e03_only_in_flight_again,
    e04_same_output,
    e05_same_calls,
    e06_fan_out,
    e07_branch,
    e08_names,
    e09_identity,
    e10_failing_node,
    e11_attempts,
    e12_store_fault,
    e13_cancel,
    e14_failing_sibling,
    e15_unstorable,
    e16_two_executors,
    e17_finished_stays_finished,
    e18_chains,
)

__all__ = ["CLAUSES", "JUDGED", "related"]

CLAUSES: tuple[Clause, ...] = tuple(
    module.CLAUSE
    for module in (
        e01_durable_before_dispatch,
        e02_no_completed_node_again,
        e03_only_in_flight_again,
        e04_same_output,
        e05_same_calls,
        e06_fan_out,
        e07_branch,
        e08_names,
        e09_identity,
        e10_failing_node,
        e11_attempts,
        e12_store_fault,
        e13_cancel,
        e14_failing_sibling,
        e15_unstorable,
        e16_two_executors,
        e17_finished_stays_finished,
        e18_chains,
    )
)
"""All clauses. Those without a `check` cannot be told from one scenario; the campaign tries them in its own way."""

JUDGED: tuple[Clause, ...] = tuple(clause for clause in CLAUSES if clause.check is not None)
"""The clauses that any scenario can be held against."""


def related(one: str, other: str) -> bool:
    """Whether two clauses are the same, or one is a special case of the other: a fault may then break both."""
    known = {clause.id: clause for clause in CLAUSES}
    return one == other or one in known[other].sharpens or other in known[one].sharpens

"""E06: in a fan-out only unfinished members run again, and the join runs once, with all.

However many members may run at a time, and in whatever order they finish: a resume calls those that had not finished,
no more of them at once than `max_concurrency` allows, and what follows the fan-out is called once, when every member
has an output. The order in which members finish may differ from life to life, and nothing may depend on it.

Seen in: strands-agents/harness-sdk #3633 (with a sibling waiting for its turn, the join runs twice, the first time with
missing inputs); microsoft/agent-framework #2075 (one member fails, and all run again); dbos-inc/dbos-transact-py #688
(members are told apart by the order in which they finish).

Fix: the author of an executor gives each member a record of its own, by name, and derives from these whether the
fan-out is complete; a member that waits for its turn is not complete. A resume takes its turns like a first run.

It is not a fault of your pipeline: report it to the executor's authors with the token that its replay names, and check
the store with `n00dles-testing check`. A home-made loop is its own executor.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..history import Call, Life
from ..shape import Group
from .documentation import documented
from .endings import resumed_after_failure, until_finished
from .wording import named

__all__ = ["CLAUSE"]


def members_and_join(case: Case) -> Iterator[tuple[str, str]]:
    """Yield members called again, too many at once, and joins that came too early or too often."""
    for group in case.baseline.shape.groups:
        for life in case.history.working:
            yield from _too_many(group, life)
            yield from _joined_early(case, group, life)
        for life in until_finished(case.history)[1:]:
            if life.number not in resumed_after_failure(case.history):
                yield from _again(case, group, life)


def fan_outs_at_work(case: Case) -> int:
    """Count lives in which a member of a fan-out was called."""
    members = {node for group in case.baseline.shape.groups for nodes in group.members.values() for node in nodes}
    return sum(any(call.node in members for call in life.calls) for life in case.history.working)


def _too_many(group: Group, life: Life) -> Iterator[tuple[str, str]]:
    if group.max_concurrency is None or len(group.members) <= group.max_concurrency:
        return
    calls = [(member, call) for call in life.calls if (member := group.member_of(call.node)) is not None]
    for _, newest in calls:
        running = {member for member, call in calls if _is_running(life, call, newest)}
        if len(running) > group.max_concurrency:
            yield (
                f"{named(sorted(running))} ran at the same time in life {life.number}, where max_concurrency="
                f"{group.max_concurrency} allows {group.max_concurrency} at once",
                "whoever limits how many run at once does so for a reason (a quota, memory), and after a crash as well",
            )
            return


def _is_running(life: Life, call: Call, newest: Call) -> bool:
    """Whether a call was going on as `newest` began, as far as the executor could know: one given up may linger."""
    if call.began > newest.began or (call.ended is not None and call.ended < newest.began):
        return False
    return call is newest or not any(
        said.event in ("node_retried", "node_failed")
        and said.fields["node"] == call.node
        and call.began < said.position < newest.began
        for said in life.events
    )


def _joined_early(case: Case, group: Group, life: Life) -> Iterator[tuple[str, str]]:
    """What follows a fan-out must not start while a member has no output: none from before, and none in this life."""
    members = {node for nodes in group.members.values() for node in nodes}
    called = members & {call.node for call in case.history.calls}
    known = set(case.history.completed_before(life))
    for node, position in life.starts:
        if node in members or not members.issubset(case.baseline.needs.get(node, ())):
            continue
        returned = {c.node for earlier in case.history.working for c in earlier.calls if _is_done(c, position)}
        missing = sorted(called - known - returned)
        if missing:
            yield (
                f"`{node}` was started in life {life.number} though {named(missing)} of {group.name} had no output yet",
                "what follows a fan-out waits for every member, also for those that wait for their turn",
            )
            return


def _is_done(call: Call, position: int) -> bool:
    return call.succeeded and (call.ended or 0) < position


def _again(case: Case, group: Group, life: Life) -> Iterator[tuple[str, str]]:
    completed = case.history.completed_before(life)
    again = [node for node in dict.fromkeys(c.node for c in life.calls) if group.member_of(node) and node in completed]
    if again:
        yield (
            f"{named(again)} of {group.name} had finished, and was called again in life {life.number}",
            "only members that have not finished run again",
        )


CLAUSE = documented(
    __doc__,
    check=members_and_join,
    occasions=fan_outs_at_work,
    without="no member of a fan-out was called",
    undisturbed=True,
    sharpens=("E01", "E02", "E03", "E04", "E05"),
)

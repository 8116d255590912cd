"""The states that are tried, against all that are legal by an independent and naive check."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.operations import Marked, Sync, SyncAll, Write
from n00dles_testing.powerloss.states import states
from tests.n00dles_testing.powerloss.legality import Files, legal
from tests.n00dles_testing.powerloss.logs import PAGE, Log

POWER_LOSSES = ["ext4", "journaled", "strict"]
COMMANDS = (
    "create",
    "write",
    "append",
    "rename",
    "unlink",
    "truncate",
    "fsync",
    "fdatasync",
    "failed",
    "written and synced",
    "part",
    "folder",
    "sync",
)

commands = st.lists(
    st.tuples(
        st.sampled_from(COMMANDS), st.sampled_from("abc"), st.sampled_from("abc"), st.integers(0, 2), st.booleans()
    ),
    max_size=8,
)


def log_of(script: list[tuple[str, str, str, int, bool]], *, in_folder: bool) -> Log:
    """Do what of a script can be done; its booleans say which operations overlap with the one before."""
    log = Log({"a": b"old", "b": b"-" * (PAGE + 10)})
    prefix = ""
    if in_folder:
        log.mkdir("d")
        prefix = "d/"
    for number, (command, name, other, size, overlaps) in enumerate(script):
        done = len(log.operations)
        path, to = (named if named in "ab" else prefix + named for named in (name, other))
        if command == "folder":
            log.fsync(prefix[:-1] if size else "", failed=size == 2 and overlaps)
        elif path in log.inodes:
            _do(log, command, path, to, size=size, data=bytes([65 + number]) * [3, 700, 200][size])
        elif command in ("create", "write", "append"):
            log.create(path)
        if overlaps and len(log.operations) == done + 1 and done and not isinstance(log.operations[-2], Marked):
            log.overlap()
        elif size == 1:
            log.acknowledge(str(number))
    return log


def _do(log: Log, command: str, path: str, to: str, *, size: int, data: bytes) -> None:
    match command:
        case "write":
            log.write(path, data, offset=[0, 2, PAGE - 100][size])
        case "append":
            log.append(path, data)
        case "rename" if to != path:
            log.rename(path, to)
        case "unlink":
            log.unlink(path)
        case "truncate":
            log.truncate(path, [0, 2, PAGE + 2][size])
        case "fsync" | "fdatasync":
            getattr(log, command)(path)
        case "failed":
            log.fsync(path, failed=True)
        case "written and synced":
            log.write_synced(path, data, offset=[0, 2, PAGE - 100][size])
        case "part":
            log.sync_part(path, *[(0, 10), (PAGE, PAGE + 10), (10, PAGE + 1)][size], failed=to > path)
        case "sync":
            log.sync(failed=size == 2)


def units(log: Log) -> int:
    """At most so many things can be lost, with sectors as units."""
    return sum(
        3 + len(operation.data) // 512 if isinstance(operation, Write) else 1
        for operation in log.operations
        if not isinstance(operation, Sync | SyncAll | Marked)
    )


def tried(log: Log, model: str) -> set[tuple[Files, int]]:
    return {
        (frozenset(state.tree.listing().items()), len(state.acknowledged))  # type: ignore[arg-type]
        for state in states(log.recording(), MODELS[model], 100_000)
    }


@pytest.mark.parametrize("model", POWER_LOSSES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(script=commands, in_folder=st.booleans())
@example(script=[("create", "a", "a", 0, False), ("sync", "a", "a", 1, False)], in_folder=True)
def test_each_state_is_legal(model: str, script: list[tuple[str, str, str, int, bool]], in_folder: bool) -> None:
    log = log_of(script, in_folder=in_folder)
    assume(units(log) <= 10)

    found = tried(log, model)

    allowed = legal(log.recording(), model, grain=512)
    for files, acknowledged in found:
        assert (files, acknowledged) in allowed, log.operations


@pytest.mark.parametrize("model", POWER_LOSSES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(script=commands, in_folder=st.booleans())
def test_of_few_units_each_legal_state_is_tried_with_the_most_that_was_acknowledged(
    model: str, script: list[tuple[str, str, str, int, bool]], in_folder: bool
) -> None:
    log = log_of(script, in_folder=in_folder)
    assume(units(log) <= 8)

    found = tried(log, model)

    most: dict[Files, int] = {}
    for files, acknowledged in found:
        most[files] = max(acknowledged, most.get(files, 0))
    for files, acknowledged in legal(log.recording(), model):
        assert most.get(files, -1) >= acknowledged, (dict(files), acknowledged, log.operations)

"""Permissions are metadata: a power loss takes their changes back as it does with names."""

from __future__ import annotations

import pytest

from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.states import states
from tests.n00dles_testing.powerloss.logs import Log

LATER = ("ext4", "journaled", "strict")


def modes(log: Log, model: str, path: str = "a") -> set[int | None]:
    """Return which permissions a file may have then."""
    trees = [state.tree for state in states(log.recording(), MODELS[model])]
    return {tree.mode(inode) for tree in trees if (inode := tree.find(path)) is not None}


def log_of_a_private_file() -> Log:
    log = Log({"a": b"key"})
    log.chmod("a", 0o600)
    log.fsync("a")
    log.acknowledge("1")
    log.chmod("a", 0o400)
    return log


@pytest.mark.parametrize("model", LATER)
def test_a_change_of_permissions_may_be_lost_and_one_that_was_synced_is_not(model: str) -> None:
    log = log_of_a_private_file()

    found = {(state.tree.mode(2), len(state.acknowledged)) for state in states(log.recording(), MODELS[model])}

    assert found == {(None, 0), (0o600, 0), (0o600, 1), (0o400, 1)}


def test_a_kill_loses_no_change_that_was_made() -> None:
    log = log_of_a_private_file()

    last = list(states(log.recording(), MODELS["kill"]))[-1]

    assert last.tree.mode(2) == 0o400


@pytest.mark.parametrize("model", LATER)
def test_a_sync_of_the_data_is_none_of_the_permissions(model: str) -> None:
    log = Log({"a": b"key"})
    log.chmod("a", 0o600)
    log.fdatasync("a")

    assert modes(log, model) == {None, 0o600}


def test_permissions_and_names_reach_the_disk_in_their_order_where_there_is_a_journal() -> None:
    log = Log({"a": b"key"})
    log.chmod("a", 0o600)
    log.rename("a", "b")

    assert [modes(log, model, "b") for model in LATER] == [{0o600}, {0o600}, {None, 0o600}]


def test_a_change_of_permissions_that_is_lost_is_named() -> None:
    log = Log({"a": b"key"})
    log.chmod("a", 0o600)
    log.rename("a", "b")

    found = [state.lost for state in states(log.recording(), MODELS["strict"]) if "b" in state.tree.listing()]

    assert [[each.words for each in lost] for lost in found if lost] == [
        ["the change of the permissions of `a` to 600"]
    ]

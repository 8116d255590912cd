"""What a program's own syncs force, and what it loses when they fail: traced, and then under a model."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.recording import record
from n00dles_testing.powerloss.states import states
from n00dles_testing.tracing import Fail, Injection, Marks, TracedCall, why_not
from tests.n00dles_testing.powerloss.logs import PAGE

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"nothing can be traced here: {why_not()}")

OLD = b"-" * 2 * PAGE
HEAD_ONLY = b"h" * 10 + b"-" * (2 * PAGE - 10)
BODY_ONLY = b"-" * PAGE + b"b" * 10 + b"-" * (PAGE - 10)


def after_a_save(
    folder: Path, save: Callable[[int], object], failing: tuple[str, Injection] | None = None
) -> set[bytes]:
    """Return what a file of two pages may hold under `journaled` once a save is acknowledged; one call may fail."""
    path, marks, fails = folder / "a", Marks(), iter([failing] if failing else [])
    path.write_bytes(OLD)

    def run() -> None:
        file = os.open(path, os.O_RDWR)
        marks.put("INV 1")
        save(file)
        marks.put("ACK 1")

    def on_call(call: TracedCall, _: int) -> Injection | None:
        is_it = failing is not None and call.name == failing[0]
        return next((injection for _, injection in fails), None) if is_it else None

    recording = record(run, folder, marks=marks, on_call=on_call)
    found = [state.tree.listing()["a"] for state in states(recording, MODELS["journaled"]) if state.acknowledged]
    return {data for data in found if isinstance(data, bytes)}


def body_then_head(file: int) -> None:
    os.pwrite(file, b"b" * 10, PAGE)
    os.pwritev(file, [b"h" * 10], 0, os.RWF_DSYNC)


def test_a_write_that_syncs_its_own_bytes_leaves_others_unsynced(tmp_path: Path) -> None:
    found = after_a_save(tmp_path, body_then_head)

    assert HEAD_ONLY in found
    assert BODY_ONLY not in found
    assert OLD not in found


@pytest.mark.parametrize("name", ["fsync", "syncfs"])
def test_a_sync_that_is_tried_until_it_succeeds_has_lost_what_the_first_one_was_for(tmp_path: Path, name: str) -> None:
    library = ctypes.CDLL(None)

    def save(file: int) -> None:
        os.pwrite(file, b"b" * 10, PAGE)
        while getattr(library, name)(file):
            pass

    good = after_a_save(tmp_path, save)
    bad = after_a_save(tmp_path, save, (name, Fail(errno.EIO)))

    assert good == {BODY_ONLY}
    assert bad == {BODY_ONLY, OLD}


@pytest.mark.parametrize(
    ("injection", "head"), [(Fail(errno.EIO, after_writing=True), {b"h", b"-"}), (Fail(errno.ENOSPC), {b"-"})]
)
def test_a_write_that_failed_to_sync_is_lost_and_one_that_failed_to_write_was_never_made(
    tmp_path: Path, injection: Injection, head: set[bytes]
) -> None:
    def save(file: int) -> None:
        with contextlib.suppress(OSError):
            body_then_head(file)
        os.fsync(file)

    found = after_a_save(tmp_path, save, ("pwritev2", injection))

    assert {data[:1] for data in found} == head
    assert {data[PAGE : PAGE + 1] for data in found} == {b"b"}

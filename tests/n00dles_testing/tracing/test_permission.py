"""Where nothing can be traced, a sentence says why, and `trace` raises it."""

from __future__ import annotations

import errno
import os
import platform
import struct
import sys
import tempfile
from pathlib import Path

import pytest

from n00dles_testing.tracing import CannotTraceError, permission, running, trace, why_not
from n00dles_testing.tracing.filters import install
from n00dles_testing.tracing.machines import this_machine

from .tracing_here import needs_tracing

REFUSED = {"ptrace": {"x86_64": 101, "aarch64": 117}, "prctl": {"x86_64": 157, "aarch64": 167}}


def refuse(number: int) -> bytes:
    """A filter like that of a container, under which a call is not permitted."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | errno.EPERM), (0x06, 0, 0, 0x7FFF0000)]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


@needs_tracing
@pytest.mark.parametrize(
    ("refused", "sentence"), [("ptrace", "does not permit ptrace"), ("prctl", "refuses a seccomp filter")]
)
def test_a_container_that_refuses_is_told_and_leaves_no_child(refused: str, sentence: str, tmp_path: Path) -> None:
    machine = this_machine()
    assert machine is not None
    reason = tmp_path / "reason"

    child = os.fork()
    if child == 0:
        install(refuse(REFUSED[refused][machine.name]))
        try:
            trace(lambda: None, str(tmp_path))
        except CannotTraceError as error:
            reason.write_text(f"{error}\n{permission.why_not()}")
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            os._exit(0)
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    raised, answered = reason.read_text().split("\n")
    assert status == 0
    assert sentence in raised
    assert answered == raised


def test_another_machine_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(permission, "_answers", {})

    with pytest.raises(CannotTraceError, match="x86-64 or arm64"):
        trace(lambda: None, str(tmp_path))

    assert "x86_64 or aarch64" in str(why_not())


def test_another_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(permission, "_answers", {})

    assert "64 bit Linux" in str(why_not())


@pytest.mark.parametrize(("scope", "sentence"), [("2", "ptrace_scope is 2"), ("1", "does not permit ptrace")])
def test_a_system_on_which_nobody_may_trace_is_told(scope: str, sentence: str, tmp_path: Path) -> None:
    setting = tmp_path / "ptrace_scope"
    setting.write_text(f"{scope}\n")

    assert sentence in running.why_refused(os.getpid(), PermissionError(errno.EPERM, "no"), scope=str(setting))


def test_a_full_folder_for_temporary_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    monkeypatch.setattr(permission, "_answers", {})

    reason = why_not()

    assert "No space left on device" in str(reason)


def test_it_is_tried_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = why_not()
    monkeypatch.setattr(permission, "trace", None)

    assert why_not() == first

"""Registers are read and changed as each machine has them; the kernel is played by the test."""

from __future__ import annotations

import ctypes
import struct

import pytest

from n00dles_testing.tracing import ptrace
from n00dles_testing.tracing.machines import ARM64, MACHINES, X86_64, Machine
from n00dles_testing.tracing.ptrace import Registers

GET, SET = 0x4204, 0x4205
GENERAL, ARM_SYSTEM_CALL = 1, 0x404

on_each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


class Kernel:
    """A stopped thread: its registers, and the number of the call it is about to make, where that is kept apart."""

    def __init__(self, machine: Machine) -> None:
        self.words = list(range(100, 100 + machine.words))
        self.call: int | None = None

    def request(self, request: int, thread: int, kind: int, vector: int) -> None:
        """Do what ptrace does with a set of registers."""
        address, length = struct.unpack("<QQ", ctypes.string_at(vector, 16))
        if request == GET:
            ctypes.memmove(address, struct.pack(f"<{len(self.words)}Q", *self.words), length)
        elif kind == GENERAL:
            self.words = list(struct.unpack(f"<{length // 8}Q", ctypes.string_at(address, length)))
        else:
            assert (kind, length) == (ARM_SYSTEM_CALL, 4)
            (self.call,) = struct.unpack("<i", ctypes.string_at(address, 4))


def stopped(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> tuple[Kernel, Registers]:
    kernel = Kernel(machine)
    monkeypatch.setattr(ptrace, "_request", kernel.request)
    return kernel, Registers(machine)


def changes(kernel: Kernel, before: list[int]) -> dict[int, int]:
    return {place: now for place, (now, then) in enumerate(zip(kernel.words, before, strict=True)) if now != then}


def test_a_call_is_skipped_on_x86_by_its_register(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, registers = stopped(X86_64, monkeypatch)
    before = kernel.words

    registers.skip_call(1, registers.read(1), -28)

    orig_rax, rax = 15, 10
    assert changes(kernel, before) == {orig_rax: 2**64 - 1, rax: 2**64 - 28}
    assert kernel.call is None


def test_a_call_is_skipped_on_arm_by_a_set_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, registers = stopped(ARM64, monkeypatch)
    before = kernel.words

    registers.skip_call(1, registers.read(1), -28)

    assert changes(kernel, before) == {0: 2**64 - 28}
    assert kernel.call == -1


@on_each_machine
def test_a_call_is_changed_and_its_arguments_are_given_back(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, registers = stopped(machine, monkeypatch)
    before = registers.read(1)

    registers.change_call(1, before, {1: 7, 2: 8}, machine.numbers["write"])
    changed = changes(kernel, list(before))
    kernel.words[machine.result] = 2**64 - 5
    result = registers.result(1)
    registers.restore(1, before, -7)

    assert {machine.arguments[1]: 7, machine.arguments[2]: 8}.items() <= changed.items()
    assert (kernel.call or changed.get(machine.number)) == machine.numbers["write"]
    assert result == -5
    assert changes(kernel, list(before)) == {machine.result: 2**64 - 7}


@on_each_machine
def test_the_arguments_alone_can_be_changed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, registers = stopped(machine, monkeypatch)
    before = registers.read(1)

    registers.change_call(1, before, {2: 8})

    assert changes(kernel, list(before)) == {machine.arguments[2]: 8}
    assert kernel.call is None

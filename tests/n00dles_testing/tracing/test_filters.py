"""The filter stops at the calls that matter, on each machine, and at no others; each of them can be read."""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

import pytest

from n00dles_testing.tracing.attribute_calls import ATTRIBUTE_CALLS
from n00dles_testing.tracing.data_calls import DATA_CALLS
from n00dles_testing.tracing.filters import ATOMIC_WRITE, CLONES, FOREIGN, UNTRACED, filter_program
from n00dles_testing.tracing.hidden_calls import HIDDEN_CALLS
from n00dles_testing.tracing.machines import ARM64, CONDITIONAL, MACHINES, X86_64, Machine
from n00dles_testing.tracing.name_calls import NAME_CALLS

ALLOW, STOP = 0x7FFF0000, 0x7FF00000
WITHOUT_A_FOLDER = {"open", "creat", "rename", "renameat", "mkdir", "rmdir", "link", "unlink", "symlink", "mknod"} | {
    "chmod",
    "chown",
    "lchown",
}
OF_NEW_KERNELS = {"fchmodat2", "setxattrat", "removexattrat"}

on_each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def decide(machine: Machine, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the kernel would make of the filter: the few instructions that it has, done by hand."""
    data = struct.pack("<IIQ6Q", number, audit or machine.audit, 0, *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("<HBBI", filter_program(machine)))
    at = loaded = 0
    while True:
        code, if_so, if_not, value = steps[at]
        at += 1
        match code:
            case 0x06:
                return int(value)
            case 0x20:
                (loaded,) = struct.unpack_from("<I", data, value)
            case 0x15:
                at += if_so if loaded == value else if_not
            case 0x35:
                at += if_so if loaded >= value else if_not
            case 0x45:
                at += if_so if loaded & value else if_not
            case _:
                raise AssertionError(f"an instruction that is not expected: {code:#x}")


@on_each_machine
def test_every_call_of_the_table_stops(machine: Machine) -> None:
    plain = {name: decide(machine, number) for name, number in machine.numbers.items() if name not in CONDITIONAL}

    assert plain == dict.fromkeys(plain, STOP)


@on_each_machine
def test_no_other_call_stops(machine: Machine) -> None:
    others = set(range(600)) - set(machine.numbers.values())

    assert {decide(machine, number) for number in others} == {ALLOW}


@on_each_machine
def test_only_mappings_that_are_shared_stop(machine: Machine) -> None:
    def of(*arguments: int) -> int:
        return decide(machine, machine.numbers["mmap"], *arguments)

    assert of(0, 4096, 3, mmap.MAP_SHARED, 3) == STOP
    assert of(0, 4096, 3, mmap.MAP_SHARED | mmap.MAP_PRIVATE, 3) == STOP  # MAP_SHARED_VALIDATE
    assert of(0, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) == ALLOW


@on_each_machine
@pytest.mark.parametrize("name", ["mprotect", "pkey_mprotect"])
def test_only_a_protection_that_allows_writing_stops(name: str, machine: Machine) -> None:
    number = machine.numbers[name]

    assert decide(machine, number, 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE) == STOP
    assert decide(machine, number, 0, 4096, mmap.PROT_READ | mmap.PROT_EXEC) == ALLOW


@on_each_machine
def test_only_a_child_that_must_not_be_traced_stops(machine: Machine) -> None:
    fork, thread, ends = 0x01200000, 0x003D0F00, 17

    assert [decide(machine, machine.numbers["clone"], flags | ends) for flags in (fork, thread)] == [ALLOW] * 2
    assert decide(machine, machine.numbers["clone"], fork | UNTRACED | ends) == STOP


@on_each_machine
def test_only_what_changes_bytes_stops_among_the_controls_of_devices(machine: Machine) -> None:
    number = machine.numbers["ioctl"]

    stopping = [*CLONES.values(), ATOMIC_WRITE]
    assert [decide(machine, number, 3, request) for request in stopping] == [STOP] * 4
    assert decide(machine, number, 3, 0x5413) == ALLOW


@on_each_machine
def test_calls_of_another_machine_stop_as_foreign(machine: Machine) -> None:
    assert decide(machine, 4, audit=0x40000003) == STOP | FOREIGN


def test_calls_of_x32_stop_as_foreign() -> None:
    assert decide(X86_64, 0x40000000 + 1) == STOP | FOREIGN
    assert decide(ARM64, 0x40000000 + 1) == ALLOW


@on_each_machine
def test_each_call_of_the_table_can_be_read(machine: Machine) -> None:
    readers = {**DATA_CALLS, **NAME_CALLS, **ATTRIBUTE_CALLS, **HIDDEN_CALLS}

    assert set(machine.numbers) <= set(readers)
    assert len(machine.names) == len(machine.numbers)


def test_both_machines_have_the_same_calls_but_for_the_old_ones() -> None:
    assert set(X86_64.numbers) == {*DATA_CALLS, *NAME_CALLS, *ATTRIBUTE_CALLS, *HIDDEN_CALLS}
    assert set(X86_64.numbers) - set(ARM64.numbers) == WITHOUT_A_FOLDER - {"renameat"}
    assert set(ARM64.numbers) <= set(X86_64.numbers)


@pytest.mark.parametrize(
    ("machine", "header"),
    [(X86_64, "x86_64-linux-gnu/asm/unistd_64.h"), (ARM64, "asm-generic/unistd.h")],
    ids=lambda value: value.name if isinstance(value, Machine) else "",
)
def test_the_numbers_are_those_of_the_header_of_the_kernel(machine: Machine, header: str) -> None:
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip(f"the headers of the kernel are not installed ({path})")
    text = path.read_text()
    defined = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}

    assert set(machine.numbers) - set(defined) <= OF_NEW_KERNELS
    assert {name: defined.get(name, number) for name, number in machine.numbers.items()} == dict(machine.numbers)

"""The ledger: what was written before a kill is there after it, and a torn line harms nobody."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from n00dles_testing.crash.ledger import LedgerWriter, read_ledger


def test_entries_of_several_lives_come_back_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    first, second = LedgerWriter(path, 1), LedgerWriter(path, 2)

    first.write("call_start", node="a", arguments={"life": 7})
    second.write("call_start", node="b")
    first.write("call_end", node="a")

    entries = read_ledger(path)
    assert [(entry.kind, entry.life, entry["node"]) for entry in entries] == [
        ("call_start", 1, "a"),
        ("call_start", 2, "b"),
        ("call_end", 1, "a"),
    ]
    assert entries[0]["arguments"] == {"life": 7}
    first.close()
    second.close()


def test_what_was_written_before_a_sigkill_is_there_after_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"

    pid = os.fork()
    if pid == 0:
        LedgerWriter(path, 1).write("at_point", point="after:a")
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)

    (entry,) = read_ledger(path)
    assert (entry.kind, entry.pid, entry["point"]) == ("at_point", pid, "after:a")


def test_a_torn_last_line_is_dropped_and_the_next_life_starts_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    writer = LedgerWriter(path, 1)
    writer.write("call_start", node="a")
    writer.close()
    with path.open("ab") as file:
        file.write(b'{"kind":"call_end","life":1,"pi')

    writer = LedgerWriter(path, 2)
    writer.write("life_start", again=False)
    writer.close()

    assert [(entry.kind, entry.life) for entry in read_ledger(path)] == [("call_start", 1), ("life_start", 2)]


def test_a_missing_ledger_is_an_empty_one(tmp_path: Path) -> None:
    assert read_ledger(tmp_path / "nothing") == []


def test_the_dead_write_nothing(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path / "ledger", 1)
    writer.write("call_start", node="a")

    writer.stop()
    writer.write("call_end", node="a")
    writer.close()
    writer.write("call_end", node="a")
    writer.close()

    assert [entry.kind for entry in read_ledger(tmp_path / "ledger")] == ["call_start"]

"""What processes of the harness talk over, and how they are started."""

from __future__ import annotations

import fcntl
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.channel import Channel
from n00dles_testing.interpreters import start_interpreter

BEYOND_SELECT = 1100


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    """Return two ends that talk to each other, with descriptors beyond those that select() can take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * BEYOND_SELECT)), hard))
    one_reads, other_writes = map(_moved_up, os.pipe())
    other_reads, one_writes = map(_moved_up, os.pipe())
    one, other = Channel(one_reads, one_writes), Channel(other_reads, other_writes)
    yield one, other
    one.close()
    other.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _moved_up(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD, BEYOND_SELECT)
    os.close(descriptor)
    return moved


def test_messages_arrive_one_by_one_however_high_the_descriptors_are(pair: tuple[Channel, Channel]) -> None:
    one, other = pair

    one.send({"n": 1})
    one.send({"text": "two\nlines"})

    assert one.fileno() > 1023
    assert other.receive(5) == {"n": 1}
    assert other.receive(0) == {"text": "two\nlines"}
    with pytest.raises(TimeoutError):
        other.receive(0)


def test_an_end_that_is_gone_is_told_from_one_that_is_silent(pair: tuple[Channel, Channel]) -> None:
    one, other = pair

    one.close()

    assert other.receive(5) is None


def test_a_file_in_the_working_folder_is_not_taken_for_the_standard_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(7)")
    (tmp_path / "greeting.py").write_text("def main(name): raise SystemExit(f'hello {name}')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "nothing"))
    (tmp_path / "nothing").mkdir()
    (tmp_path / "greeting.py").rename(tmp_path / "nothing" / "greeting.py")

    with (tmp_path / "output").open("w+b") as output:
        process = start_interpreter("greeting", ["you"], output=output)
        code = process.wait(30)
        output.seek(0)
        printed = output.read()

    assert (code, printed) == (1, b"hello you\n")

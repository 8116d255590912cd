"""NOT APPLICABLE means: watched, and seen to keep nothing. What cannot be seen here is NOT RUN."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.durability import require_durable
from n00dles_testing.conformance.expect import MisuseError, NotApplicableError
from n00dles_testing.verdicts import Verdict

from .test_what_counts import subject_in

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def printed_by(script: str) -> list[str]:
    prologue = """
import asyncio, ctypes, os, socket, sqlite3, subprocess, tempfile, time
from n00dles_testing.conformance.touched import Touched
folder = tempfile.mkdtemp()
libc = ctypes.CDLL(None)
server = socket.create_server(("127.0.0.1", 0))
opened_before = open(folder + "/before", "w")
touched = Touched()
"""
    done = subprocess.run(
        [sys.executable, "-c", prologue + script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_memory_devices_reading_and_an_event_loop_touch_nothing() -> None:
    came = printed_by("""
sqlite3.connect(":memory:").close()
open(os.devnull, "w").close()
reading = open(os.__file__)
loop = asyncio.new_event_loop()
print(touched.all())
""")

    assert came == ["[]"]


def test_what_python_opens_is_seen_even_if_it_is_closed_at_once() -> None:
    came = printed_by("""
open(folder + "/a", "w").close()
os.close(os.open(folder + "/b", os.O_CREAT | os.O_RDWR))
sqlite3.connect(folder + "/c").close()
try:
    socket.create_connection(("127.0.0.1", 9))
except OSError:
    pass
subprocess.run(["true"])
print(*[each.replace(folder, "") for each in touched.all()], sep="\\n")
""")

    # The kernel may have been asked in the middle of the connection, and then names the socket by its own end too.
    assert {"address ('127.0.0.1', 9)", "database /c", "file /a", "file /b"} <= set(came)
    assert any(each.startswith("a process of its own (") for each in came)


def test_a_file_that_a_c_library_opens_is_seen() -> None:
    came = printed_by("""
libc.open((folder + "/c").encode(), os.O_CREAT | os.O_RDWR, 0o600)
print(*[each.replace(folder, "") for each in touched.all()])
""")

    assert came == ["file /c"]


def test_a_connection_of_a_c_library_is_seen_also_if_it_is_closed_again() -> None:
    came = printed_by("""
port = server.getsockname()[1]
number = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
address = socket.AF_INET.to_bytes(2, "little") + port.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
assert libc.connect(number, address, len(address)) == 0
time.sleep(0.2)
libc.close(number)
print(*[each.replace(str(port), "PORT") for each in touched.all()])
""")

    assert came == ["address ('127.0.0.1', PORT)"]


def test_a_store_that_writes_through_a_c_library_and_loses_it_fails() -> None:
    report = check_store(f"{HERE / 'hostile_stores.py'}:writes_through_c", clauses=["C01", "C02"])

    assert [result.verdict for result in report.results] == [Verdict.FAIL, Verdict.FAIL]


@pytest.mark.parametrize(
    ("is_proof", "error", "words"),
    [
        (True, NotApplicableError, "by Python or by a C library"),
        (False, MisuseError, "there is no /proc/self/fd"),
    ],
)
def test_without_a_view_of_the_descriptors_nothing_is_proven(
    is_proof: bool, error: type[Exception], words: str, tmp_path: Path
) -> None:
    subject = subject_in(tmp_path, "memory://")
    subject._memory["durability"] = (False, [], is_proof)

    with pytest.raises(error, match=words):
        asyncio.run(require_durable(subject))

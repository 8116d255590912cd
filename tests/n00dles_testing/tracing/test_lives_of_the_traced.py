"""What is traced ends with its tracer, in time, and nobody else is touched."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from n00dles_testing.tracing import CannotTraceError, Kill, running, trace, tracees, why_not

from .tracing_here import calls, needs_tracing, only, traced_well, write_whole

pytestmark = needs_tracing


def is_alive(process: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def wait_until_gone(process: int) -> None:
    for _ in range(2000):
        if not is_alive(process):
            return
        time.sleep(0.01)
    pytest.fail(f"process {process} is still there")


def number_in(path: Path) -> int:
    """The number that somebody is about to write into a file."""
    for _ in range(2000):
        with contextlib.suppress(OSError, ValueError):
            return int(path.read_text().removesuffix("."))
        time.sleep(0.01)
    pytest.fail(f"{path} was never written")


def test_what_the_function_raises_is_the_status_1_and_a_traceback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        raise ValueError("no luck today")

    traced = trace(run, str(tmp_path))

    assert traced.status == 1
    assert "ValueError: no luck today" in capfd.readouterr().err


def test_an_exit_has_its_own_status(tmp_path: Path) -> None:
    def run() -> None:
        write_whole(tmp_path / "f", b"x")
        sys.exit(7)

    traced = trace(run, str(tmp_path))

    assert traced.status == 7
    assert only(traced, "write").result == 1


def test_a_program_that_never_ends_is_killed_with_its_children(tmp_path: Path) -> None:
    def run() -> None:
        os.fork()
        subprocess.Popen(["sleep", "100"], start_new_session=True)
        write_whole(tmp_path / str(os.getpid()), b"")
        time.sleep(100)

    begun = time.monotonic()
    traced = trace(run, str(tmp_path), time_limit=1.0)

    assert (traced.status, traced.timed_out) == (-signal.SIGKILL, True)
    assert time.monotonic() - begun < 60
    assert not any(is_alive(int(path.name)) for path in tmp_path.iterdir())


def test_a_time_limit_may_be_over_before_anything_begins(tmp_path: Path) -> None:
    for _ in range(5):
        traced = trace(lambda: time.sleep(100), str(tmp_path), time_limit=0)

        assert (traced.status, traced.timed_out) == (-signal.SIGKILL, True)


def test_children_that_outlive_their_parent_are_waited_for(tmp_path: Path) -> None:
    def run() -> None:
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.001)
            write_whole(tmp_path / "late", b"x")
            os._exit(0)

    parent = 0

    def begin() -> None:
        nonlocal parent
        parent = os.getpid()
        run()

    traced = traced_well(begin, tmp_path)

    assert only(traced, "write").data == b"x"


def test_what_is_left_behind_is_ended_after_a_grace_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracees, "_GRACE", 0.2)

    def run() -> None:
        helper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        write_whole(tmp_path / "helper", f"{helper.pid}.".encode())

    begun = time.monotonic()
    traced = traced_well(run, tmp_path)

    helper = number_in(tmp_path / "helper")
    assert traced.left_behind == (f"sleep (process {helper})",)
    assert traced.obstacles == ()
    assert not is_alive(helper)
    assert time.monotonic() - begun < 60


def test_what_a_kill_leaves_behind_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracees, "_GRACE", 0.2)

    def run() -> None:
        subprocess.Popen(["sleep", "1000"])
        os.mkdir(tmp_path / "folder")

    traced = trace(run, str(tmp_path), on_call=lambda *_: Kill(), time_limit=20)

    assert (traced.status, traced.timed_out, len(traced.left_behind)) == (-signal.SIGKILL, False, 1)
    assert only(traced, "mkdir", "mkdirat").process == traced.process


def test_who_is_left_behind_and_writes_on_is_an_obstacle(tmp_path: Path) -> None:
    parent = 0

    def run() -> None:
        nonlocal parent
        parent = os.getpid()
        if os.fork() == 0:
            while os.getppid() == parent:
                time.sleep(0.001)
            write_whole(tmp_path / "late", b"x")
            time.sleep(1000)

    traced = traced_well(run, tmp_path)

    (obstacle,) = traced.obstacles
    assert obstacle.path == str(tmp_path / "late")
    assert traced.left_behind[0] in str(obstacle)
    assert only(traced, "write").data == b"x"


def test_a_call_that_another_thread_ends_by_exec_has_no_result(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def run() -> None:
        descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(descriptor, bytes(4096))
        os.set_blocking(descriptor, True)
        begins = threading.Event()
        threading.Thread(target=become_another, args=(os.getpid(), begins)).start()
        begins.set()
        os.write(descriptor, b"last")

    def become_another(leader: int, begins: threading.Event) -> None:
        begins.wait()
        for _ in range(5000):
            if "pipe_write" in Path(f"/proc/self/task/{leader}/wchan").read_text():
                break
            time.sleep(0.001)
        os.execv("/bin/sh", ["sh", "-c", f"echo x > {tmp_path / 'f'}"])

    if not Path("/proc/self/wchan").read_text():
        pytest.skip("this kernel does not tell where a thread waits")
    traced = traced_well(run, tmp_path)

    *_, last, _, written = calls(traced)
    assert (last.name, last.result, last.exited) == ("write", None, None)
    assert (written.data, written.result) == (b"x\n", 2)


def test_an_interrupt_right_after_the_fork_leaves_no_child_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(child: int) -> None:
        children.append(child)
        raise KeyboardInterrupt

    children: list[int] = []
    monkeypatch.setattr(running, "_seize", interrupt)
    before = set(os.listdir("/proc/self/fd"))

    with pytest.raises(KeyboardInterrupt):
        trace(lambda: None, str(tmp_path))

    assert set(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], 0)


def test_ends_are_told_where_ends_of_children_were_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        traced = trace(lambda: sys.exit(7), str(tmp_path))
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert traced.status == 7


def test_a_thread_cannot_trace_where_ends_of_children_are_ignored(tmp_path: Path) -> None:
    reasons: list[str] = []

    def work() -> None:
        with pytest.raises(CannotTraceError) as refused:
            trace(lambda: None, str(tmp_path))
        reasons.append(str(refused.value))

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert len(reasons) == 1
    assert "SIGCHLD" in reasons[0]


def test_an_error_of_the_listener_ends_the_program_and_is_raised(tmp_path: Path) -> None:
    process = tmp_path / "process"

    def run() -> None:
        write_whole(process, f"{os.getpid()}.".encode())
        os.mkdir(tmp_path / "folder")
        time.sleep(100)

    def refuse(call: object, number: int) -> None:
        if number == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        trace(run, str(tmp_path), on_call=refuse)

    assert not is_alive(number_in(process))
    assert not (tmp_path / "folder").exists()


def test_no_child_of_the_caller_is_waited_for(tmp_path: Path) -> None:
    ended = os.fork()
    if ended == 0:
        os._exit(5)
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    with subprocess.Popen(["sleep", "100"]) as sleeping:

        def run() -> None:
            threads = [threading.Thread(target=write_whole, args=(tmp_path / name, b"x")) for name in "abc"]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            subprocess.run(["true"], check=True)

        traced = traced_well(run, tmp_path)

        assert len(calls(traced, "write")) == 3
        assert sleeping.poll() is None
        sleeping.kill()
    assert os.waitstatus_to_exitcode(os.waitpid(ended, 0)[1]) == 5
    assert sleeping.returncode == -signal.SIGKILL


def test_two_threads_can_trace_at_the_same_time(tmp_path: Path) -> None:
    seen: dict[str, list[bytes]] = {}

    def work(name: str) -> None:
        root = tmp_path / name
        root.mkdir()
        for number in range(5):
            traced = trace(partial(write_whole, root / str(number), f"{name}{number}".encode()), str(root))
            seen.setdefault(name, []).append(only(traced, "write").data)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == {name: [f"{name}{number}".encode() for number in range(5)] for name in "ab"}


def test_signals_reach_the_program(tmp_path: Path) -> None:
    def run() -> None:
        seen: list[int] = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        signal.signal(signal.SIGCHLD, lambda *_: seen.append(2))
        signal.signal(signal.SIGTRAP, lambda *_: seen.append(3))
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTRAP)
        subprocess.run(["true"], check=True)
        assert set(seen) == {1, 2, 3}
        os.kill(os.getpid(), signal.SIGTERM)

    traced = trace(run, str(tmp_path))

    assert traced.status == -signal.SIGTERM


def test_a_stopped_child_stays_stopped_until_it_is_told_to_continue(tmp_path: Path) -> None:
    def run() -> None:
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            write_whole(tmp_path / "after", b"x")
            os._exit(0)
        assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
        assert not (tmp_path / "after").exists()
        os.kill(child, signal.SIGCONT)
        assert os.waitpid(child, 0)[1] == 0

    traced = traced_well(run, tmp_path)

    assert only(traced, "write").data == b"x"


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_a_tracer_that_is_killed_or_interrupted(sent: signal.Signals, tmp_path: Path) -> None:
    script = f"""
import os, time
from n00dles_testing.tracing import trace
def run():
    child = os.fork()
    with open({str(tmp_path)!r} + ("/child" if child == 0 else "/parent"), "w") as file:
        file.write(f"{{os.getpid()}}.")
    time.sleep(100)
trace(run, {str(tmp_path)!r})
"""
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as tracer:
        processes = [number_in(tmp_path / name) for name in ("child", "parent")]
        tracer.send_signal(sent)
        tracer.wait(30)

    for process in processes:
        wait_until_gone(process)


def test_what_is_traced_cannot_be_traced_again_and_says_so(tmp_path: Path) -> None:
    def run() -> None:
        assert why_not() is not None
        (tmp_path / "reason").write_text(str(why_not()))
        with pytest.raises(CannotTraceError, match="already traced"):
            trace(lambda: None, str(tmp_path))

    traced_well(run, tmp_path)

    assert "already traced, by process" in (tmp_path / "reason").read_text()


def test_a_folder_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trace(lambda: None, str(tmp_path / "none"))


def test_no_descriptor_and_no_thread_is_left_behind(tmp_path: Path) -> None:
    trace(lambda: write_whole(tmp_path / "f", b"x"), str(tmp_path))
    before = set(os.listdir("/proc/self/fd")), threading.active_count()

    for _ in range(3):
        trace(lambda: subprocess.run(["true"], check=True), str(tmp_path))

    assert (set(os.listdir("/proc/self/fd")), threading.active_count()) == before

"""The network guard itself. What it must stop is raised as Python's own audit event, or stopped before it is sent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from n00dles import agent, pipeline, run
from n00dles_testing.no_network import Attempt, NetworkGuard, NetworkUsed

FAR = "203.0.113.1"  # TEST-NET-3: nobody has it
NAME = "model.invalid"


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[NetworkGuard]:
    with NetworkGuard(tmp_path / "attempts") as guard:
        yield guard


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("", 0)) as server:
        yield server


def tried(guard: NetworkGuard) -> list[tuple[str, str]]:
    return [(attempt.way, attempt.place) for attempt in guard.take()]


def over_ipv6() -> None:
    with socket.socket(socket.AF_INET6) as sock:
        sock.connect(("2001:db8::1", 443))


def by_datagram() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", (FAR, 53))


def by_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendmsg([b"x"], [], 0, (FAR, 53))


def by_broadcast() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("255.255.255.255", 9))


def without_an_exception() -> None:
    with socket.socket() as sock:
        sock.connect_ex((FAR, 443))


@pytest.mark.parametrize(
    ("call", "way", "place"),
    [
        (lambda: socket.create_connection((FAR, 443)), "connect", f"{FAR}:443"),
        (without_an_exception, "connect", f"{FAR}:443"),
        (over_ipv6, "connect", "[2001:db8::1]:443"),
        (by_datagram, "send", f"{FAR}:53"),
        (by_message, "send", f"{FAR}:53"),
        (by_broadcast, "send", "255.255.255.255:9"),
        (lambda: socket.getaddrinfo(NAME, 443), "look up", f"{NAME}:443"),
        (lambda: socket.getaddrinfo(NAME.upper().encode() + b".", "https"), "look up", f"{NAME}:https"),
        (lambda: socket.gethostbyname(NAME), "look up", NAME),
        (lambda: socket.gethostbyname_ex(NAME), "look up", NAME),
        (lambda: socket.gethostbyaddr(FAR), "look up", FAR),
    ],
)
def test_whatever_leaves_the_machine_is_stopped_and_remembered(
    guard: NetworkGuard, call: Callable[[], object], way: str, place: str
) -> None:
    with pytest.raises(NetworkUsed) as failure:
        call()

    assert tried(guard) == [(way, place)]
    assert place in str(failure.value)


def test_a_connection_to_this_machine_passes(guard: NetworkGuard, listener: socket.socket) -> None:
    port = listener.getsockname()[1]

    for host in ("127.0.0.1", "127.8.9.10", "0.0.0.0", "localhost", socket.gethostname(), "127.1"):
        socket.create_connection((host, port)).close()
    with socket.socket() as client:
        client.connect(("", port))

    assert guard.attempts() == []


def test_a_datagram_to_this_machine_passes(guard: NetworkGuard) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("127.0.0.1", 0))
        sender.sendto(b"x", receiver.getsockname())
        received = receiver.recv(9)

    assert (received, guard.attempts()) == (b"x", [])


def test_a_unix_socket_passes(guard: NetworkGuard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a unix socket is at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("here")
        server.listen()
        client.connect("here")

    assert guard.attempts() == []


def test_nothing_is_stopped_before_and_after(tmp_path: Path) -> None:
    guard = NetworkGuard(tmp_path / "attempts")
    with socket.socket() as sock:
        sys.audit("socket.connect", sock, (FAR, 443))
        with guard, pytest.raises(NetworkUsed):
            sys.audit("socket.connect", sock, (FAR, 443))
        sys.audit("socket.connect", sock, (FAR, 443))

    assert tried(guard) == [("connect", f"{FAR}:443")]


def test_a_guard_inside_another_one_gives_way_to_it_at_its_end(guard: NetworkGuard, tmp_path: Path) -> None:
    with NetworkGuard(tmp_path / "inner") as inner, pytest.raises(NetworkUsed):
        socket.gethostbyname("inner.invalid")
    with pytest.raises(NetworkUsed):
        socket.gethostbyname("outer.invalid")

    assert (tried(inner), tried(guard)) == ([("look up", "inner.invalid")], [("look up", "outer.invalid")])


def test_only_the_allowed_hosts_pass(tmp_path: Path) -> None:
    with NetworkGuard(tmp_path / "attempts", [FAR, "127.0.0.1"]), socket.socket() as sock:
        sys.audit("socket.connect", sock, (FAR, 443))
        with pytest.raises(NetworkUsed, match=r"203\.0\.113\.2:443"):
            sys.audit("socket.connect", sock, ("203.0.113.2", 443))


def test_an_allowed_name_passes_with_its_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (FAR, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda name, port: found if name == "db.internal" else [])
    with NetworkGuard(tmp_path / "attempts", ["DB.internal"]), socket.socket() as sock:
        sys.audit("socket.getaddrinfo", "db.internal", 5432, 0, 0, 0)
        sys.audit("socket.connect", sock, (FAR, 5432))
        with pytest.raises(NetworkUsed):
            sys.audit("socket.getaddrinfo", "other.internal", 5432, 0, 0, 0)


def test_an_address_need_not_be_looked_up(guard: NetworkGuard) -> None:
    assert socket.getaddrinfo(FAR, 443, type=socket.SOCK_STREAM)[0][4] == (FAR, 443)
    assert guard.attempts() == []


def test_the_socket_is_closed_so_that_no_warning_hides_the_failure(guard: NetworkGuard) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NetworkUsed) as failure:
            socket.create_connection((FAR, 443))
        del failure

    assert len(guard.attempts()) == 1


# Who called


def ask() -> None:
    socket.create_connection((NAME, 443))


def test_the_caller_is_the_innermost_line_outside_of_libraries(guard: NetworkGuard) -> None:
    import httpx

    def call_model() -> None:
        httpx.get(f"https://{NAME}/v1")

    with pytest.raises(NetworkUsed) as failure:
        call_model()

    assert "test_guard.py:" in str(failure.value)
    assert "call_model (look up)\n    httpx.get(f" in str(failure.value)


def test_a_retry_does_not_catch_it(guard: NetworkGuard) -> None:
    tries = 0

    def retried() -> None:
        nonlocal tries
        for _ in range(3):
            try:
                tries += 1
                ask()
            except Exception:
                continue

    with pytest.raises(NetworkUsed):
        retried()

    assert tries == 1


def test_it_is_remembered_though_it_was_swallowed(guard: NetworkGuard) -> None:
    for _ in range(2):
        with contextlib.suppress(BaseException):
            ask()

    attempts = guard.take()

    assert [attempt.place for attempt in attempts] == [f"{NAME}:443"] * 2
    assert "2 times" in str(NetworkUsed(attempts))


def test_the_same_line_in_several_processes_is_told_once() -> None:
    attempts = [Attempt("look up", NAME, 443, "flow.py:9 in leak", "", "leak", pid) for pid in (1, 2, 2, 3)]

    text = str(NetworkUsed(attempts))

    assert text.count("flow.py:9") == 1
    assert "4 times, in 3 processes" in text


async def open_connection() -> None:
    await asyncio.open_connection(NAME, 443)


async def in_a_thread() -> None:
    await asyncio.get_running_loop().run_in_executor(None, socket.getaddrinfo, NAME, 443)


async def in_a_task_of_a_library() -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        await session.get(f"https://{NAME}/v1")


@pytest.mark.parametrize("body", [open_connection, in_a_thread, in_a_task_of_a_library])
def test_an_event_loop_is_guarded_and_its_caller_known(guard: NetworkGuard, body: Callable[[], Any]) -> None:
    with pytest.raises(NetworkUsed):
        asyncio.run(body())

    (attempt,) = guard.attempts()

    assert (attempt.place, attempt.caller and attempt.caller.split(" in ")[1]) == (f"{NAME}:443", body.__name__)


def test_a_connection_of_an_event_loop_to_this_machine_passes(guard: NetworkGuard, listener: socket.socket) -> None:
    async def connect() -> None:
        _, writer = await asyncio.open_connection("localhost", listener.getsockname()[1])
        writer.close()
        await writer.wait_closed()

    asyncio.run(connect())

    assert guard.attempts() == []


def test_uvloop_is_guarded_though_it_raises_no_audit_events(tmp_path: Path, listener: socket.socket) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def by_address() -> None:
        await asyncio.get_running_loop().create_connection(asyncio.Protocol, FAR, 443)

    async def by_datagrams() -> None:
        await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=(FAR, 53))

    async def here() -> None:
        _, writer = await asyncio.open_connection("localhost", listener.getsockname()[1])
        writer.close()

    before = dict(vars(uvloop.Loop))
    with NetworkGuard(tmp_path / "attempts") as guard, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for body in (by_address, by_datagrams, open_connection):
            with pytest.raises(NetworkUsed):
                runner.run(body())
        runner.run(here())

    assert [attempt.caller and attempt.caller.split(".")[-1].split(" ")[-1] for attempt in guard.attempts()] == [
        "by_address",
        "by_datagrams",
        "open_connection",
    ]
    assert dict(vars(uvloop.Loop)) == before


def test_the_node_is_told(guard: NetworkGuard) -> None:
    import httpx2

    @agent(retry=3)
    def in_a_thread_of_the_executor(x: str) -> str:
        httpx2.get(f"https://{NAME}/v1")
        return x

    @agent(retry=3)
    async def on_the_event_loop(x: str) -> str:
        async with httpx2.AsyncClient() as client:
            await client.get(f"https://{NAME}/v1")
        return x

    for node in (in_a_thread_of_the_executor, on_the_event_loop):
        with pytest.raises(NetworkUsed, match=f"in node '{node.name}'"):
            run(pipeline(node, name="p"), x="1", store="memory://")

    assert [attempt.node for attempt in guard.attempts()] == ["in_a_thread_of_the_executor", "on_the_event_loop"]


# Other threads and processes


def test_a_thread_is_guarded(guard: NetworkGuard) -> None:
    seen: list[BaseException] = []

    def body() -> None:
        try:
            ask()
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()

    assert [type(error) for error in seen] == [NetworkUsed]
    assert tried(guard) == [("look up", f"{NAME}:443")]
    assert guard.attempts()[0].older_thread is None


def test_a_thread_that_was_there_before_is_named(tmp_path: Path) -> None:
    go = threading.Event()

    def late() -> None:
        go.wait()
        with contextlib.suppress(BaseException):
            ask()

    thread = threading.Thread(target=late, name="telemetry")
    thread.start()
    with NetworkGuard(tmp_path / "attempts") as guard:
        go.set()
        thread.join()

    (attempt,) = guard.attempts()
    assert attempt.older_thread == "telemetry"
    assert ", by the thread 'telemetry', which was started before this test (by an earlier one" in str(attempt)


def test_a_forked_child_fails_and_its_parent_hears_of_it(guard: NetworkGuard) -> None:
    child = os.fork()
    if child == 0:
        try:
            ask()
        except NetworkUsed:
            os._exit(7)
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    (attempt,) = guard.take()

    assert (code, attempt.pid, attempt.place) == (7, child, f"{NAME}:443")
    assert attempt.caller is not None
    assert attempt.caller.endswith("in ask")
    assert f"in the child process {child}" in str(NetworkUsed([attempt]))
    assert guard.take() == []


def test_a_process_of_the_harness_keeps_the_guard(guard: NetworkGuard) -> None:
    program = (
        "import socket; from n00dles_testing.no_network import guard_of_parent; guard_of_parent()\n"
        f"try: socket.gethostbyname({NAME!r})\n"
        "except BaseException as error: print(type(error).__name__)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "NetworkUsed\n"
    assert tried(guard) == [("look up", NAME)]


def test_proxies_are_left_out_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:3128")
    monkeypatch.setenv("no_proxy", "localhost")

    with NetworkGuard(tmp_path / "attempts"):
        inside = os.environ.get("HTTPS_PROXY"), os.environ.get("no_proxy")

    assert inside == (None, "localhost")
    assert os.environ["HTTPS_PROXY"] == "http://127.0.0.1:3128"
    assert "N00DLES_NO_NETWORK" not in os.environ


@pytest.mark.parametrize(("before", "inside"), [(None, "True"), ("False", "False")])
def test_litellm_is_told_to_fetch_no_prices_unless_the_user_wants_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None, inside: str
) -> None:
    name = "LITELLM_LOCAL_MODEL_COST_MAP"
    monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv(name, before)

    with NetworkGuard(tmp_path / "attempts"):
        assert os.environ[name] == inside

    assert os.environ.get(name) == before

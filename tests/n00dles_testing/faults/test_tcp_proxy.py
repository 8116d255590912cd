"""The proxy between real sockets: what each fault does to the bytes, and that it is known when it did nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from n00dles_testing.faults import (
    Blackhole,
    CutAfterBytes,
    CutWhenIdle,
    Delay,
    Drip,
    Fault,
    LoseReply,
    LoseRequest,
    RefuseConnections,
    Stall,
    TCPProxy,
    VacuousFaultError,
)


class Upper(socketserver.ThreadingTCPServer):
    """Answers each line in capitals, and keeps what it was told."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lines)
        self.port: int = self.server_address[1]
        self.bytes = b""
        self.heard: list[bytes] = []
        self.news = threading.Condition()

    def wait_for(self, *lines: bytes) -> None:
        with self.news:
            assert self.news.wait_for(lambda: self.heard == list(lines), 5), self.heard


class _Lines(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server, text = self.server, b""
        assert isinstance(server, Upper)
        while True:
            try:
                data = self.request.recv(65536)
            except ConnectionError:
                return
            if not data:
                return
            with server.news:
                server.bytes += data
                text += data
                *lines, text = text.split(b"\n")
                server.heard += lines
                server.news.notify_all()
            try:
                for line in lines:
                    self.request.sendall(line.upper() + b"\n")
            except ConnectionError:
                return


@pytest.fixture
def server() -> Iterator[Upper]:
    with Upper() as upper:
        thread = threading.Thread(target=upper.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield upper
        upper.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: Upper) -> Iterator[TCPProxy]:
    with TCPProxy("127.0.0.1", server.port) as between:
        yield between


class Client:
    def __init__(self, proxy: TCPProxy) -> None:
        self.socket = socket.create_connection(proxy.address, timeout=5)
        self.lines = self.socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()
        self.socket.close()

    def ask(self, line: bytes) -> bytes:
        self.socket.sendall(line + b"\n")
        return self.lines.readline()


def test_without_a_fault_all_passes_both_ways_and_in_order(proxy: TCPProxy, server: Upper) -> None:
    large = b"x" * 3_000_000
    with Client(proxy) as one, Client(proxy) as other:
        answers = [one.ask(b"a"), other.ask(b"b"), one.ask(large)]

    assert answers == [b"A\n", b"B\n", large.upper() + b"\n"]
    assert server.heard == [b"a", b"b", large]
    assert (proxy.connections, proxy.failed) == (2, 0)


def test_an_end_of_one_direction_leaves_the_other_open(proxy: TCPProxy) -> None:
    with Client(proxy) as client:
        client.socket.sendall(b"last words\n")
        client.socket.shutdown(socket.SHUT_WR)

        assert client.lines.read() == b"LAST WORDS\n"


def test_a_fault_that_did_not_happen_is_an_error(proxy: TCPProxy) -> None:
    with (
        Client(proxy) as client,
        pytest.raises(VacuousFaultError, match=r"^VACUOUS: LoseReply\(.*nth=2.* 1 connections were made"),
        proxy.disturbed(LoseReply(nth=2)),
    ):
        assert client.ask(b"only one") == b"ONLY ONE\n"


def test_of_several_faults_the_one_that_did_not_happen_is_named(proxy: TCPProxy) -> None:
    faults: list[Fault] = [Delay(0.01), RefuseConnections()]
    with (
        Client(proxy) as client,
        pytest.raises(VacuousFaultError, match=r"^VACUOUS: RefuseConnections\(.*\) did not happen"),
        proxy.disturbed(*faults),
    ):
        client.ask(b"a")


def test_an_error_of_the_test_is_not_hidden_by_a_fault_that_did_not_happen(proxy: TCPProxy) -> None:
    with pytest.raises(KeyError) as caught, proxy.disturbed(RefuseConnections()):
        raise KeyError("mine")

    assert "did not happen" in caught.value.__notes__[0]


def test_a_delay_holds_every_answer_up_for_its_time(proxy: TCPProxy) -> None:
    with Client(proxy) as client, proxy.disturbed(Delay(0.15, way="to_client")) as delay:
        began = time.monotonic()
        answer = client.ask(b"a")
        took = time.monotonic() - began

    assert (answer, delay.fired) == (b"A\n", 1)
    assert took >= 0.15


def test_jitter_is_the_same_for_the_same_seed() -> None:
    def dues(seed: int) -> list[float]:
        from n00dles_testing.faults.tcp_link import Link, Piece

        fault, link = Delay(0.1, jitter=0.2, seed=seed), Link(1, socket.socket(), None, 0.0)
        link.client.close()
        return [fault.passing(link, "to_server", [Piece(b"x")], 0.0)[0].due for _ in range(20)]

    assert dues(1) == dues(1) != dues(2)
    assert all(0.1 <= due <= 0.3 for due in dues(1))
    assert max(dues(1)) - min(dues(1)) > 0.1


def test_delayed_data_keeps_its_order(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client, proxy.disturbed(Delay(0.0, jitter=0.02, seed=3)):
        for number in range(20):
            client.socket.sendall(b"%d\n" % number)
            time.sleep(0.001)
        assert [client.lines.readline() for _ in range(20)] == [b"%d\n" % number for number in range(20)]


def test_a_lost_reply_means_that_the_server_has_done_it(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client, proxy.disturbed(LoseReply(nth=2)) as fault:
        first = client.ask(b"one")
        with pytest.raises(ConnectionResetError):
            client.ask(b"two")

    assert first == b"ONE\n"
    assert server.heard == [b"one", b"two"]
    assert fault.fired == 1


def test_a_lost_request_means_that_the_server_has_not_done_it(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client, proxy.disturbed(LoseRequest(nth=2)) as fault:
        client.ask(b"one")
        with pytest.raises(ConnectionResetError):
            client.ask(b"two")

    assert server.heard == [b"one"]
    assert fault.fired == 1


def test_a_request_is_found_by_what_it_contains_also_in_two_pieces(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client, proxy.disturbed(LoseReply(containing=b"commit", how="fin")):
        answers = [client.ask(b"begin"), client.ask(b"insert")]
        client.socket.sendall(b"com")
        time.sleep(0.05)
        client.socket.sendall(b"mit\n")
        answers.append(client.lines.readline())

    assert answers == [b"BEGIN\n", b"INSERT\n", b""]
    assert server.heard == [b"begin", b"insert", b"commit"]


def test_requests_are_counted_over_all_connections_and_hit_once(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as one, Client(proxy) as other, proxy.disturbed(LoseReply(nth=3, containing=b"save")) as fault:
        answers = [one.ask(b"save 1"), other.ask(b"load"), other.ask(b"save 2")]
        with pytest.raises(ConnectionResetError):
            one.ask(b"save 3")
        answers.append(other.ask(b"save 4"))

    assert answers == [b"SAVE 1\n", b"LOAD\n", b"SAVE 2\n", b"SAVE 4\n"]
    assert fault.fired == 1
    assert server.heard[-2:] == [b"save 3", b"save 4"]


def test_a_message_is_torn_after_so_many_bytes(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client:
        client.ask(b"whole")
        with proxy.disturbed(CutAfterBytes(4)) as fault, pytest.raises(ConnectionResetError):
            client.ask(b"torn in two")
        fault.wait()

    deadline = time.monotonic() + 5
    while server.bytes != b"whole\ntorn" and time.monotonic() < deadline:
        time.sleep(0.005)
    assert server.bytes == b"whole\ntorn"
    assert fault.fired == 1


def test_an_answer_is_torn_in_order(proxy: TCPProxy) -> None:
    with Client(proxy) as client, proxy.disturbed(CutAfterBytes(3, way="to_client", how="fin")):
        assert client.ask(b"answer") == b"ANS"


def test_all_bytes_arrive_by_drips(proxy: TCPProxy) -> None:
    with Client(proxy) as client, proxy.disturbed(Drip(size=2, interval=0.01, way="to_client")) as fault:
        client.socket.sendall(b"0123456789\n")
        began = time.monotonic()
        crumbs = [client.socket.recv(100)]
        while not crumbs[-1].endswith(b"\n"):
            crumbs.append(client.socket.recv(100))
        took = time.monotonic() - began

    assert b"".join(crumbs) == b"0123456789\n"
    assert len(crumbs) > 1
    assert took >= 0.05
    assert fault.fired == 6


def test_an_idle_connection_is_cut_and_a_busy_one_is_not(proxy: TCPProxy) -> None:
    with Client(proxy) as idle, Client(proxy) as busy:
        idle.ask(b"a")
        with proxy.disturbed(CutWhenIdle(0.3, times=1)) as fault:
            while not fault.fired:
                assert busy.ask(b"b") == b"B\n"
                time.sleep(0.02)
        with pytest.raises(ConnectionError):
            assert idle.ask(b"c") != b""
        assert busy.ask(b"d") == b"D\n"


def test_new_connections_are_refused_and_old_ones_go_on(proxy: TCPProxy) -> None:
    with Client(proxy) as old:
        old.ask(b"a")
        with proxy.disturbed(RefuseConnections()) as fault:
            with pytest.raises(ConnectionError), Client(proxy) as new:
                new.ask(b"b")
            assert old.ask(b"c") == b"C\n"

    assert fault.fired == 1
    with Client(proxy) as again:
        assert again.ask(b"d") == b"D\n"


def test_a_black_hole_takes_everything_and_answers_nothing(proxy: TCPProxy, server: Upper) -> None:
    with proxy.disturbed(Blackhole()) as fault, Client(proxy) as client:
        client.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.ask(b"a")

    assert fault.fired == 1
    assert server.heard == []


def test_a_black_hole_resets_its_connections_when_it_ends(proxy: TCPProxy) -> None:
    with proxy.disturbed(Blackhole()):
        client = Client(proxy)
        client.socket.sendall(b"a\n")
        assert proxy.open_links <= 1

    with client, pytest.raises(ConnectionResetError):
        client.lines.readline()


def test_what_a_half_open_connection_held_arrives_late(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client:
        client.ask(b"a")
        with proxy.disturbed(Stall("to_server")) as fault:
            client.socket.sendall(b"late\n")
            fault.wait()
            assert server.heard == [b"a"]
        assert client.lines.readline() == b"LATE\n"

    assert server.heard == [b"a", b"late"]


def test_a_request_whose_client_was_killed_meanwhile_arrives_all_the_same(proxy: TCPProxy, server: Upper) -> None:
    with proxy.disturbed(Stall("to_server")) as fault:
        code = (
            "import os, signal, socket, sys\n"
            "c = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
            "c.sendall(b'late save\\n')\n"
            "os.kill(os.getpid(), signal.SIGKILL)"
        )
        killed = subprocess.run([sys.executable, "-c", code, str(proxy.port)], check=False)
        fault.wait()

    assert killed.returncode == -9
    server.wait_for(b"late save")


def test_what_a_half_open_connection_held_can_be_lost(proxy: TCPProxy, server: Upper) -> None:
    with Client(proxy) as client, proxy.disturbed(Stall("to_client", then="rst")) as fault:
        client.socket.sendall(b"a\n")
        fault.wait()
    assert server.heard == [b"a"]
    assert proxy.open_links == 0


@pytest.mark.parametrize(("how", "seen"), [("rst", ConnectionResetError), ("fin", None)])
def test_all_connections_are_cut_at_once(proxy: TCPProxy, how: str, seen: type[Exception] | None) -> None:
    with Client(proxy) as one, Client(proxy) as other:
        one.ask(b"a")
        other.ask(b"b")

        assert proxy.cut("rst" if how == "rst" else "fin") == 2

        if seen is None:
            assert (one.lines.readline(), other.lines.readline()) == (b"", b"")
        else:
            with pytest.raises(seen):
                one.lines.readline()


def test_cutting_nothing_is_an_error(proxy: TCPProxy) -> None:
    with pytest.raises(VacuousFaultError, match="no connection to cut"):
        proxy.cut()


def test_a_server_that_is_down_is_a_reset_connection_and_counted() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with TCPProxy("127.0.0.1", closed.getsockname()[1]) as proxy:
            with pytest.raises(ConnectionError), Client(proxy) as client:
                client.ask(b"a")
            assert proxy.failed == 1


async def _ask(proxy: TCPProxy, line: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(*proxy.address)
    writer.write(line + b"\n")
    try:
        return await reader.readline()
    finally:
        writer.close()


def test_it_works_beside_an_event_loop_of_its_user(proxy: TCPProxy) -> None:
    async def all_of_them() -> list[bytes]:
        return await asyncio.gather(*(_ask(proxy, b"%d" % number) for number in range(20)))

    with proxy.disturbed(Delay(0.01, jitter=0.02)):
        assert asyncio.run(all_of_them()) == [b"%d\n" % number for number in range(20)]


def _sleep(ready: str, done: str) -> None:
    Path(ready).touch()
    while not Path(done).exists():
        time.sleep(0.01)


def test_a_forked_child_does_not_keep_a_cut_connection_open(proxy: TCPProxy, tmp_path: Path) -> None:
    with Client(proxy) as client:
        client.ask(b"a")
        ready, done = tmp_path / "ready", tmp_path / "done"
        child = os.fork()
        if child == 0:
            try:
                client.lines.close()
                client.socket.close()
                _sleep(str(ready), str(done))
            finally:
                os._exit(0)
        while not ready.exists():
            time.sleep(0.01)

        proxy.cut("rst")

        with pytest.raises(ConnectionResetError):
            client.lines.readline()
        done.touch()
        os.waitpid(child, 0)


def _descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_nothing_is_left_behind(server: Upper) -> None:
    before = _descriptors(), threading.active_count()
    clients = []
    for _ in range(3):
        with TCPProxy("127.0.0.1", server.port) as proxy:
            clients = [Client(proxy) for _ in range(4)]
            with proxy.disturbed(Blackhole()):
                clients.append(Client(proxy))
                clients[-1].socket.sendall(b"x")
            with proxy.disturbed(LoseReply()), pytest.raises(ConnectionError):
                clients[0].ask(b"a")
            for client in clients:
                client.__exit__()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(proxy.address)

    deadline = time.monotonic() + 5
    while (_descriptors(), threading.active_count()) != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (_descriptors(), threading.active_count()) == before


def test_a_proxy_without_anything_to_do_uses_no_processor(proxy: TCPProxy) -> None:
    with Client(proxy) as client, proxy.disturbed(Stall("to_server"), must_fire=False):
        client.socket.sendall(b"held\n")
        before = time.process_time()
        time.sleep(0.3)

        assert time.process_time() - before < 0.1


def test_a_url_leads_through_the_proxy_and_keeps_the_rest(proxy: TCPProxy) -> None:
    assert proxy.url("redis://:p%40ss@10.0.0.7:6379/3?x=1") == f"redis://:p%40ss@127.0.0.1:{proxy.port}/3?x=1"
    assert proxy.url("postgresql://me@[::1]/db") == f"postgresql://me@127.0.0.1:{proxy.port}/db"
    with pytest.raises(ValueError, match="names one host") as caught:
        proxy.url("postgresql:///db?host=/tmp&password=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "make", [lambda: LoseReply(nth=0), lambda: LoseReply(times=0), lambda: Drip(size=0), lambda: CutAfterBytes(0)]
)
def test_a_fault_that_cannot_happen_is_refused_at_once(make: object) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=r"nth=0|times=0|size=0|count=0"):
        make()

"""Throw-away servers, really started, killed and emptied."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from n00dles_testing.servers import (
    PostgresServer,
    Server,
    ServerError,
    ServerUnavailableError,
    ValkeyServer,
    why_not_postgres,
    why_not_valkey,
)

psycopg = pytest.importorskip("psycopg")
redis = pytest.importorskip("redis")

SERVERS = [
    pytest.param(PostgresServer, marks=pytest.mark.skipif(bool(why_not_postgres()), reason=str(why_not_postgres()))),
    pytest.param(ValkeyServer, marks=pytest.mark.skipif(bool(why_not_valkey()), reason=str(why_not_valkey()))),
]


def put(url: str, value: int) -> None:
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS kept (value int)")
            connection.execute("INSERT INTO kept VALUES (%s)", (value,))
    else:
        with redis.Redis.from_url(url) as client:
            client.rpush("kept", value)


def kept(url: str) -> list[int] | None:
    """What `put` has stored there; None if nothing ever was."""
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            if connection.execute("SELECT to_regclass('kept')").fetchone() == (None,):
                return None
            return [row[0] for row in connection.execute("SELECT value FROM kept ORDER BY value").fetchall()]
    with redis.Redis.from_url(url) as client:
        return [int(value) for value in client.lrange("kept", 0, -1)] or None


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture(scope="module", params=SERVERS)
def shared(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Server:
    if not shared.is_running:
        shared.start()
    shared.reset()  # type: ignore[attr-defined]
    return shared


def test_what_was_acknowledged_is_there_after_a_kill_of_every_process(server: Server) -> None:
    put(server.url, 1)
    put(server.socket_url, 2)
    url, processes = server.url, server.processes()

    killed = server.kill()

    assert killed >= len(processes) - 1  # a background worker may end by itself in between
    assert [pid for pid in processes if is_alive(pid)] == []
    assert not server.is_running
    with pytest.raises((psycopg.OperationalError, redis.ConnectionError)):
        kept(url)
    server.start()
    assert server.url == url
    assert kept(url) == [1, 2]


def test_what_was_acknowledged_in_the_middle_of_traffic_is_there(server: Server) -> None:
    put(server.url, 0)
    acknowledged, has_begun = [0], threading.Event()

    def write() -> None:
        for value in range(1, 100_000):
            try:
                put(server.url, value)
            except (psycopg.OperationalError, redis.ConnectionError):
                return
            acknowledged.append(value)
            if len(acknowledged) == 10:
                has_begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert has_begun.wait(30)
    server.kill()
    writer.join(30)

    server.start()

    there = kept(server.url) or []
    assert len(acknowledged) >= 10
    # The one whose reply was lost may be there as well.
    assert there in (acknowledged, [*acknowledged, acknowledged[-1] + 1])


def session_of(pid: int) -> int | None:
    """Return the session of a process, None if it has ended meanwhile."""
    with suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


@pytest.mark.skipif(bool(why_not_postgres()), reason=str(why_not_postgres()))
def test_a_killed_postgres_leaves_no_process_in_its_own_session_and_no_shared_memory() -> None:
    def segments() -> set[str]:
        return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}

    with PostgresServer() as server:
        sessions = {session for pid in server.processes() if (session := session_of(pid)) is not None}
        line = (server.folder / "data" / "postmaster.pid").read_text().splitlines()[6]
        segment = line.split()[1]
        was_there = segment in segments()

        server.kill()

        assert len(sessions) > 1
        assert was_there
        assert segment not in segments()


def test_a_restart_keeps_the_data_and_is_another_process(server: Server) -> None:
    put(server.url, 1)
    before = server.pid

    server.restart()

    assert server.pid != before
    assert kept(server.url) == [1]


def test_a_reset_empties_it_though_a_client_is_connected(server: Server) -> None:
    put(server.url, 1)

    server.reset()  # type: ignore[attr-defined]

    assert kept(server.url) is None


def test_fresh_databases_are_empty_and_apart(server: Server) -> None:
    put(server.url, 1)
    first, second = server.fresh(), server.fresh()  # type: ignore[attr-defined]
    assert [kept(first), kept(second)] == [None, None]

    put(first, 2)

    assert [kept(server.url), kept(first), kept(second)] == [[1], [2], None]
    server.drop(second)  # type: ignore[attr-defined]
    assert kept(first) == [2]


def test_a_paused_server_does_not_answer_until_it_is_resumed(server: Server) -> None:
    put(server.url, 1)
    server.pause()
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in server.processes()]
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=1) as connection:
        # PostgreSQL answers a request for TLS, Valkey one for the version of the protocol.
        request = b"\0\0\0\x08\x04\xd2\x16\x2f" if place.scheme == "postgresql" else b"PING\r\n"
        connection.sendall(request)
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)

        server.resume()

        connection.settimeout(20)
        assert connection.recv(1) in (b"N", b"-")
    assert set(states) == {"T"}
    assert kept(server.url) == [1]


def test_the_port_wants_the_password(server: Server) -> None:
    wrong = server.url.replace(server.password, "wrong")

    with pytest.raises((psycopg.OperationalError, redis.AuthenticationError)):
        kept(wrong)

    assert server.password not in repr(server)


@pytest.mark.parametrize("kind", SERVERS)
def test_two_at_once_know_nothing_of_each_other(kind: type[Server]) -> None:
    with kind() as one, kind() as other:
        put(one.url, 1)

        assert one.port != other.port
        assert kept(other.url) is None
        one.kill()
        put(other.url, 2)
        assert kept(other.url) == [2]
        folders = one.folder, other.folder

    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("kind", SERVERS)
def test_everything_ends_with_the_process_that_started_it(kind: type[Server], tmp_path: Path) -> None:
    program = (
        f"from n00dles_testing.servers import {kind.__name__} as Kind\n"
        "server = Kind().start()\n"
        "print(server.folder, *server.processes(), flush=True)\n"
        "input()\n"
    )
    tests = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert tests.stdin is not None
    assert tests.stdout is not None
    with tests.stdin, tests.stdout:
        folder, *processes = tests.stdout.readline().split()
        was_there = is_alive(int(processes[0])), Path(folder).is_dir()

        os.kill(tests.pid, signal.SIGKILL)
        tests.wait()

    assert was_there == (True, True)
    until(lambda: not any(is_alive(int(pid)) for pid in processes) and not Path(folder).exists())


def test_a_server_that_does_not_start_shows_its_log_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if reason := why_not_valkey():
        pytest.skip(reason)
    monkeypatch.setattr("n00dles_testing.servers.base._short_folder", lambda: str(tmp_path))

    with pytest.raises(ServerError, match=r"ended at once, with status 1(.|\n)*no-such-setting"):
        ValkeyServer(settings={"no-such-setting": "1"}).start()

    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_not_shared() -> None:
    if reason := why_not_valkey():
        pytest.skip(reason)
    with ValkeyServer() as first, ValkeyServer() as second:
        second.kill()
        second.port = first.port

        with pytest.raises(ServerError, match="ended at once"):
            second.start()

        assert first.is_running


def test_settings_reach_the_servers() -> None:
    if reason := why_not_postgres() or why_not_valkey():
        pytest.skip(reason)
    with ValkeyServer(appendfsync="everysec", maxmemory="10mb") as valkey, redis.Redis.from_url(valkey.url) as client:
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory*")["maxmemory"] == str(10 * 1024 * 1024)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    with PostgresServer(settings={"max_connections": "7"}) as server, psycopg.connect(server.url) as connection:
        assert connection.execute("SHOW max_connections").fetchone() == ("7",)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_root_becomes_nobody_where_user_namespaces_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := why_not_postgres():
        pytest.skip(reason)
    monkeypatch.setattr("n00dles_testing.servers.users.may_map", lambda: False)
    with PostgresServer() as server:
        put(server.url, 1)

        owner = Path(f"/proc/{server.pid}").stat().st_uid
        server.kill()
        server.start()

        assert owner != 0
        assert kept(server.url) == [1]


def test_what_is_named_and_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("N00DLES_POSTGRES_BIN", str(tmp_path))
    monkeypatch.setenv("N00DLES_VALKEY_SERVER", str(tmp_path))

    assert "N00DLES_POSTGRES_BIN" in (why_not_postgres() or "")
    assert "N00DLES_VALKEY_SERVER" in (why_not_valkey() or "")
    with pytest.raises(ServerUnavailableError):
        PostgresServer().start()


def test_a_temporary_folder_with_a_long_name_is_too_long_for_a_socket(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if reason := why_not_valkey():
        pytest.skip(reason)
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    with ValkeyServer() as server:
        put(server.socket_url, 1)

        assert kept(server.socket_url) == [1]


def test_a_stopped_server_says_so() -> None:
    server = ValkeyServer()

    with pytest.raises(ServerError, match="not running"):
        server.kill()
    server.stop()

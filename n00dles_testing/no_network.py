"""A guard that lets no connection leave this machine, whatever opens it, and says who wanted to.

The guard listens to Python's audit events (PEP 578), which the socket module raises below every HTTP stack that is
written in Python. An audit hook cannot be removed, so there is one, which looks at a switch; and a fork inherits both.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from _pytest.outcomes import Failed  # pytest.fail.Exception, without an import of pytest in each child

from .callers import possible_callers
from .local_addresses import is_address, stays_here
from .older_threads import OlderThreads, told

__all__ = ["Attempt", "NetworkGuard", "NetworkUsed", "guard_of_parent"]

GUARD_VARIABLE = "N00DLES_NO_NETWORK"
"""Tells the processes that the harness starts for a test to keep the guard, and in which file to say what they did."""

_SERVER_VARIABLE = "N00DLES_LLM_CONTROL"  # is set where a fake LLM server answers
_SERVED = (
    "A fake LLM server answers in this test: if this was a call of a model, its client was made before OPENAI_BASE_URL "
    "and ANTHROPIC_BASE_URL were set, at the import of a module or in an earlier fixture. Make the client in the test, "
    "or in the body that uses it.\n"
)
_NEVER_LEAVE = {getattr(socket, name, None) for name in ("AF_UNIX", "AF_NETLINK", "AF_ALG")} - {None}
_MOST_CALLERS = 3
_PROXIES = {"http_proxy", "https_proxy", "all_proxy", "ws_proxy", "wss_proxy"}
_STAY_HERE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Has a library do without what it would fetch at its import: litellm, a list of prices, of which it has a copy."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried: `way` is "connect", "send" (a datagram) or "look up".

    `caller` and `line` are the user's, None and "" if unknown; `node` is set in a run, `pid` in another process, and
    `older_thread` is the name of a thread that ran before the guard was there.
    """

    way: str
    host: str
    port: int | str | None
    caller: str | None
    line: str
    node: str | None
    pid: int | None = None
    older_thread: str | None = None

    @property
    def place(self) -> str:
        """The host and its port, as one writes them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, 0, "") else f"{host}:{self.port}"

    def __str__(self) -> str:
        where = self.caller or "a thread or a task of a library (its caller could not be told)"
        node = f", in node {self.node!r}" if self.node else ""
        thread = f", by {told(self.older_thread)}" if self.older_thread is not None else ""
        process = f", in the child process {self.pid}" if self.pid else ""
        shown = f"\n    {self.line}" if self.line else ""
        return f"{self.place} from {where}{node}{thread}{process} ({self.way}){shown}"


class NetworkUsed(Failed):
    """The code under test wanted to leave this machine. Nothing was sent.

    As whatever pytest.fail raises, it is no `Exception`, so that neither an SDK's retries nor a fallback hides it, and
    plugins that run tests on an event loop of their own let it through.
    """

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self.attempts = tuple(attempts)
        super().__init__(_told(self.attempts), pytrace=False)


def _told(attempts: tuple[Attempt, ...]) -> str:
    alike: dict[Attempt, list[Attempt]] = {}
    for attempt in attempts:
        alike.setdefault(replace(attempt, pid=None), []).append(attempt)
    lines = [_once(same) for same in alike.values()]
    hosts = ", ".join(f'"{host}"' for host in dict.fromkeys(attempt.host for attempt in attempts))
    served = _SERVED if _SERVER_VARIABLE in os.environ else ""
    return (
        "no_network: "
        + "\nno_network: ".join(lines)
        + "\n"
        + served
        + "Nothing was sent. Answer the call with mock_llm or llm_server, or lead the client to a server on this "
        f"machine. If this test is meant to go there, mark it @pytest.mark.n00dles_network({hosts})."
    )


def _once(alike: list[Attempt]) -> str:
    """Tell attempts that differ in their process at most: a pipeline that is killed often tries the same in each."""
    if len(alike) == 1:
        return str(alike[0])
    processes = len({attempt.pid for attempt in alike})
    return f"{alike[0]}\n    {len(alike)} times" + (f", in {processes} processes" if processes > 1 else "")


class NetworkGuard:
    """A context manager: while it is open, a connection that leaves this machine raises `NetworkUsed`.

        with NetworkGuard() as guard:
            ...
        assert guard.attempts() == []

    TCP, UDP, and looking up a name of another machine are stopped before anything is sent. Loopback, unix sockets and
    this machine's own addresses and names pass, and so do `allowed` hosts (names, which are looked up at the start, or
    addresses). `attempts` has also what was swallowed, and what forked children did: they tell it through `file`.
    Proxies of the environment are left out meanwhile: they would be told in place of the host, or would let it pass.
    litellm is told by its own variable to fetch no list of prices, which would fail each test that imports it first.
    """

    def __init__(self, file: Path, allowed: Iterable[str] = ()) -> None:
        self._file = file
        self._allowed = frozenset(name.rstrip(".").lower() for name in allowed)
        self._owner: int | None = os.getpid()
        self._attempts: list[Attempt] = []
        self._taken = (0, 0)
        self._undo = ExitStack()

    def __enter__(self) -> NetworkGuard:
        self._older_threads = OlderThreads()
        self._allowed |= {address for name in self._allowed for address in _addresses_of(name)}
        environment: dict[str, str | None] = {name: None for name in os.environ if name.lower() in _PROXIES}
        environment |= {name: text for name, text in _STAY_HERE.items() if name not in os.environ}
        environment[GUARD_VARIABLE] = json.dumps([str(self._file), sorted(self._allowed)])
        self._undo.enter_context(_environment(environment))
        self._undo.enter_context(_event_loops_watched(self))
        self._undo.enter_context(_switched_to(self))
        return self

    def __exit__(self, *error: object) -> None:
        self._undo.close()

    def attempts(self) -> list[Attempt]:
        """Return what was tried so far, in this process and in those that were forked from it."""
        return [*self._attempts, *self._of_children()]

    def take(self) -> list[Attempt]:
        """Return what was tried since the last call of this method."""
        attempts, children = self._attempts[:], self._of_children()
        own, others = self._taken
        self._taken = len(attempts), len(children)
        return [*attempts[own:], *children[others:]]

    def _of_children(self) -> list[Attempt]:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [Attempt(**json.loads(line)) for line in lines]

    def check(self, way: str, host: Any, port: Any) -> None:
        """Raise `NetworkUsed` if `host` is on another machine, and remember it."""
        if stays_here(host) or _name(host) in self._allowed:
            return
        frame = sys._getframe(1)
        attempt = self._attempt(way, _name(host), port, frame)
        if os.getpid() == self._owner:
            self._attempts.append(attempt)
        else:
            self._tell_parent(attempt)
        raise NetworkUsed([attempt])

    def _check_name(self, host: Any, port: Any) -> None:
        if not is_address(host):
            self.check("look up", host, port)

    def _attempt(self, way: str, host: str, port: Any, frame: FrameType | None) -> Attempt:
        callers = possible_callers(frame)
        return Attempt(
            way,
            host,
            port if isinstance(port, int) or port is None else _name(port),
            " or ".join(str(caller) for caller in callers[:_MOST_CALLERS]) or None,
            callers[0].text if len(callers) == 1 else "",
            _current_node(),
            None if os.getpid() == self._owner else os.getpid(),
            self._older_threads.name_of_current(),
        )

    def _tell_parent(self, attempt: Attempt) -> None:
        line = json.dumps(asdict(attempt)) + "\n"
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())  # one write to a file opened so is not mixed with another's
        finally:
            os.close(descriptor)


def guard_of_parent() -> None:
    """Switch the guard of the test on in a process that was started for it, if the test has one."""
    told = os.environ.get(GUARD_VARIABLE)
    if told:
        file, allowed = json.loads(told)
        guard = NetworkGuard(Path(file), allowed)
        guard._owner = None  # whatever happens here, another process has to be told
        guard.__enter__()


_guard: NetworkGuard | None = None
_is_hooked = False


@contextmanager
def _switched_to(guard: NetworkGuard) -> Iterator[None]:
    global _guard, _is_hooked  # noqa: PLW0603 - a hook of the interpreter has no other place to look at
    if not _is_hooked:
        sys.addaudithook(_hook)
        _is_hooked = True
    outer, _guard = _guard, guard
    try:
        yield
    finally:
        _guard = outer


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    # Called for every audit event of the process (imports, opened files, …) for as long as it lives: so, short.
    guard = _guard
    if guard is None:
        return
    check = _CHECKS.get(event)
    if check is not None:
        check(guard, *arguments)


def _check_address(way: str) -> Callable[..., None]:
    def check(guard: NetworkGuard, sock: socket.socket, address: Any) -> None:
        if address is None or sock.family in _NEVER_LEAVE:
            return
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            guard.check(way, f"{address!r} of the family {sock.family!r}", None)
        elif isinstance(address, tuple) and len(address) >= 2:  # noqa: PLR2004 - host and port; else Python refuses it
            try:
                guard.check(way, address[0], address[1])
            except NetworkUsed:
                sock.close()  # whoever expects an OSError would leave it open
                raise

    return check


def _check_name(guard: NetworkGuard, host: Any, port: Any = None, *_: Any) -> None:
    guard._check_name(host, port)


def _check_reverse(guard: NetworkGuard, address: Any) -> None:
    guard.check("look up", address, None)


_CHECKS: dict[str, Callable[..., None]] = {
    "socket.connect": _check_address("connect"),
    "socket.sendto": _check_address("send"),
    "socket.sendmsg": _check_address("send"),
    "socket.getaddrinfo": _check_name,
    "socket.gethostbyname": _check_name,
    "socket.gethostbyaddr": _check_reverse,
}


@contextmanager
def _event_loops_watched(guard: NetworkGuard) -> Iterator[None]:
    """Look at names where an event loop is asked for them.

    asyncio asks in a thread, where neither the caller nor the node is known; uvloop connects in C and raises no audit
    event at all.
    """

    def name(host: Any = None, port: Any = None, *_: Any, **__: Any) -> None:
        guard._check_name(host, port)

    def connection(factory: Any, host: Any = None, port: Any = None, *_: Any, **__: Any) -> None:
        guard.check("connect", host, port)

    def datagrams(factory: Any, local_addr: Any = None, remote_addr: Any = None, **_: Any) -> None:
        if remote_addr is not None:
            guard.check("connect", *remote_addr[:2])

    with ExitStack() as patches:
        patches.enter_context(_checked_first(asyncio.BaseEventLoop, "getaddrinfo", name))
        if "uvloop" in sys.modules:
            loop = sys.modules["uvloop"].Loop
            patches.enter_context(_checked_first(loop, "getaddrinfo", name))
            patches.enter_context(_checked_first(loop, "create_connection", connection))
            patches.enter_context(_checked_first(loop, "create_datagram_endpoint", datagrams))
        yield


@contextmanager
def _checked_first(owner: Any, method: str, check: Callable[..., None]) -> Iterator[None]:
    original = getattr(owner, method)
    is_own = method in vars(owner)

    async def checked(loop: Any, *arguments: Any, **options: Any) -> Any:
        check(*arguments, **options)
        return await original(loop, *arguments, **options)

    setattr(owner, method, checked)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, method, original)
        else:
            delattr(owner, method)


@contextmanager
def _environment(wanted: dict[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in wanted}
    _put(wanted)
    try:
        yield
    finally:
        _put(before)


def _put(environment: dict[str, str | None]) -> None:
    for name, text in environment.items():
        if text is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = text


def _addresses_of(name: str) -> set[str]:
    try:
        return {str(found[4][0]).lower() for found in socket.getaddrinfo(name, None)}
    except OSError:
        return set()


def _name(host: Any) -> str:
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    return text.rstrip(".").lower()


def _current_node() -> str | None:
    module = sys.modules.get("n00dles.idempotency")
    return None if module is None else module.current_node()

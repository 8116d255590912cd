"""Workers of the conformance suite that need not import it: forks of one process that has, for tests and tables.

Two thirds of what most of these tests cost, and half of what a cell of the tables did, was that import. A worker that
begins as a fork stands where a fresh one stands after its import: it has the modules of the suite and no others, one
thread, no event loop, and the environment, descriptors, folder and parent that it would have. So does its nursery,
except that both have one hash seed; what is about hash seeds asks for a fresh interpreter anyway, and gets one.

Workers are started as users have them in `conformance/test_backends.py`, wherever a test runs a command, and with the
fixture `fresh_workers` of the tests.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any, NoReturn

from n00dles_testing import interpreters
from n00dles_testing.parent import expect_children

__all__ = ["NURSERY", "WORKER", "WarmWorkers", "main", "start_fresh"]

WORKER = "n00dles_testing.conformance.worker"
NURSERY = "n00dles_testing.conformance.nursery_process"
_MOST_BYTES = 2**20
_MOST_DESCRIPTORS = 8
_PR_SET_CHILD_SUBREAPER = 36
start_fresh = interpreters.start_interpreter


class WarmWorkers:
    """Stands in for `start_interpreter`: a worker is forked, everything else is started as ever."""

    def __init__(self) -> None:
        self._asked: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_with = _of_the_interpreter(os.environ)
        self._turn = threading.Lock()

    def start_interpreter(self, module: str, arguments: Sequence[str] = (), **how: Any) -> subprocess.Popen[bytes]:
        """Do what `interpreters.start_interpreter` does."""
        environment = {**os.environ, **(how.get("environment") or {})}
        folder = how.get("folder") or interpreters.working_folder()
        same = _of_the_interpreter(environment) == {**self._begun_with, "PYTHONUNBUFFERED": "1"}
        if module != WORKER or sys.platform != "linux" or not same or folder is None or not os.path.isdir(folder):
            return start_fresh(module, arguments, **how)
        with self._turn:
            return self._fork(arguments, **{**how, "environment": environment, "folder": folder})

    def close(self) -> None:
        """End the process that is forked."""
        if self._asked is not None and self._process is not None:
            self._asked.close()
            self._process.wait()

    def _fork(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        keep: Sequence[int] = (),
        output: IO[bytes] | None = None,
        own_session: bool = True,
        folder: str,
    ) -> subprocess.Popen[bytes]:
        expect_children()
        asked = self._started()
        wanted = {
            "arguments": list(arguments),
            "keep": [str(number) for number in keep],
            "environment": dict(environment),
            "path": list(dict.fromkeys(os.path.abspath(entry) for entry in sys.path)),
            "own_session": own_session,
            "folder": folder,
        }
        # For this moment only: what other processes leave behind is none of ours.
        _adopt_orphans(yes=True)
        try:
            socket.send_fds(asked, [json.dumps(wanted).encode()], [2 if output is None else output.fileno(), *keep])
            pid = int(asked.recv(100))
        finally:
            _adopt_orphans(yes=False)
        return _Adopted(pid)

    def _started(self) -> socket.socket:
        if self._asked is None:
            self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = start_fresh(
                    __name__, [str(theirs.fileno())], environment={"PYTHONUNBUFFERED": "1"}, keep=[theirs.fileno()]
                )
            self._asked.recv(100)
        return self._asked


class _Seed:
    """A fork of a worker that has imported no store yet: what becomes its nursery, if it needs one."""

    def __init__(self, of_the_worker: Sequence[int]) -> None:
        """Fork it. It keeps no descriptor of the worker's: they tell of the worker's end."""
        self._begun_in = os.getpid()
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            for descriptor in (self._asked.detach(), *of_the_worker):
                os.close(descriptor)
            _wait_and_become_a_nursery(theirs)
        theirs.close()

    def start_interpreter(self, module: str, arguments: Sequence[str] = (), **how: Any) -> subprocess.Popen[bytes]:
        """Do what `interpreters.start_interpreter` does."""
        folder = how.get("folder")
        if module != NURSERY or self._asked.fileno() == -1 or os.getpid() != self._begun_in:
            return start_fresh(module, arguments, **how)
        [control] = how["keep"]
        socket.send_fds(self._asked, [(folder or os.getcwd()).encode()], [how["output"].fileno(), control])
        self._asked.close()
        return _Adopted(self._pid)


class _Adopted(subprocess.Popen[bytes]):
    """A child that this process has not started, but is the parent of."""

    def __init__(self, pid: int) -> None:
        self.args = [WORKER]
        self.pid = pid
        self.returncode = None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()
        self._sigint_wait_secs = 0.25


def _of_the_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is read when an interpreter starts, or the suite is imported."""
    return {name: value for name, value in environment.items() if name.startswith(("PYTHON", "N00DLES"))}


def _adopt_orphans(*, yes: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(yes))


def main(control: str) -> None:
    """Fork whenever asked, until nobody asks any more; the argument is the number of an inherited socket."""
    asked = socket.socket(fileno=int(control))
    worker = importlib.import_module(WORKER)
    worker.implemented()
    importlib.import_module(NURSERY)
    gc.collect()
    gc.freeze()
    asked.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, _MOST_BYTES, _MOST_DESCRIPTORS)
        if not message:
            os._exit(0)
        reads, writes = os.pipe()
        between = os.fork()
        if between == 0:
            # Whoever asked becomes the parent of what this process leaves behind.
            middle = os.getpid()
            pid = os.fork()
            if pid == 0:
                os.close(reads)
                os.close(writes)
                asked.close()
                _become(json.loads(message), descriptors, middle)
            os.write(writes, str(pid).encode())
            os._exit(0)
        os.waitpid(between, 0)
        asked.send(os.read(reads, 100))
        for descriptor in (reads, writes, *descriptors):
            os.close(descriptor)


def _become(wanted: dict[str, Any], descriptors: Sequence[int], middle: int) -> NoReturn:
    """Be the worker: the same process as if it had been started."""
    try:
        while os.getppid() == middle:
            time.sleep(0.0002)
        if wanted["own_session"]:
            os.setsid()
        output, *kept = descriptors
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, number in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, number)
        for each in (nothing, output):
            os.close(each)
        os.environ.clear()
        os.environ.update(wanted["environment"])
        os.chdir(wanted["folder"])
        sys.path[:] = wanted["path"]
        sys.argv[:] = [WORKER]
        random.seed()
        patched = importlib.import_module("n00dles_testing.conformance.nursery")
        patched.start_interpreter = _Seed(kept).start_interpreter  # type: ignore[attr-defined]
        numbers = dict(zip(wanted["keep"], map(str, kept), strict=True))
        importlib.import_module(WORKER).main(*(numbers.get(each, each) for each in wanted["arguments"]))
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)


def _wait_and_become_a_nursery(asked: socket.socket) -> NoReturn:
    """Be the nursery as soon as it is wanted; end if the worker does without."""
    try:
        folder, descriptors, _, _ = socket.recv_fds(asked, _MOST_BYTES, _MOST_DESCRIPTORS)
        if folder:
            asked.close()
            output, control = descriptors
            for number in (1, 2):
                os.dup2(output, number)
            os.close(output)
            os.chdir(folder)
            sys.argv[:] = [NURSERY]
            random.seed()
            importlib.import_module(NURSERY).main(str(control))
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(1)

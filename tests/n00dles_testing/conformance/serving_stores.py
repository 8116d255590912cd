"""Stores whose files are written by a process that they detach, and which lives on when the store is closed."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

from n00dles_testing.conformance.mutants.correct import merged, new_record, record_of

_SERVER = r"""
import json, os, socket, sys
folder, name = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
try:
    server.bind("\0" + name)
except OSError:
    sys.exit()  # another one was faster
server.listen(20)
server.settimeout(8)
memory = {}
def path(run_id):
    return f"{folder}/{run_id.encode().hex()}.json"
def sync_folder():
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
def get(run_id):
    if run_id not in memory:
        if not os.path.exists(path(run_id)):
            return None
        with open(path(run_id)) as file:
            memory[run_id] = json.load(file)
    return memory[run_id]
def put(run_id, record):
    with open(path(run_id) + ".new", "w") as file:
        json.dump(record, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path(run_id) + ".new", path(run_id))
    sync_folder()
    memory[run_id] = record
def delete(run_id, _):
    memory.pop(run_id, None)
    if os.path.exists(path(run_id)):
        os.unlink(path(run_id))
    sync_folder()
try:
    while True:
        client, _ = server.accept()
        with client, client.makefile("rw") as file:
            do, run_id, record = json.loads(file.readline())
            try:
                came = get(run_id) if do == "get" else {"put": put, "delete": delete}[do](run_id, record)
            except OSError:
                continue
            file.write(json.dumps(came) + "\n")
except TimeoutError:
    pass
"""


class KeepsItInAServer:
    """Has a server that syncs all it must before it answers, and keeps in its memory what it has read or written."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        self.name = hashlib.sha256(self.folder.encode()).hexdigest()

    def load_or_create(self, run_id: str, inputs: dict[str, Any]) -> Any:
        found = self.ask("get", run_id)
        if found is None:
            found = new_record(run_id, inputs)
            self.ask("put", run_id, found)
        return found

    def save(self, run_id: str, context: Any) -> None:
        self.ask("put", run_id, merged(self.ask("get", run_id), record_of(context)))

    def delete(self, run_id: str) -> None:
        self.ask("delete", run_id)

    def ask(self, do: str, run_id: str, record: Any = None) -> Any:
        with self.connected() as server, server.makefile("rw") as file:
            file.write(json.dumps([do, run_id, record]) + "\n")
            file.flush()
            return json.loads(file.readline())

    def connected(self) -> socket.socket:
        """Connect to the server of this folder; start one if there is none."""
        for attempt in range(500):
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect("\0" + self.name)
            except OSError:
                server.close()
            else:
                return server
            if attempt % 100 == 0:
                self.start()
            time.sleep(0.01)
        raise TimeoutError("the server does not start")

    def start(self) -> None:
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SERVER, self.folder, self.name],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

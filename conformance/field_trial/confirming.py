"""Running the confirmations: each shows a finding with the subject's own API alone, without the suite."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from n00dles_testing.servers import PostgresServer, ValkeyServer

from .environments import Environment
from .subjects import Subject

__all__ = ["Confirmation", "confirmed"]

_SECONDS = 120
_SERVERS = {"postgres": PostgresServer, "valkey": ValkeyServer}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a script said of a clause: it ends with 0 if it has seen the fault, and with 1 if not."""

    clause: str
    script: str
    confirmed: bool
    said: str

    def as_dict(self) -> dict[str, object]:
        """Return it for a JSON file."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{'CONFIRMED' if self.confirmed else 'NOT CONFIRMED'}  {self.script}: {self.said}"


def confirmed(subject: Subject, environment: Environment) -> Iterator[Confirmation]:
    """Run the scripts of a subject, each in an empty folder, one after the other."""
    for script in subject.confirmations:
        with tempfile.TemporaryDirectory(prefix="n00dles-confirm-") as folder, _server(subject) as url:
            yield _confirmation(script, environment, Path(folder), url)


def _confirmation(script: Path, environment: Environment, folder: Path, url: str) -> Confirmation:
    clause = script.stem.rpartition("_")[2]
    try:
        done = subprocess.run(
            [environment.python, "-P", str(script), *([url] if url else [])],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Confirmation(clause, script.name, False, f"it has not ended within {_SECONDS} s")
    lines = (done.stdout if done.returncode in (0, 1) and done.stdout else done.stderr).strip().splitlines()
    return Confirmation(clause, script.name, done.returncode == 0, lines[-1] if lines else "it said nothing")


@contextmanager
def _server(subject: Subject) -> Iterator[str]:
    if subject.server is None:
        yield ""
        return
    with _SERVERS[subject.server]() as server:
        yield server.url

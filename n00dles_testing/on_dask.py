"""A cluster of Dask as workers: `distributed` offers it as an executor of `concurrent.futures`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from urllib.parse import urlsplit

import click

from .exits import UnusableError

__all__ = ["expect_one_host", "workers_of"]

_SECONDS_TO_CONNECT = 30

_LOCAL = {"127.0.0.1", "::1", "localhost"}


@contextmanager
def workers_of(address: str, *, needs_this_host: str = "", instead: str = "") -> Iterator[Executor]:
    """`with`: the workers of the cluster whose scheduler listens at `address`, as tcp://10.0.0.7:8786.

    `needs_this_host` says what can be reached from this machine only, if there is something, and `instead` how to do
    without. Raises `UnusableError` if Dask is not installed, nobody answers, nobody works there, or a worker could not
    reach what it needs.
    """
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError as error:
        raise UnusableError("--dask needs the package distributed: pip install 'n00dles-testing[dask]'") from error
    try:
        get_address_host_port(address, strict=True)  # one that means nothing keeps a client busy for a minute
        client = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnusableError(
            f"no scheduler of Dask answers at {address}: {error}. Start one with `dask scheduler`, and workers with "
            "`dask worker ADDRESS`, where this package and the target can be imported."
        ) from error
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise UnusableError(f"the cluster at {address} has no workers; start some with `dask worker {address}`.")
        if needs_this_host:
            expect_one_host(list(workers), needs_this_host, instead)
        executor: Executor = client.get_executor(pure=False)
        # What the executor of a process pool says of itself; that of Dask does not.
        executor._max_workers = sum(worker["nthreads"] for worker in workers.values())  # type: ignore[attr-defined]
        try:
            yield executor
        except BaseException as end:
            if not isinstance(end, Exception):  # interrupted: nobody can take from a worker what it is at
                click.echo("the workers of the cluster end by themselves what they have begun", err=True)
            raise


def expect_one_host(workers: list[str], what: str, instead: str) -> None:
    """Raise `UnusableError` if one of these addresses is of another machine than this, since `what` is only here.

    `instead` says what else can be done about it.
    """
    elsewhere = sorted({host for host in map(_host, workers) if host not in _LOCAL})
    if elsewhere:
        raise UnusableError(
            f"{what} answers on this machine only, and workers of the cluster are on {', '.join(elsewhere)}. Start the "
            f"workers here, with `dask worker --host 127.0.0.1`, or {instead}."
        )


def _host(address: str) -> str:
    return urlsplit(address).hostname or address

"""The workers of a Dask cluster report what one process reports, and one that cannot be used is told."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from n00dles_testing.conformance import check_store
from n00dles_testing.conformance.served import is_local
from n00dles_testing.exits import UnusableError
from n00dles_testing.on_dask import expect_one_host, workers_of
from tests.n00dles_testing.crash.test_shares import explored, told


def test_without_dask_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with (
        pytest.raises(UnusableError, match=r"pip install 'n00dles-testing\[dask\]'"),
        workers_of("tcp://10.0.0.7:8786"),
    ):
        pass


@pytest.mark.parametrize("address", ["garbage", "", "tcp://x:y", "foo://x:1", "tcp://10.0.0.7"])
def test_an_address_that_means_nothing_is_told_at_once(address: str) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    begun = threading.active_count()

    with pytest.raises(UnusableError, match="no scheduler of Dask answers at"), workers_of(address):
        pass

    assert threading.active_count() == begun  # a client would try for a minute, in a thread of its own


def test_what_is_on_this_machine_only_is_not_for_workers_of_others() -> None:
    expect_one_host(["tcp://127.0.0.1:4711", "tcp://localhost:4712"], "the fake LLM server", "use none")

    with pytest.raises(
        UnusableError, match=r"the fake LLM server .* of the cluster are on 10\.0\.0\.7.*, or use none\."
    ):
        expect_one_host(["tcp://127.0.0.1:4711", "tcp://10.0.0.7:4712"], "the fake LLM server", "use none")


def test_a_server_that_is_named_by_the_machine_it_is_on_is_another_one_elsewhere() -> None:
    local = ["postgresql:///runs", "postgresql://me@localhost:5432/runs", "redis://127.0.0.1", "unix:///run/redis.sock"]
    local += ["postgresql:///runs?host=/run/postgresql"]

    assert [target for target in local if not is_local(target)] == []
    assert not is_local("postgresql://me@db.example/runs")
    assert not is_local("postgresql:///runs?host=db.example")
    assert not is_local("sqlite:///runs.db")


@pytest.fixture
def _own_environment() -> Iterator[None]:
    """Take back what is set meanwhile: a local cluster of Dask leaves a seed of all hashes for whoever comes next."""
    before = os.environ.copy()
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.skipif(sys.platform != "linux", reason="the fork server and its workers are tried on Linux")
@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_own_environment")
def test_the_workers_of_a_dask_cluster_report_what_one_process_reports(capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    store = "docs/examples/my_store.py:open_store"

    alone = explored(workers=1, budget=3)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        workers_of(cluster.scheduler_address, needs_this_host="the fake LLM server") as workers,
    ):
        shared = explored(workers=workers, budget=3)
        checked = check_store(store, clauses=["S05", "S04"], workers=workers)
        with (
            pytest.raises(KeyboardInterrupt),
            workers_of(cluster.scheduler_address),
        ):
            raise KeyboardInterrupt

    assert len(alone.rows) == 3
    assert told(shared) == told(alone)
    assert [(result.clause, result.verdict) for result in checked.results] == [("S04", "PASS"), ("S05", "PASS")]
    assert capsys.readouterr().err.startswith("the workers of the cluster end by themselves what they have begun")
    assert checked.notes == ("the factory gets fresh temporary folders",)

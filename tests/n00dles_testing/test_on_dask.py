"""A cluster of Dask that cannot be used is told, with what to do."""

from __future__ import annotations

import sys

import pytest

from n00dles_testing.exits import UnusableError
from n00dles_testing.on_dask import expect_one_host, workers_of


def test_without_dask_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    with (
        pytest.raises(UnusableError, match=r"pip install 'n00dles-testing\[dask\]'"),
        workers_of("tcp://10.0.0.7:8786"),
    ):
        pass


def test_what_is_on_this_machine_only_is_not_for_workers_of_others() -> None:
    expect_one_host(["tcp://127.0.0.1:4711", "tcp://localhost:4712"], "the fake LLM server")

    with pytest.raises(UnusableError, match=r"the fake LLM server .* workers of the cluster are on 10\.0\.0\.7"):
        expect_one_host(["tcp://127.0.0.1:4711", "tcp://10.0.0.7:4712"], "the fake LLM server")

"""Profiles of hypothesis, how the tests are shared out, and where histories go.

`deep` takes minutes: choose it by `--hypothesis-profile=deep` or `N00DLES_PROFILE=deep`.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("deep", deadline=None)
if "N00DLES_PROFILE" in os.environ:
    settings.load_profile(os.environ["N00DLES_PROFILE"])


# A shell without job control starts what it puts in the background deaf to Ctrl-C, and so is all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_LONG = (
    "test_a_correct_store_passes",
    "test_a_page_does_what_it_says",
    "test_every_run_ends_and",
    "TestSQLite::",
    "TestStoreOfTheDocumentation::",
)


@pytest.hookimpl
def pytest_xdist_auto_num_workers() -> int:
    """Take three workers for each processor: most of the time the tests wait for other processes, clocks and disks."""
    return (os.cpu_count() or 2) * 3


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let each worker begin with some of the tests that take longest: whoever starts one last is waited for.

    Each begins with a piece of the list, all of the same length, and takes from the others' when it is through.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = [item for item in items if item.nodeid.partition("::")[2].startswith(_LONG)]
    shorter = set(items) - set(long)
    others = [item for item in items if item in shorter]
    items[:] = [
        item
        for worker in range(workers)
        for item in (
            *long[worker::workers],
            *others[worker * len(others) // workers : (worker + 1) * len(others) // workers],
        )
    ]


@pytest.hookimpl
def pytest_collection_finish() -> None:
    """Keep all that is imported by now from being looked through by each collection of garbage: it is there to stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the histories of stores that are broken on purpose with the other files of the tests."""
    folder = tmp_path_factory.mktemp("histories")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("N00DLES_HISTORIES", str(folder))
        yield folder

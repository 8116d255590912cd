"""The pytest side of the network guard: a test fails as soon as its body has ended, also if it swallowed the error."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .no_network import NetworkGuard, NetworkUsed

__all__ = ["MARKER", "guarded"]

MARKER = "n00dles_network"
_REPORTS = "n00dles-network-reports"
_guard: pytest.StashKey[NetworkGuard] = pytest.StashKey()


@contextmanager
def guarded(request: pytest.FixtureRequest, file: Path) -> Iterator[NetworkGuard | None]:
    """Guard the test of `request`, unless its marker switches that off; forked children report through `file`.

    Fails for what was not told with the body of the test: what threads, children and other fixtures did later.
    """
    mark = request.node.get_closest_marker(MARKER)
    if (mark is not None and not mark.args) or _is_live(request):
        yield None
        return
    plugins = request.config.pluginmanager
    if not plugins.has_plugin(_REPORTS):  # so that a run without a guard has one hook less to call
        plugins.register(_Reports(), _REPORTS)
    with NetworkGuard(file, mark.args if mark else ()) as guard:
        request.node.stash[_guard] = guard
        yield guard
    if attempts := guard.take():
        pytest.fail(str(NetworkUsed(attempts)), pytrace=False)


def _is_live(request: pytest.FixtureRequest) -> bool:
    if not request.config.getoption("n00dles_live"):
        return False
    from .live_tests import is_live

    return is_live(request)


class _Reports:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail the test that has used the network, whatever became of the error; one that skips itself over it, too."""
        guard = item.stash.get(_guard, None)
        if guard is None:
            return (yield)
        result: object = None
        try:
            result = yield
        except (NetworkUsed, pytest.skip.Exception):
            if not (attempts := guard.take()):
                raise
        except BaseExceptionGroup as group:
            if group.split(NetworkUsed)[1] is not None or not (attempts := guard.take()):
                raise
        except Exception as error:
            if attempts := guard.take():
                error.add_note(str(NetworkUsed(attempts)))
            raise
        else:
            attempts = guard.take()
        if attempts:
            pytest.fail(str(NetworkUsed(attempts)), pytrace=False)
        return result

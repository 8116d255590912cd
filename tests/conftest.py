"""Profiles of hypothesis. `deep` takes minutes: choose it by `--hypothesis-profile=deep` or `N00DLES_PROFILE=deep`."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("deep", deadline=None)
if "N00DLES_PROFILE" in os.environ:
    settings.load_profile(os.environ["N00DLES_PROFILE"])


@pytest.hookimpl
def pytest_xdist_auto_num_workers() -> int:
    """Take three workers for two processors: the tests wait for other processes half of the time."""
    return ((os.cpu_count() or 2) * 3 + 1) // 2

"""Profiles of hypothesis. `deep` takes minutes: choose it by `--hypothesis-profile=deep` or `N00DLES_PROFILE=deep`."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("deep", deadline=None)
if "N00DLES_PROFILE" in os.environ:
    settings.load_profile(os.environ["N00DLES_PROFILE"])

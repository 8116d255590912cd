"""What runs side by side in a home-made loop, and what excludes what, as far as its needs tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from n00dles.errors import ConfigurationError

__all__ = ["plain_shape"]


def plain_shape(needs: Mapping[str, Sequence[str]], routes: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the fan-outs and branches, in JSON types as `crash.shape.describe_shape` does.

    Functions that need the same are a fan-out, but for those of `routes`, of which a run takes one. Raises
    `ConfigurationError` for a name in `routes` that is of no function.
    """
    if strange := [name for taken in routes.values() for name in taken if name not in needs]:
        raise ConfigurationError(f"routes= names {strange[0]!r}, which is none of the functions ({', '.join(needs)}).")
    exclusive = {name for taken in routes.values() for name in taken}
    alike: dict[tuple[str, ...], list[str]] = {}
    for name in needs:
        if name not in exclusive:
            alike.setdefault(tuple(needs[name]), []).append(name)
    groups = [
        {
            "name": f"the fan-out {', '.join(names)}",
            "members": {name: [name] for name in names},
            "max_concurrency": None,
        }
        for names in alike.values()
        if len(names) > 1
    ]
    branches = [{"name": name, "routes": {taken: [taken] for taken in names}} for name, names in routes.items()]
    return {"groups": groups, "branches": branches}

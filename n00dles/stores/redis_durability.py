"""Whether a Redis server keeps what it has acknowledged, as far as it tells.

A save is durable when the server writes it to its append-only file and syncs that before it answers (`appendonly yes`,
`appendfsync always`), and when nothing is ever evicted. With `everysec`, its default, a power cut takes about the last
second back; a mere kill of the server takes nothing. See https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

__all__ = ["Durability", "asked_settings", "failover_note", "weaknesses"]

Durability = Literal["require", "warn"]

asked_settings = ("appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy")
"""What `CONFIG GET` is asked for."""


def weaknesses(config: Mapping[str, str] | None, info: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each way in which the server may lose an acknowledged save, and what to do about it.

    `config` is None where CONFIG is forbidden; what `info` (INFO) says is then all there is.
    """
    if config is None:
        return _from_info(info)
    found = []
    if config.get("appendonly") != "yes":
        found.append(
            "it writes no append-only file, so every run may be lost when it stops (CONFIG SET appendonly yes, and the "
            "same in its configuration file)"
        )
    if config.get("appendfsync") != "always":
        found.append(
            f"it acknowledges before it syncs (appendfsync {config.get('appendfsync')}), so a power cut takes back "
            f"{_lost_time(config.get('appendfsync'))} (CONFIG SET appendfsync always)"
        )
    elif config.get("no-appendfsync-on-rewrite") == "yes":
        found.append(
            "it does not sync while it rewrites its append-only file, so a power cut then takes back up to half a "
            "minute (CONFIG SET no-appendfsync-on-rewrite no)"
        )
    found.extend(_eviction(config.get("maxmemory", "0"), config.get("maxmemory-policy", "")))
    return found


def failover_note(info: Mapping[str, Any]) -> str | None:
    """Return what a failover can lose, of a server that has replicas."""
    replicas = info.get("connected_slaves", 0)
    if info.get("role") != "master" or not replicas:
        return None
    who = "1 replica that follows" if replicas == 1 else f"{replicas} replicas that follow"
    return (
        f"it has {who} asynchronously: a failover loses the "
        "saves that the new primary had not received, although they were acknowledged. A run then goes on from an "
        "older checkpoint, and calls those nodes again"
    )


def _from_info(info: Mapping[str, Any]) -> list[str]:
    found = [
        "CONFIG is forbidden to this user, so whether each save is synced (appendfsync always) cannot be seen (allow "
        "it: ACL SETUSER … +config|get; or find out, and use durability=warn)"
    ]
    if str(info.get("aof_enabled", "0")) == "0":
        found.append("it writes no append-only file, so every run may be lost when it stops (set appendonly yes)")
    found.extend(_eviction(str(info.get("maxmemory", "0")), str(info.get("maxmemory_policy", ""))))
    return found


def _eviction(maxmemory: str, policy: str) -> list[str]:
    # Records have no time to live, so only policies for all keys evict them; a lease that is evicted costs no record.
    if maxmemory in ("", "0") or not policy.startswith("allkeys"):
        return []
    return [
        f"it evicts runs when its memory is full (maxmemory-policy {policy}; CONFIG SET maxmemory-policy noeviction)"
    ]


def _lost_time(appendfsync: str | None) -> str:
    return "up to about 2 seconds" if appendfsync == "everysec" else "whatever the system has not written yet"

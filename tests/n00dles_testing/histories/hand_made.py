"""Calls written down by hand: `ok(save(...), 10, 20)`."""

from __future__ import annotations

from typing import Any

from n00dles_testing.histories import Call, History


def load(client: str, times: tuple[int, int], token: str | None = None, revision: int | None = 0, **more: Any) -> Call:
    return Call(client, "load", "r", *times, "ok", token=token, revision=revision, **more)


def save(
    client: str, times: tuple[int, int], token: str, parent: str | None, revision: int | None, **more: Any
) -> Call:
    expected = None if revision is None else revision - 1
    fields: dict[str, Any] = {"parent": parent, "expected": expected, "revision": revision, **more}
    return Call(client, "save", "r", *times, "ok", token=token, **fields)


def conflict(client: str, times: tuple[int, int], token: str, parent: str | None, expected: int) -> Call:
    return Call(
        client, "save", "r", *times, "fail", token=token, parent=parent, expected=expected, error="conflict"
    )  # fmt: skip


def unanswered(client: str, invoked: int, token: str, parent: str | None, expected: int) -> Call:
    return Call(client, "save", "r", invoked, None, "unknown", token=token, parent=parent, expected=expected)


def delete(client: str, times: tuple[int, int]) -> Call:
    return Call(client, "delete", "r", *times, "ok")


def raced(*more: Call) -> History:
    """Two clients race for the first save, and one is refused; then come `more`."""
    return History(
        (
            load("a", (1, 5)),
            load("b", (2, 6)),
            save("a", (10, 20), "t1", None, 1),
            conflict("b", (12, 22), "t2", None, 0),
            *more,
        )
    )

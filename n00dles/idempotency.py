"""A key that is the same for every attempt of a node in a run, so that an effect can be recognised as already done.

A kill may fall between a node's effect and its checkpoint; then the node is called again. Whoever carries out the
effect (a payment API, a mail server, a table with a unique column) can refuse the second one if both carry the same
key. See https://docs.stripe.com/api/idempotent_requests and microsoft/agent-framework #3938.
"""

from __future__ import annotations

import uuid
from contextvars import ContextVar

from .errors import N00dlesError
from .serialization import dumps

__all__ = ["current_agent", "current_idempotency_key", "current_node", "idempotency_key", "node_call"]

_NAMESPACE = uuid.UUID("5f3c1c1e-6f0e-5d3b-9a51-6e3030646c65")

_call: ContextVar[tuple[str, str, str] | None] = ContextVar("n00dles_call", default=None)


def idempotency_key(purpose: str = "") -> str:
    """Return this node's key in this run, from inside its body: a UUID, the same in every attempt and every life.

    A node with several effects gives each a `purpose`, and gets another key for each. The key follows from the run's
    id and the node's name, so a run that is deleted and started anew under its old id has the same keys: use a new id
    to have the effects again. Raises `N00dlesError` outside a node's call, and in a thread that the body has started:
    take the key before.

        @agent
        def charge(order: dict) -> dict:
            return stripe.charge(order["amount"], idempotency_key=idempotency_key())
    """
    key = current_idempotency_key(purpose)
    if key is None:
        raise N00dlesError(
            "idempotency_key() was called outside a node; call it in the body of an @agent during a run. A thread that "
            "the body has started does not know the node: take the key before you start a thread, and hand it over."
        )
    return key


def current_idempotency_key(purpose: str = "") -> str | None:
    """Like `idempotency_key`, for providers, which may also be called outside a run: None there."""
    call = _call.get()
    return None if call is None else str(uuid.uuid5(_NAMESPACE, dumps([*call[:2], purpose])))


def current_node() -> str | None:
    """Return the name of the node whose call this is, or None outside a run: for mocks that answer by node."""
    call = _call.get()
    return None if call is None else call[1]


def current_agent() -> str | None:
    """Return the name of the agent that is called, or None outside a run: the node's own, or that of its fallback."""
    call = _call.get()
    return None if call is None else call[2]


class node_call:  # noqa: N801 - used as a function in a with statement
    """Say that what happens in the `with` block is a call of `node` in the run; the executor's side of the key.

    `agent` is the one that is called: the node's own, or a fallback of another name.
    """

    def __init__(self, run_id: str, node: str, agent: str) -> None:
        self._call = (run_id, node, agent)

    def __enter__(self) -> None:
        self._token = _call.set(self._call)

    def __exit__(self, *error: object) -> None:
        _call.reset(self._token)

"""What was recorded: calls of a state store with their intervals, and the history that they make up.

Tokens are unique texts and the only values that are compared. Every save carries one in the record that it saves, and
every `load_or_create` carries one in the inputs that it passes; so each load names the save that it saw and the call
that created the run, and each save names the load that it was based on, whether the store keeps a revision or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Call", "History", "Operation", "Outcome"]

Operation = Literal["load", "save", "delete"]
Outcome = Literal["ok", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store, by one client, on one run.

    Times are nanoseconds of one monotonic clock on one host, and the interval is closed. `outcome` is "ok" if the call
    returned, "fail" if it certainly had no effect (a conflict, a value that was refused), and "unknown" for all else
    (a timeout, a lost connection, a kill, an error that nobody declared); then `returned` is None.

    What a call does not know is None:

    - `token`: of a save what it saves, of a load what it was shown (None for a run that was created and never saved);
    - `parent` and `expected`: the token and the revision that a save is based on;
    - `revision`: what a load was shown, or an acknowledged save has become;
    - `inputs`: the token in the inputs that a load passed; `incarnation`: the one in the inputs that it was shown, or
      that the save's load was shown. It names the life of the run, from its creation to its deletion;
    - `created`: whether the store says that this load has created the run;
    - `outputs`: the nodes that a save carries or a load was shown;
    - `woken`: of a save, when the client's process went on, which had been stopped before the save was carried out;
    - `executor`: who issues the saves of several clients in an order of his own (rule H9);
    - `error`: "conflict" for a save that was refused as stale, else a few words.
    """

    client: str
    operation: Operation
    run_id: str
    invoked: int
    returned: int | None
    outcome: Outcome
    token: str | None = None
    parent: str | None = None
    expected: int | None = None
    revision: int | None = None
    inputs: str | None = None
    incarnation: str | None = None
    created: bool | None = None
    outputs: tuple[str, ...] | None = None
    executor: str | None = None
    error: str | None = None
    woken: int | None = None

    @property
    def is_conflict(self) -> bool:
        """Whether it is a save that was refused as stale."""
        return self.outcome == "fail" and self.operation == "save" and self.error == "conflict"

    @property
    def has_effect(self) -> bool:
        """Whether it is a save or a delete that was, or may have been, carried out."""
        return self.outcome != "fail" and self.operation != "load"

    def precedes(self, other: Call) -> bool:
        """Whether it had returned when the other was invoked."""
        return self.returned is not None and self.returned < other.invoked


@dataclass(frozen=True, slots=True)
class History:
    """The calls of one recording. `about` says what was recorded (store, seed, date), in plain JSON types.

    `starts_empty` is the recorder's word that the store knew none of the runs before the first call.
    """

    calls: tuple[Call, ...]
    starts_empty: bool = True
    about: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def has_revisions(self) -> bool:
        """Whether the store keeps a revision, as far as any call was told one."""
        return any(call.revision is not None for call in self.calls)

    @property
    def first_revision(self) -> int:
        """The revision of a run that was created and never saved: 0, or 1 in a store that counts the creation."""
        shown = (call.revision for call in self.calls if call.operation == "load" and call.token is None)
        based = (call.expected for call in self.calls if call.operation == "save" and call.parent is None)
        return min((revision for revision in (*shown, *based) if revision is not None), default=0)

    def by_run(self) -> dict[str, list[Call]]:
        """Return the calls of each run, in the order in which they were invoked."""
        runs: dict[str, list[Call]] = {}
        for call in sorted(self.calls, key=_invoked):
            runs.setdefault(call.run_id, []).append(call)
        return runs


def _invoked(call: Call) -> int:
    return call.invoked

"""Stores that are simulated with the calls upon them: a correct one, and one for each fault that a rule is for.

Time is a counter. A call takes effect at one moment between its start and its end, or, with an unknown outcome, at some
moment after its start or never.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from n00dles_testing.histories import Call, History


@dataclass(frozen=True)
class Kept:
    """A run as it is stored; and, with `new` False, as a client knows it."""

    incarnation: str
    revision: int = 0
    token: str | None = None
    outputs: tuple[str, ...] = ()
    created: bool = False


class Refused(Exception):
    """A conflict."""


@dataclass
class SimulatedStore:
    """A correct store."""

    random: Random
    runs: dict[str, Kept] = field(default_factory=dict)
    versions: dict[str, list[Kept]] = field(default_factory=dict)

    rate = 0.3

    def faulty_now(self) -> bool:
        return self.random.random() < self.rate

    def load(self, run_id: str, inputs: str) -> Kept:
        if run_id not in self.runs:
            self.put(run_id, Kept(inputs))
            return replace(self.runs[run_id], created=True)
        return self.runs[run_id]

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if not self.is_current(run_id, base):
            raise Refused
        return self.put(run_id, Kept(base.incarnation, base.revision + 1, token, (*base.outputs, f"n-{token}")))

    def delete(self, run_id: str) -> None:
        self.runs.pop(run_id, None)
        self.versions.pop(run_id, None)

    def is_current(self, run_id: str, base: Kept) -> bool:
        kept = self.runs.get(run_id)
        known = (base.incarnation, base.revision, base.token)
        return kept is not None and (kept.incarnation, kept.revision, kept.token) == known

    def put(self, run_id: str, kept: Kept) -> Kept:
        self.runs[run_id] = kept
        self.versions.setdefault(run_id, []).append(kept)
        return kept


class StaleReads(SimulatedStore):
    """A replica that lags answers some loads."""

    def load(self, run_id: str, inputs: str) -> Kept:
        if run_id in self.runs and self.faulty_now():
            return self.random.choice(self.versions[run_id])
        return super().load(run_id, inputs)


class MissingCheck(SimulatedStore):
    """The last writer wins; the store counts."""

    rate = 1.0

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if run_id not in self.runs or not self.faulty_now():
            return super().save(run_id, base, token)
        kept = self.runs[run_id]
        return self.put(run_id, Kept(kept.incarnation, kept.revision + 1, token, (*base.outputs, f"n-{token}")))


class ClientCounts(MissingCheck):
    """The last writer wins; the client counts."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if run_id not in self.runs or not self.faulty_now():
            return super().save(run_id, base, token)
        incarnation = self.runs[run_id].incarnation
        return self.put(run_id, Kept(incarnation, base.revision + 1, token, (*base.outputs, f"n-{token}")))


class DuplicateRevisions(SimulatedStore):
    """Some saves do not count."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        saved = super().save(run_id, base, token)
        if base.revision == 0 or not self.faulty_now():
            return saved
        self.versions[run_id].pop()
        return self.put(run_id, replace(saved, revision=base.revision))


class SkippedRevisions(SimulatedStore):
    """Some saves count twice."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        saved = super().save(run_id, base, token)
        if not self.faulty_now():
            return saved
        self.versions[run_id].pop()
        return self.put(run_id, replace(saved, revision=base.revision + 2))


class LostSaves(SimulatedStore):
    """Some acknowledged saves are not kept."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if self.is_current(run_id, base) and self.faulty_now():
            return Kept(base.incarnation, base.revision + 1, token, (*base.outputs, f"n-{token}"))
        return super().save(run_id, base, token)


class SpuriousConflicts(SimulatedStore):
    """Some saves are refused without a reason."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if self.faulty_now():
            raise Refused
        return super().save(run_id, base, token)


class RefusedButKept(SimulatedStore):
    """Some saves are refused as stale, after they were written."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        saved = super().save(run_id, base, token)
        if self.faulty_now():
            raise Refused
        return saved


class Resurrecting(SimulatedStore):
    """A save from before a delete brings the run back."""

    rate = 1.0

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        if run_id not in self.runs and self.faulty_now():
            self.runs[run_id] = replace(base, created=False)
        return super().save(run_id, replace(base, created=False), token)


class DoubleCreation(SimulatedStore):
    """Two callers both find nothing, and both create."""

    rate = 1.0

    def load(self, run_id: str, inputs: str) -> Kept:
        if run_id in self.runs and self.runs[run_id].revision == 0 and self.faulty_now():
            del self.runs[run_id]
        return super().load(run_id, inputs)


class ForgottenOutputs(SimulatedStore):
    """Some saves keep only what is new."""

    def save(self, run_id: str, base: Kept, token: str) -> Kept:
        saved = super().save(run_id, base, token)
        if not self.faulty_now():
            return saved
        self.put(run_id, replace(saved, outputs=saved.outputs[-1:]))
        return saved


@dataclass(frozen=True)
class Plan:
    """What is simulated. Shares are between 0 and 1."""

    seed: int
    clients: int = 4
    runs: int = 1
    calls: int = 40
    deletes: float = 0.0
    stale: float = 0.1
    unknown: float = 0.0
    has_revisions: bool = True
    has_outputs: bool = True
    store: Callable[[Random], SimulatedStore] = SimulatedStore


def simulate(plan: Plan) -> History:
    """Run clients upon a store, and return what they recorded."""
    return _Simulation(plan).run()


class _Simulation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(plan.seed)
        self.store = plan.store(self.random)
        self.tokens, self.clients, self.ties = count(1), count(1), count()
        self.agenda: list[tuple[int, int, Callable[[int], None]]] = []
        self.left = plan.calls
        self.calls: list[Call] = []

    def run(self) -> History:
        for _ in range(self.plan.clients):
            self.new_client(0)
        while self.agenda:
            now, _, act = heapq.heappop(self.agenda)
            act(now)
        return History(tuple(self.calls))

    def after(self, now: int, most: int, act: Callable[[int], None]) -> None:
        heapq.heappush(self.agenda, (now + self.random.randint(1, most), next(self.ties), act))

    def new_client(self, now: int) -> None:
        client, known = f"c{next(self.clients)}", dict[str, list[Kept]]()
        self.after(now, 5, lambda then: self.invoke(then, client, known))

    def invoke(self, now: int, client: str, known: dict[str, list[Kept]]) -> None:
        if not self.left:
            return
        self.left -= 1
        run_id = f"run-{self.random.randrange(self.plan.runs)}"
        dice = self.random.random()
        seen = known.setdefault(run_id, [])
        if dice < self.plan.deletes:
            call = Call(client, "delete", run_id, now, None, "unknown")
            effect = self.deleting(call)
        elif not seen or dice < self.plan.deletes + 0.4:
            call = Call(client, "load", run_id, now, None, "unknown", inputs=f"i{next(self.tokens)}")
            effect = self.loading(call, seen)
        else:
            is_stale = self.random.random() < self.plan.stale
            base = self.random.choice(seen) if is_stale else seen[-1]
            call = Call(
                client, "save", run_id, now, None, "unknown", token=f"t{next(self.tokens)}", parent=base.token,
                expected=base.revision if self.plan.has_revisions else None, incarnation=base.incarnation,
            )  # fmt: skip
            if self.plan.has_outputs:
                call = replace(call, outputs=(*base.outputs, f"n-{call.token}"))
            effect = self.saving(call, base, seen)
        if self.random.random() < self.plan.unknown:
            self.lose(now, call, effect)
            return

        def take_effect(then: int) -> None:
            done = effect()
            self.after(then, 10, lambda end: self.finish(end, done, known))

        self.after(now, 10, take_effect)

    def finish(self, now: int, done: Call, known: dict[str, list[Kept]]) -> None:
        self.calls.append(replace(done, returned=now))
        self.after(now, 5, lambda then: self.invoke(then, done.client, known))

    def lose(self, now: int, call: Call, effect: Callable[[], Call]) -> None:
        """The outcome stays unknown, and the client is retired."""
        self.calls.append(call)
        if self.random.random() < 0.6:
            self.after(now, 60, lambda _then: (effect(), None)[1])
        self.new_client(now + self.random.randint(1, 10))

    def deleting(self, call: Call) -> Callable[[], Call]:
        def effect() -> Call:
            self.store.delete(call.run_id)
            return replace(call, outcome="ok")

        return effect

    def loading(self, call: Call, seen: list[Kept]) -> Callable[[], Call]:
        def effect() -> Call:
            kept = self.store.load(call.run_id, call.inputs or "")
            seen.append(replace(kept, created=False))
            return replace(
                call, outcome="ok", token=kept.token, revision=kept.revision if self.plan.has_revisions else None,
                incarnation=kept.incarnation, created=kept.created,
                outputs=kept.outputs if self.plan.has_outputs else None,
            )  # fmt: skip

        return effect

    def saving(self, call: Call, base: Kept, seen: list[Kept]) -> Callable[[], Call]:
        def effect() -> Call:
            try:
                kept = self.store.save(call.run_id, base, call.token or "")
            except Refused:
                return replace(call, outcome="fail", error="conflict")
            seen.append(kept)
            return replace(call, outcome="ok", revision=kept.revision if self.plan.has_revisions else None)

        return effect

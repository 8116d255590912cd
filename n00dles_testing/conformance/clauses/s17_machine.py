"""S17: a generated sequence of operations gives the same on the store and on an independent model."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from ...verdicts import Finding
from ..expect import BrokenClause, MisuseError, VacuousCheck
from ..machine.offers import Offers, probe_offers
from ..machine.operations import Plan
from ..machine.tokens import PlanToken
from ..registry import clause
from ..subject import StoreSubject

if TYPE_CHECKING:
    from ..machine.search import Broken, Played, Searched

_SEQUENCES = 50
_DEEP = 40
"""So many times as many with N00DLES_PROFILE=deep."""
_SHARE = 0.5
"""So much of the time after which the check is killed may be used, and half of that again for shrinking."""
_LEAST = 10
_ALWAYS = ("stale save", "late save", "creation anew")
_WHERE_DURABLE = ("reopening", "another process", "kill")
_WHERE_SHARED = ("second instance",)
_RARE = (
    *_ALWAYS,
    "late save into the next run",
    "overlap",
    "cancelled save",
    "save again after an error",
    *_WHERE_DURABLE,
    *_WHERE_SHARED,
)


@clause("S17", level=1, title="a sequence of operations gives what a model says", sets_the_clock=True)
async def agrees_with_a_model(subject: StoreSubject) -> None:
    """Whatever is done to a store, in whatever order, each reply is one that an independent model allows.

    Sequences of up to 24 operations are drawn: runs are created, loaded, saved, deleted and created anew, through
    workers that are behind, at once, cancelled, or too late; values and run ids are hostile; the clock is set back, and
    what was handed in or out is edited. Where the store keeps runs it is closed and opened again, and another process,
    which is killed or not, has its turn; where two instances see each other's saves, a second one is used as well.
    The model shares no code with any store. It knows that an acknowledged call has happened, that a refused one has
    not, and that of a cancelled one either may be true; a save that is behind may be refused, or merged.

    The clauses before try one thing at a time. This one finds what only their combination shows: a cache that outlives
    a deletion elsewhere, a counter that begins anew with the next run of the same id. The first sequence that fails is
    made as short as can be, and can be replayed. N00DLES_PROFILE=deep in the environment plays forty times as many.

    Seen in: langchain-ai/langgraph #7206 and #8796, google/adk-python #3717 (each
    takes several operations in one order).
    """
    offers = await probe_offers(subject)
    if subject.plan is not None:
        await _replay(subject, offers, Plan.from_dict(subject.plan))
        return
    from ..machine.search import search  # hypothesis takes a while to import

    deep = _DEEP if os.environ.get("N00DLES_PROFILE") == "deep" else 1
    seed = int(subject.draw.token(), 16)
    came = await search(
        lambda plan: _played(subject, offers, plan),
        offers,
        seed=seed,
        sequences=_SEQUENCES * deep,
        seconds=_SHARE * subject.seconds,
    )
    subject.notes.append(_note(came.sequences, came.counts, offers))
    if came.was_cut_short:
        subject.notes.append(f"the time was up after {came.sequences} sequences of {_SEQUENCES * deep}")
    if came.broken is not None:
        _found(subject, came.broken)
        return
    _require(came, offers)


async def _played(subject: StoreSubject, offers: Offers, plan: Plan) -> Played:
    """Play one sequence on a fresh location."""
    from ..machine.play import Player
    from ..machine.search import Broken, Played

    count = len(plan.operations)
    async with subject.scenario(f"{count} operation{'s' if count > 1 else ''}") as s:
        player = Player(s, plan, offers)
        try:
            await player.play()
        except BrokenClause as fault:
            return Played(player.counts, Broken(plan, fault, s.journal.story))
    return Played(player.counts, None)


async def _replay(subject: StoreSubject, offers: Offers, plan: Plan) -> None:
    played = await _played(subject, offers, plan)
    if played.broken is not None:
        _found(subject, played.broken)


def _found(subject: StoreSubject, broken: Broken) -> None:
    token = PlanToken(subject.target.text, subject.seed, broken.plan).encode(subject.target.folder)
    details = [f"{label:<8} {text}" for label, text in broken.fault.details]
    finding = Finding(
        subject.clause, broken.fault.message, (*broken.story, *details), f"n00dles-testing replay {token}"
    )
    subject.findings.append(finding)


def _require(came: Searched, offers: Offers) -> None:
    """Raise if what is rare has never happened, though it could: `MisuseError` for want of time, or `VacuousCheck`."""
    wanted = (*_ALWAYS, *(_WHERE_DURABLE if offers.durable else ()), *(_WHERE_SHARED if offers.instances else ()))
    missing = [kind for kind in wanted if not came.counts[kind]]
    if not missing and came.sequences >= _LEAST:
        return
    without = f", without {', '.join(missing)}" if missing else ""
    if came.was_cut_short:
        raise MisuseError(
            f"the store is slow: there was time for {came.sequences} sequences only{without}. A higher --limit gives "
            "the check more time"
        )
    raise VacuousCheck(f"{came.sequences} sequences were played{without}, so that was not shown")


def _note(sequences: int, counts: Counter[str], offers: Offers) -> str:
    rare = ", ".join(f"{counts[kind]} × {kind}" for kind in _RARE if counts[kind])
    left_out = [
        *([] if offers.durable else ["reopening and other processes (another one does not find what was saved)"]),
        *(
            []
            if offers.instances or not offers.durable
            else ["a second instance (it does not see the first one's saves)"]
        ),
    ]
    without = f"; without {', '.join(left_out)}" if left_out else ""
    return f"{sequences} sequences, {counts.total()} calls{f', with {rare}' if rare else ''}{without}"

"""Whether a store offers what a clause is about, so that the clause applies: the probe of the capability says so."""

from __future__ import annotations

from .capabilities import Outcome
from .expect import BrokenClause, MisuseError, NotApplicableError
from .probes import find_out
from .subject import StoreSubject

__all__ = ["require_offered"]


async def require_offered(subject: StoreSubject, capability: str) -> None:
    """Return if the store offers a capability.

    What is found, and wrong, is a finding: the first that the clause has to say, and all. Raises `NotApplicableError`
    if it is not offered, or in a way that n00dles could not use, and `MisuseError` if that cannot be found out here.
    """
    outcome, proof = await subject.once(f"offers {capability}", lambda: find_out(capability, subject))
    if outcome in (Outcome.ABSENT, Outcome.UNUSABLE):
        raise NotApplicableError(f"no {capability}: {proof}")
    if outcome is Outcome.UNTOLD:
        raise MisuseError(f"{capability} could not be tried: {proof}")
    if outcome is Outcome.BROKEN:
        async with subject.scenario(f"the probe of {capability}") as s:
            s.judged()
            raise BrokenClause(proof, (("allowed", "what the capability promises"), ("came", proof), ("why", proof)))

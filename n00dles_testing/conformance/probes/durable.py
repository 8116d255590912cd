"""The capability `durable`: a run that one process has saved is found by another, after the first has closed."""

from __future__ import annotations

from ..durability import require_durable
from ..expect import MisuseError, NotApplicableError
from ..subject import StoreSubject
from .offered import AbsentError, UntoldError, WrongError, probing

__all__ = ["durable"]


async def durable(subject: StoreSubject) -> str:
    """Save a run in another process, close the store there, and look for it here."""
    try:
        await require_durable(subject)
    except NotApplicableError as proof:
        raise AbsentError(str(proof)) from proof
    except MisuseError as missing:
        raise UntoldError(str(missing)) from missing
    async with probing(subject, "is a run of another process found?") as s:
        async with s.elsewhere() as other:
            run_id = await other.create({"topic": "cats"})
            await other.save(run_id, {"researcher": "cats purr"})
            await other.close()
        if (await s.load(run_id, {"topic": "dogs"})).record != s.acknowledged[run_id]:
            raise WrongError(
                "the store writes something, and yet a run that another process has saved, and closed, is not found"
            )
    return "a run that another process has saved was found, whole, after the store was closed there"

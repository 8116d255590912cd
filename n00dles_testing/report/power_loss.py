"""What a report says of a power loss, as JSON gives it: bounded, and read again whatever a file holds."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["PowerLoss", "ToldFurther", "ToldLoss", "ToldMoment"]

_MOST_CALLS = 500

Count = Annotated[int, Field(ge=0, le=10**15)]


class _Part(BaseModel):
    """Fields that a later release adds are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ToldMoment(_Part):
    """One operation, or several in a row, or a stretch that is left out: `Moment.to_dict` in `powerloss.telling`."""

    words: str
    fate: str
    path: str = ""
    during: str | None = None
    what: str = ""
    to_path: str = ""
    size: Count = 0
    times: Count = 1


class ToldFurther(_Part):
    """The same kind of fault, for another kind of lost operation."""

    message: str = ""
    words: str
    fix: str = ""
    cause: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    count: Count = 0


class ToldLoss(_Part):
    """One kind of fault, in the state of the disk in which least was lost.

    `left` has each file with what it is, `timeline` all that happened up to the crash; the tokens of the calls count
    from "1". `details` are lines of a second crash, if there was one. `fix` says what the store has to do, `cause`
    which kinds of operations were lost.
    """

    kind: str
    message: str
    words: str
    fix: str = ""
    cause: tuple[str, ...] = ()
    further: tuple[ToldFurther, ...] = ()
    when: str = ""
    details: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    on_disk: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    count: Count = 0
    acknowledged: tuple[str, ...] = ()
    invoked: tuple[str, ...] = ()
    timeline: tuple[ToldMoment, ...] = ()


class PowerLoss(_Part):
    """A finding with the model under which it was made, the calls of the store, and what became of each call.

    `told` is empty if all calls were acknowledged, or would have been.
    """

    UNANSWERED: ClassVar[str] = "the power fails before it returns"

    model: str
    calls: tuple[str, ...]
    told: tuple[str, ...] = ()
    finding: ToldLoss

    def ends(self) -> list[tuple[str, str, str]]:
        """Return each call that had begun: its token, what it was, and what became of it before the power failed."""
        found = []
        invoked, acknowledged = frozenset(self.finding.invoked), frozenset(self.finding.acknowledged)
        for number, title in enumerate(self.calls[:_MOST_CALLS]):
            token = str(number + 1)
            if token not in invoked:
                continue
            outcome = self.told[number] if number < len(self.told) else "acknowledged"
            has_returned = token in acknowledged or outcome != "acknowledged"
            found.append((token, title, outcome if has_returned else self.UNANSWERED))
        return found

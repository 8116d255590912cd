"""S18: the cost of a save does not grow with the number of nodes already saved. Graded, not failed."""

from __future__ import annotations

from typing import Any

from ..cost import cost_of_saves
from ..expect import VacuousCheck
from ..records import Record
from ..registry import clause
from ..subject import StoreSubject

_FEW, _MANY = 20, 400
_SAVES = 21
_FEWEST_SAVES = 5
_SECONDS = 1.0
_LONGEST_SECONDS = 8.0
"""A slow store gets less than 21 saves, and a very slow one less than five."""
_FLAT_BYTES = 1.5
_FLAT_SECONDS = 2.0
"""Up to here a ratio is called flat: a time is told less exactly than a number of bytes."""
_KB = 1024


@clause("S18", level=1, title="what a save costs in a long run, beside a short one", graded=True)
async def cost_of_a_save(subject: StoreSubject) -> None:
    """The cost of a save does not grow with the number of nodes already saved: told as a figure, and never a failure.

    A store that writes the whole run at each save pays for its length again and again: ten times the nodes are a
    hundred times the bytes. A run that has 20 nodes and one that has 400 are saved in turn, with one more node each
    time, by a process of its own. What a save writes, and how long it takes, is compared by the medians. The report
    says how many times as much the long run costs, and `flat` or `grows`; of bytes also what each node already saved
    adds to a save. What is sent to a server is not seen, and then the time alone is told. It is VACUOUS if nothing
    could be measured.

    A store that grows is right, too: a short run does not feel it, and a file that is replaced whole is simple. So it
    is for the reader to judge.
    """
    async with subject.scenario(f"one more node is saved in a run of {_FEW} nodes, and in one of {_MANY}") as s:
        few, many = subject.fresh_run_id(), subject.fresh_run_id()
        async with s.elsewhere() as other:
            s.acknowledged.update((run_id, Record.new({"topic": "cats"})) for run_id in (few, many))
            came = await other.perform(
                cost_of_saves,
                runs={few: _FEW, many: _MANY},
                fewest=_FEWEST_SAVES,
                most=_SAVES,
                seconds=_SECONDS,
                longest=_LONGEST_SECONDS,
            )
        turns = came["turns"]
        if not turns:
            raise VacuousCheck(f"no save could be measured within {_LONGEST_SECONDS:g} s")
        s.judged()  # the figure is the judgement
        of_few = "" if turns >= _FEWEST_SAVES else f" (of {turns} saves only)"
        subject.notes.append(f"a save with {_MANY} nodes, beside one with {_FEW}{of_few}: {_told(came, few, many)}")


def _told(came: dict[str, Any], few: str, many: str) -> str:
    texts = []
    small, large = came["bytes"][few], came["bytes"][many]
    if small:
        texts.append(f"it writes {_times(large / small, _FLAT_BYTES)}{_slope(small, large)}")
    seconds = came["seconds"]
    texts.append(f"it takes {_times(seconds[many] / seconds[few], _FLAT_SECONDS, unit='long')}")
    return "; ".join(texts)


def _times(ratio: float, most: float, *, unit: str = "much") -> str:
    return f"{ratio:.1f} times as {unit} ({'flat' if ratio <= most else 'grows'})"


def _slope(small: float, large: float) -> str:
    """Say what both are, and what each further node adds."""
    more = max(0.0, large - small) / (_MANY - _FEW)
    sizes = f", {large / _KB:.1f} KB and {small / _KB:.1f} KB"
    return sizes if more < 1 else f"{sizes}, {more:.0f} bytes for each node already saved"

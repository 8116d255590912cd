"""What was measured, in the types of JSON, and the file that keeps it."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..figure import ratio
from .subjects import OURS, RAW

__all__ = ["Fastest", "Result", "Results", "Resumed", "Series"]


@dataclass(slots=True)
class Series:
    """The runs of one length: the seconds a node of each, and those of the raw limit right before it.

    `kept` is the smallest number of outputs that the store had at the end. `why` says why there are no more of them.
    """

    seconds: list[float] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)
    kept: int | None = None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """The median of the ratios to the raw limit, pair by pair."""
        return ratio(self.seconds, self.raw) if self.seconds else None

    @property
    def median(self) -> float | None:
        """The median of the seconds a node."""
        return statistics.median(self.seconds) if self.seconds else None


@dataclass(slots=True)
class Resumed:
    """The resumes of a run that was killed in its last node: the seconds of each, and the nodes that it called."""

    seconds: list[float] = field(default_factory=list)
    called: int | None = None
    why: str = ""

    @property
    def median(self) -> float | None:
        """The median of the seconds."""
        return statistics.median(self.seconds) if self.seconds else None


@dataclass(slots=True)
class Result:
    """All that was measured of one subject. `syncs` is how often a node waits for the disk; None if not counted.

    `error` says why nothing could be measured.
    """

    name: str
    title: str
    about: str
    durability: str
    version: str = ""
    syncs: float | None = None
    runs: dict[int, Series] = field(default_factory=dict)
    resumed: Resumed = field(default_factory=Resumed)
    error: str = ""

    @property
    def is_durable(self) -> bool:
        """Whether every node waits for the disk once at least. What was not counted is believed."""
        # What runs beside the nodes makes the count a little uncertain.
        return self.syncs is None or self.syncs > 0.9

    def keeps_all(self, nodes: int) -> bool:
        """Whether a run of so many nodes had all of their outputs in the store at its end."""
        return nodes in self.runs and self.runs[nodes].kept == nodes

    def comparable(self, nodes: int) -> float | None:
        """Return the ratio to the raw limit, if it was measured and is for the same promise: durable, and all kept."""
        return self.runs[nodes].ratio if self.keeps_all(nodes) and self.is_durable else None


@dataclass(frozen=True, slots=True)
class Fastest:
    """The fastest of the others, `title`: its cost against the raw limit, and ours."""

    ours: float
    cost: float
    title: str

    @property
    def times(self) -> float:
        """How many times as fast ours is."""
        return self.cost / self.ours


@dataclass(slots=True)
class Results:
    """One comparison: on what `machine` it was made, and how many nodes a resume has found completed."""

    machine: dict[str, str]
    lengths: list[int]
    resume_nodes: int
    subjects: list[Result]

    def fastest_other(self, nodes: int) -> Fastest | None:
        """Return how ours compares to the fastest of the others that promises the same; None if there is none."""
        found = [(each, value) for each in self.subjects if (value := each.comparable(nodes)) is not None]
        ours = [value for each, value in found if each.name == OURS]
        others = [(value, each.title) for each, value in found if each.name not in (RAW, OURS)]
        return Fastest(ours[0], *min(others)) if ours and others else None

    def write(self, file: Path) -> None:
        """Write it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def read(cls, file: Path) -> Results:
        """Read what `write` has written."""
        said: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return cls(**{**said, "subjects": [_result(each) for each in said["subjects"]]})


def _result(said: dict[str, Any]) -> Result:
    runs = {int(nodes): Series(**series) for nodes, series in said["runs"].items()}
    return Result(**{**said, "runs": runs, "resumed": Resumed(**said["resumed"])})

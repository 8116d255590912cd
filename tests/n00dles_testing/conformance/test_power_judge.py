"""What the judge of a store says of what was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from n00dles_testing.conformance.power_judge import PowerJudge, Recoveries
from n00dles_testing.conformance.power_workload import everything_once
from n00dles_testing.powerloss.examining import Examiner, Seen, Step
from n00dles_testing.powerloss.faults_found import FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.tree import Tree


def test_a_next_save_that_is_acknowledged_and_not_there_is_to_be_acknowledged_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = everything_once("r1", "r2")
    new = {name: {"inputs": inputs, "completed": {}, "order": []} for name, inputs in workload.inputs.items()}
    seen = Seen(dict.fromkeys(Step, new))
    monkeypatch.setattr(Examiner, "examine", lambda *_, **__: seen)

    def never(folder: str) -> Any:
        raise AssertionError(folder)

    with PowerJudge(workload, never, never, folder=str(tmp_path / "state"), seed=0, on_wait=lambda: None) as judge:
        fault = judge.under(MODELS["ext4"], Recoveries(0, 1))(str(tmp_path), State(Tree(), (), (), (), 1))

    assert fault is not None
    assert fault.kind is FaultKind.WEDGED
    assert fault.message.startswith("the next save was acknowledged, and is not there: run 'r1'")
    assert fault.fix.startswith("acknowledge a save only once the change is made")

"""The page about the report of a check has every field, and no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

from n00dles_testing.conformance import CAPABILITIES, GapState, Outcome, check_store
from n00dles_testing.conformance.disturbing import DisturbanceReport
from n00dles_testing.conformance.losing_power import PowerLossOfStore
from n00dles_testing.conformance.tally import Tally
from n00dles_testing.report.json_file import write_json
from n00dles_testing.report.power_loss import ToldLoss
from n00dles_testing.verdicts import Verdict
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "check-report.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))
BROKEN = "n00dles_testing.conformance.mutants.s05:GivesOutItsCache"


def test_the_page_names_every_field_of_a_report(tmp_path: Path) -> None:
    claims = tmp_path / "claims.toml"
    claims.write_text('[known-gaps]\nS05 = "known"\n')
    reader = "n00dles_testing.conformance.mutants.out_of_band:read_json_file"
    write_json(
        tmp_path / "report.json", "check", check_store(BROKEN, clauses=["S05"], claims=claims, reader=reader).to_dict()
    )
    form = json.loads((tmp_path / "report.json").read_text())
    result = form["results"][0]
    parts = [form, form["claims"], form["gaps"][0], form["reader"], result, result["findings"][0]]

    fields = {name for part in parts for name in part}

    assert fields - NAMED == set()


def test_the_page_names_every_capability_field_and_every_value() -> None:
    values = {each.value for kind in (Outcome, GapState, Verdict) for each in kind}

    assert values - NAMED == set()
    assert {"name", "claimed", "outcome", "proof", "verdict", "ok"} <= NAMED
    how_to = (ROOT / "docs" / "how-to" / "check-a-store.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` | " in how_to for name in CAPABILITIES)


def test_the_page_names_every_field_of_what_powerloss_and_faults_write() -> None:
    parts = [
        PowerLossOfStore("a:B", 0, 600).to_dict(),
        ToldLoss.model_fields,
        DisturbanceReport("a:B", (), (), (), 0, 600, 1.0).to_dict(),
        Tally("C03", "a save", 8, 5, 5, 0).to_dict(),
    ]

    assert {name for part in parts for name in part} - NAMED == set()

"""The token of a scenario: the same on every machine, data only, and enough to live the scenario again."""

from __future__ import annotations

import pytest

from n00dles_testing.campaign import CampaignError, CampaignToken, prove, replay
from n00dles_testing.campaign.family import Trial
from n00dles_testing.crash.tokens import BadTokenError
from n00dles_testing.strategies import NodeSpec, ParameterSpec, PipelineSpec
from n00dles_testing.verdicts import Verdict

SPEC = PipelineSpec((NodeSpec("a", output="str"), NodeSpec("b", "Any", (ParameterSpec("text", "previous"),))))
EXECUTOR = "tests.n00dles_testing.campaign.executors:forgets_what_was_stored"
TOKEN = CampaignToken(EXECUTOR, Trial("lives", SPEC, ("after-save:a", "cancel@after:b")))


def test_a_token_carries_executor_pipeline_and_plan() -> None:
    text = TOKEN.encode()

    assert CampaignToken.decode(text) == TOKEN
    assert CampaignToken.decode(f" {text}\n") == TOKEN
    assert text.startswith("c1")
    assert text.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("cut", [0, 2, 5, 40, -1])
def test_a_damaged_token_says_so_and_nothing_is_run(cut: int) -> None:
    with pytest.raises(BadTokenError):
        CampaignToken.decode(TOKEN.encode()[:cut])


def test_a_replay_shows_the_fault_again_with_real_processes() -> None:
    report = replay(TOKEN)

    assert "E02" in report.broken
    (finding,) = [finding for finding in report.findings if finding.clause == "E02"]
    assert finding.replay == f"n00dles-testing replay {TOKEN.encode()}"
    assert finding.story[-1] == "seen     in this process, and again in processes of their own, killed for real"


def test_a_replay_of_the_executor_of_n00dles_passes_what_it_shows() -> None:
    report = replay(CampaignToken(None, TOKEN.trial))

    assert report.verdict is Verdict.PASS
    assert {clause.clause for clause in report.clauses if clause.verdict is Verdict.PASS} >= {
        "E01",
        "E02",
        "E13",
    }


def test_what_a_campaign_found_is_found_again_by_its_token() -> None:
    (finding,) = prove(EXECUTOR, examples=60, only=["E02"], confirm=False).findings
    token = CampaignToken.decode((finding.replay or "").rpartition(" ")[2])

    again = replay(token, confirm=False)

    assert "E02" in again.broken


def test_a_token_of_an_unknown_family_is_refused() -> None:
    with pytest.raises(CampaignError, match="family 'moons'"):
        replay(CampaignToken(None, Trial("moons", SPEC)))


@pytest.mark.parametrize(
    ("family", "rest"),
    [
        ("lives", ("nonsense",)),
        ("lives", ("before:nobody",)),
        ("lives", ("slow@before:a",)),
        ("lives", ("before:a#1000000000",)),
        ("lives", ("run-started",) * 5000),
        ("names", ("a",)),
        ("names", ("nobody", "b")),
        ("identity", ("b", "explode", "a")),
        ("identity", ("nobody", "drop", "b")),
        ("outputs", ("a", "a dragon")),
        ("rivals", ("a", "redis")),
        ("rivals", ("nobody", "one store in memory")),
        ("rivals", ("a", "one store in memory", "walk, walk")),
    ],
)
def test_a_token_that_says_what_cannot_be_tried_is_refused(family: str, rest: tuple[str, ...]) -> None:
    text = CampaignToken(None, Trial(family, SPEC, rest)).encode()

    with pytest.raises(BadTokenError):
        CampaignToken.decode(text)


def test_a_replay_whose_plan_did_not_happen_is_vacuous() -> None:
    report = replay(CampaignToken(None, Trial("lives", SPEC, ("before:a#50",))), confirm=False)

    assert report.verdict is Verdict.VACUOUS
    assert report.vacuous == {"before:a#50 did not happen": 1}

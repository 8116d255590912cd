"""Faults that show only if a run is carried on in a certain way, or if two runs are compared, are found."""

from __future__ import annotations

import pytest

from n00dles_testing.campaign import CampaignProgress, prove

FAULTY = "tests.n00dles_testing.campaign.faulty"


class Found(BaseException):
    """A clause is broken: the scenarios after that, and making this one simpler, are what other tests are about.

    No `Exception`: that would be one of the scenario, for hypothesis.
    """


def first_broken(name: str, *, examples: int, seed: int = 0, only: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the clauses that are broken when the first one is; none if no scenario breaks any."""
    broken: tuple[str, ...] = ()

    def stop(progress: CampaignProgress) -> None:
        nonlocal broken
        broken = progress.broken
        if broken:
            raise Found

    try:
        prove(f"{FAULTY}:{name}", examples=examples, seed=seed, only=only, confirm=False, on_progress=stop)
    except Found:
        return broken
    return ()


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("runs_a_dead_run_anew", "E02"),
        ("runs_a_failed_run_anew", "E10"),
        ("resumes_without_a_lease", "E16"),
        ("compares_no_dead_run", "E09"),
        ("gives_all_runs_one_key", "E03"),
        ("drops_inputs_that_are_nothing", "E04"),
        ("forgets_in_long_runs", "E02"),
        ("keeps_attempts_on_itself", "E11"),
        ("goes_on_when_cancelled_in_a_save", "E13"),
        ("saves_after_its_return", "E13"),
        ("cancels_itself", "E04"),
    ],
)
def test_a_fault_in_one_way_of_carrying_a_run_on_is_found(name: str, clause: str) -> None:
    assert first_broken(name, examples=400, only=(clause,)) == (clause,)


@pytest.mark.parametrize("seed", [1, 2])
def test_an_executor_that_works_on_after_its_return_is_judged_to_the_end(seed: int) -> None:
    report = prove(f"{FAULTY}:saves_after_its_return", examples=500, seed=seed, confirm=False, shrink_seconds=1)

    assert "E13" in report.broken

"""What a store offers is found out by calling it; a false claim fails, and nothing that is not claimed does."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles_testing.conformance import CAPABILITIES, Capability, Outcome, check_store
from n00dles_testing.conformance.mutants import capabilities as mutants
from n00dles_testing.conformance.runner import open_runner

HERE = Path(__file__).parent
LIARS = [name for name in mutants.__all__ if getattr(mutants, name).lies_about]
HONEST = f"{mutants.__name__}:ManagedFiles"


def probed(target: str, names: list[str], limit: float = 20) -> dict[str, Capability]:
    with open_runner(target, limit=limit) as runner:
        return {name: runner.probe(name) for name in names}


def foreign(name: str) -> str:
    return f"{HERE / 'foreign_stores.py'}:{name}"


def test_a_store_that_offers_all_and_claims_all_is_believed() -> None:
    found = probed(HONEST, list(CAPABILITIES))

    assert {each.verdict for each in found.values()} == {"claimed and found"}


@pytest.mark.parametrize("name", LIARS)
def test_a_false_claim_is_denied_by_its_probe_and_by_no_other(name: str) -> None:
    store = getattr(mutants, name)

    found = probed(f"{mutants.__name__}:{name}", store.claims["capabilities"])

    denied = {each.name for each in found.values() if not each.ok}
    assert denied == {store.lies_about}
    assert found[store.lies_about].verdict == "claimed, and denied by the probe"


def test_each_probe_has_a_store_that_it_denies() -> None:
    assert {getattr(mutants, name).lies_about for name in LIARS} == set(CAPABILITIES)


@pytest.mark.parametrize(
    ("name", "proof"),
    [
        ("ClaimsDurability", "the store keeps nothing beyond its process"),
        ("ClaimsSharing", "not found in another that had the store open meanwhile"),
        (
            "LocksOthersOut",
            "with the store open in two processes, load_or_create in another process raised BlockingIOError",
        ),
        ("LoadCreates", "load of an unknown run created it"),
        ("LoadIsNotImplemented", "load is there, and only raises NotImplementedError"),
        ("ListsWhatIsGone", "which was deleted"),
        ("PrunesByAge", "prune removed a run that was not finished"),
        ("PrunesWhatIsYoung", "prune(older_than=3600) removed a run that was saved a moment ago"),
        ("LeasesToAnybody", "a second holder was given a lease of a run that another one holds"),
    ],
)
def test_the_proof_of_a_false_claim_says_what_was_seen(name: str, proof: str) -> None:
    lied_about = getattr(mutants, name).lies_about

    assert proof in probed(f"{mutants.__name__}:{name}", [lied_about])[lied_about].proof


def test_a_load_that_is_behind_is_denied() -> None:
    found = probed("n00dles_testing.conformance.mutants.s05:CachesWhatLoadGives", ["load"])["load"]

    assert found.proof.startswith("load does not give what was acknowledged last, after what the first load gave was ")


def test_a_lease_that_never_expires_is_told_in_time() -> None:
    # Longer than a single call may take: waiting for it is no call.
    found = probed(f"{mutants.__name__}:LeasesNeverExpire", ["leases"], limit=5)["leases"]

    assert found.proof == "a lease of 0.3 s still held its run after 10 s, and nobody renewed it"


@pytest.mark.parametrize("target", ["memory://", "n00dles_testing.conformance.mutants.correct:JSONFiles"])
def test_what_is_found_and_not_claimed_is_reported_and_no_fault(target: str) -> None:
    found = probed(target, ["durable", "load"])

    by_name = {name: (each.verdict, each.ok) for name, each in found.items()}
    offers = ("found, not claimed", True)
    lacks = ("neither claimed nor found", True)
    assert by_name == {
        "durable": lacks if "memory" in target else offers,
        "load": offers if "memory" in target else lacks,
    }


def test_the_stores_of_the_project_offer_what_they_say(tmp_path: Path) -> None:
    found = probed(f"sqlite:///{tmp_path}/runs.db", list(CAPABILITIES))

    assert {name: each.outcome for name, each in found.items()} == dict.fromkeys(CAPABILITIES, Outcome.FOUND)


def test_other_signatures_are_told_and_are_no_fault() -> None:
    found = probed(foreign("OtherSignatures"), ["load", "list_runs", "prune", "leases"])

    assert {each.verdict for each in found.values()} == {"found, but cannot be called as n00dles would, not claimed"}
    assert (
        found["load"].proof
        == "n00dles calls load(run_id), and the store has load(run_id: 'str', version: 'int') -> 'Any'"
    )


@pytest.mark.parametrize(
    ("name", "proof"),
    [
        ("load", "load returned ['run-"),
        ("list_runs", "which has no attribute run_id"),
        ("prune", "prune, called as n00dles does, raised TypeError: days must be a number"),
        ("leases", "acquire of a run that nobody holds returned False, and not a lease"),
    ],
)
def test_other_results_are_told_and_are_no_fault(name: str, proof: str) -> None:
    found = probed(foreign("OtherResults"), [name])[name]

    assert (found.outcome, found.ok) == (Outcome.UNUSABLE, True)
    assert proof in found.proof


def test_a_load_may_raise_for_an_unknown_run() -> None:
    found = probed(foreign("UnknownRunsAreAnError"), ["load"])["load"]

    assert found.proof == "load gave a run as it was saved; of an unknown run it raised KeyError, and created none"


def test_a_store_that_ends_its_process_in_a_probe_is_told_and_the_next_probe_runs() -> None:
    found = probed(foreign("DiesInLoad"), ["load", "durable"])

    assert found["load"].verdict == "claimed, and denied by the probe"
    assert found["load"].proof.startswith("the store's process ended with exit status 3")
    assert found["durable"].outcome is Outcome.FOUND


def test_a_store_that_hangs_in_a_probe_is_killed_at_the_limit() -> None:
    found = probed(foreign("HangsInLoad"), ["load"], limit=2)["load"]

    assert (found.verdict, found.ok) == ("found, and wrong, not claimed", True)
    assert found.proof.startswith("the store did not answer within 2 s, and was killed, during: load('run-")


def test_nothing_is_pruned_where_the_runs_may_be_somebodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREIGN_STORE_FOLDER", str(tmp_path))

    found = probed(foreign("Elsewhere"), ["prune"])["prune"]

    assert (found.verdict, found.ok) == ("claimed, not probed", True)
    assert "it would remove runs that are not the suite's" in found.proof


def test_a_false_claim_fails_the_whole_check() -> None:
    report = check_store(f"{mutants.__name__}:ClaimsDurability")

    assert not report.ok
    durable, level = report.problems
    assert durable.startswith("durable is claimed, and denied: the store keeps nothing beyond its process")
    assert level.startswith("level 2 (crash-safe) is claimed, and not reached (the attribute claims of ")


def test_capabilities_are_not_probed_if_only_some_clauses_are_asked_for() -> None:
    report = check_store(f"{mutants.__name__}:ClaimsDurability", clauses=["S01"])

    assert report.ok
    assert report.capabilities == ()
    assert report.level_kept is None

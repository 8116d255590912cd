"""A package registers its store, by name or by a URL scheme, and the check finds it, in every process."""

from __future__ import annotations

from pathlib import Path

import pytest

from n00dles.errors import ConfigurationError
from n00dles_testing.conformance import CAPABILITIES, check_store
from n00dles_testing.conformance.runner import open_runner
from n00dles_testing.registered import GROUP
from n00dles_testing.verdicts import Verdict

CLAUSES = ["S01", "C01"]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path as pip would leave it: a module, and what its distribution registers."""
    folder = tmp_path / "site"
    about = folder / "shop_runs-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-runs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        f"[{GROUP}]\n"
        "shop-files = shop_runs:open_files\n"
        "shop-lost = shop_runs:lost\n"
        "shop-number = shop_runs:NUMBER\n"
        "[n00dles.state_stores]\n"
        "shop = shop_runs:open_url\n"
    )
    (folder / "shop_runs.py").write_text(
        "from n00dles_testing.conformance.mutants.capabilities import ManagedFiles as JSONFiles\n"
        "NUMBER = 3\n"
        "def open_files(location):\n"
        "    return JSONFiles(location)\n"
        "def open_url(url):\n"
        "    return JSONFiles(url.removeprefix('shop://'))\n"
    )
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.usefixtures("installed")
def test_a_registered_store_is_checked_by_its_name() -> None:
    report = check_store("shop-files", clauses=CLAUSES)

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]
    assert (report.target, report.notes[0]) == ("shop-files", "the factory gets fresh temporary folders")


@pytest.mark.usefixtures("installed")
def test_a_url_scheme_of_another_package_is_checked_on_fresh_locations() -> None:
    report = check_store("shop://{location}", clauses=CLAUSES)

    assert [result.verdict for result in report.results] == [Verdict.PASS, Verdict.PASS]


@pytest.mark.usefixtures("installed")
def test_a_store_behind_a_url_claims_and_offers_what_it_does_without_one() -> None:
    with open_runner("shop://{location}") as runner:
        claimed = runner.claims
        found = [runner.probe(name) for name in ("load", "list_runs", "prune")]

    assert claimed.capabilities == tuple(CAPABILITIES)
    assert claimed.source == "the attribute claims of the store of shop://{location}"
    assert {each.verdict for each in found} == {"claimed and found"}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop-file", "registered are shop-files, shop-lost, shop-number. Did you mean shop-files?"),
        (
            "shop-lost",
            "the store 'shop-lost' is registered as shop_runs:lost, which cannot be imported: AttributeError",
        ),
        ("shop-number", "is registered as shop_runs:NUMBER, which is of type int, and not a factory"),
    ],
)
def test_a_name_that_leads_to_no_store_says_so(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_store(name)

    assert message in str(caught.value)


def test_without_any_registered_store_the_ways_to_name_one_are_listed() -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_store("mystore")

    assert "package.module:factory, path/to/file.py:factory, or the name of a registered store" in str(caught.value)
    assert "no package here registers any" in str(caught.value)

"""What is found in the states, shrunk, and put into words."""

from pathlib import Path

import pytest

from n00dles_testing.powerloss.exploring import PowerLossReport, explore_power_loss
from n00dles_testing.powerloss.faults_found import Fault, FaultKind
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.state import State
from tests.n00dles_testing.powerloss.logs import PAGE, Log
from tests.n00dles_testing.powerloss.test_states import never_synced, saves


def judge(folder: str, state: State) -> Fault | None:
    """Judge a store that keeps a number, twenty times, in a file."""
    saved = Path(folder, "s")
    text = saved.read_bytes() if saved.exists() else b"0" * 20
    if len(text) != 20 or not text.isdigit():
        return Fault(FaultKind.CORRUPT, f"{len(text)} bytes")
    if int(text[:1]) < len(state.acknowledged):
        return Fault(FaultKind.LOST_ACK, f"{text[:1].decode()} after {state.acknowledged[-1]}")
    return None


def explored(log: Log, model: str, tmp_path: Path, *, budget: int = 600, seconds: float = 60.0) -> PowerLossReport:
    return explore_power_loss(
        log.recording(), MODELS[model], judge, folder=str(tmp_path / "state"), budget=budget, seconds=seconds
    )


def found(report: PowerLossReport) -> dict[str, str]:
    return {finding.fault.kind: finding.words for finding in report.findings}


class TestFindings:
    def test_a_rename_without_a_sync_is_told_by_the_data_that_was_lost(self, tmp_path: Path) -> None:
        report = explored(saves(3), "ext4", tmp_path)

        assert found(report) == {
            "CORRUPT": "the rename of `s.tmp` to `s` reached the disk, the data of `s` (20 bytes) in call `1` did not",
            "LOST_ACK": "the rename of `s.tmp` to `s` in call `3` did not reach the disk",
        }

    @pytest.mark.parametrize("model", ["ext4", "journaled", "strict"])
    def test_a_folder_that_is_not_synced_loses_one_rename(self, model: str, tmp_path: Path) -> None:
        report = explored(saves(3, fsync=True), model, tmp_path)

        assert found(report) == {"LOST_ACK": "the rename of `s.tmp` to `s` in call `1` did not reach the disk"}
        assert report.findings[0].when == "after the acknowledgement of call `1`, before call `2`"

    @pytest.mark.parametrize("model", sorted(MODELS))
    def test_a_store_that_syncs_file_and_folder_is_clean(self, model: str, tmp_path: Path) -> None:
        report = explored(saves(3, fsync=True, folder=True), model, tmp_path)

        assert report.findings == ()
        assert report.at_least is None
        assert report.tried >= 10

    def test_a_kill_is_told_by_the_calls_around_it(self, tmp_path: Path) -> None:
        log = Log()
        log.create("s")
        log.append("s", b"1" * 20)

        report = explored(log, "kill", tmp_path)

        assert found(report) == {
            "CORRUPT": "the process was killed after the creation of `s`, before the data of `s` (20 bytes)"
        }

    def test_a_state_in_which_nothing_is_lost_is_told_by_its_moment(self, tmp_path: Path) -> None:
        log = Log()
        log.create("s")
        log.fsync("s")
        log.fsync()
        log.append("s", b"1" * 20)

        report = explored(log, "ext4", tmp_path)

        assert found(report) == {
            "CORRUPT": "the power failed after the creation of `s`, before fsync of `s`, and all that had been done "
            "reached the disk"
        }

    def test_a_failed_sync_that_is_tried_again_is_found(self, tmp_path: Path) -> None:
        log = saves(1, fsync=True, folder=True)
        log.invoke("2")
        log.write("s", b"2" * 20)
        log.fsync("s", failed=True)
        log.fsync("s")
        log.acknowledge("2")

        report = explored(log, "ext4", tmp_path)

        assert found(report) == {"LOST_ACK": "the data of `s` (20 bytes) in call `2` did not reach the disk"}

    def test_each_kind_is_found_once_and_counted(self, tmp_path: Path) -> None:
        report = explored(saves(3), "journaled", tmp_path)

        assert [finding.fault.kind for finding in report.findings] == ["CORRUPT", "LOST_ACK"]
        assert sum(finding.count for finding in report.findings) < report.tried
        assert all(finding.count > 1 for finding in report.findings)

    def test_only_the_pages_that_matter_are_told_as_lost(self, tmp_path: Path) -> None:
        log = Log({"a": b"-" * 8 * PAGE})
        log.write("a", b"+" * 8 * PAGE)

        def sixth_is_lost(folder: str, state: State) -> Fault | None:
            data = Path(folder, "a").read_bytes()[::PAGE]
            return Fault(FaultKind.CORRUPT, "page 5") if data[5:6] == b"-" and b"+" in data else None

        report = explore_power_loss(log.recording(), MODELS["ext4"], sixth_is_lost, folder=str(tmp_path / "state"))

        assert found(report) == {"CORRUPT": "the data of `a` from byte 20480 (4096 bytes) did not reach the disk"}

    def test_a_cause_of_two_losses_keeps_both(self, tmp_path: Path) -> None:
        log = Log(dict.fromkeys("abcd", b"old"))
        for name in "abcd":
            log.write(name, b"new")
        log.acknowledge("1")

        def two_are_old(folder: str, state: State) -> Fault | None:
            old = {name for name in "abcd" if Path(folder, name).read_bytes() == b"old"}
            return Fault(FaultKind.MIXED, "b and d") if {"b", "d"} <= old and state.acknowledged else None

        report = explore_power_loss(log.recording(), MODELS["strict"], two_are_old, folder=str(tmp_path / "state"))

        assert found(report) == {
            "MIXED": "the data of `c` (3 bytes) reached the disk, the data of `b` (3 bytes) and the data of `d` "
            "(3 bytes) did not"
        }

    def test_what_is_lost_in_a_second_power_loss_is_told_once_whatever_the_first_one_took(self, tmp_path: Path) -> None:
        small = Fault(FaultKind.RECOVERY, "small", cause=frozenset({"data in the recovery"}))
        large = frozenset({"data in the recovery", "rename in the recovery"})

        def second(folder: str, state: State) -> Fault | None:
            lost = len(state.lost) % 2 and large
            return Fault(FaultKind.RECOVERY, "", cause=lost or small.cause, smaller=lambda _: small) if lost else None

        report = explore_power_loss(
            saves(3).recording(), MODELS["strict"], second, folder=str(tmp_path / "state"), causes=4
        )

        [finding] = report.findings
        assert (finding.fault.message, finding.cause, finding.further) == ("small", small.cause, ())

    def test_two_kinds_that_one_state_shows_are_two_findings_each_as_small_as_it_can_be(self, tmp_path: Path) -> None:
        def both(folder: str, state: State) -> Fault | None:
            lost = Fault(FaultKind.LOST_IN_RECOVERY, "gone")
            if not state.lost:
                return lost
            return Fault(FaultKind.RECOVERY, "does not open", besides=(lost,))

        report = explore_power_loss(saves(2).recording(), MODELS["ext4"], both, folder=str(tmp_path / "state"))

        one, other = report.findings
        assert (one.fault.kind, other.fault.kind) == (FaultKind.RECOVERY, FaultKind.LOST_IN_RECOVERY)
        assert (len(one.lost), len(other.lost)) == (1, 0)
        assert one.count < other.count == report.tried


class TestTimeline:
    def test_each_operation_has_its_fate(self, tmp_path: Path) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.invoke("1")
        log.write("a", b"+" * PAGE)
        log.fsync("a")
        log.create("s")
        log.write("a", b"*" * 2 * PAGE)
        log.acknowledge("1")

        def torn(folder: str, state: State) -> Fault | None:
            data = Path(folder, "a").read_bytes()
            there = Path(folder, "s").exists() and state.acknowledged
            return Fault(FaultKind.MIXED, "half") if there and data[0] != data[-1] == 0x2A else None

        report = explore_power_loss(log.recording(), MODELS["ext4"], torn, folder=str(tmp_path / "state"))

        [finding] = report.findings
        assert [(moment.words, moment.fate) for moment in finding.timeline] == [
            ("call `1`", "mark"),
            ("the data of `a` from byte 0 (4096 bytes)", "synced"),
            ("fsync of `a`", "sync"),
            ("the creation of `s`", "kept"),
            ("the data of `a` (8192 bytes)", "partly"),
            ("the acknowledgement of call `1`", "mark"),
        ]
        assert finding.timeline[1].to_dict() == {
            "position": 10,
            "words": "the data of `a` from byte 0 (4096 bytes)",
            "fate": "synced",
            "path": "a",
            "during": "1",
            "what": "write",
            "to_path": "",
            "size": 4096,
            "times": 1,
        }
        assert [(moment.what, moment.during) for moment in finding.timeline[:3:2]] == [("call", "1"), ("sync", "1")]


class TestBounds:
    def test_a_budget_that_runs_out_is_told_with_how_many_there_are_at_least(self, tmp_path: Path) -> None:
        report = explored(never_synced(60), "strict", tmp_path, budget=30)

        assert report.tried == 30
        assert report.at_least is not None
        assert report.at_least > 60, "the bound is what could be counted, and not twice the budget"
        assert f"sampled 30 of at least {report.at_least}" in str(report)

    def test_no_time_means_that_nothing_is_tried(self, tmp_path: Path) -> None:
        report = explored(saves(2), "ext4", tmp_path, seconds=0)

        assert report.tried == 0
        assert report.at_least is not None
        assert report.at_least > 0

    def test_the_ends_of_every_crash_position_are_judged_whatever_the_budget(self, tmp_path: Path) -> None:
        log = saves(12, fsync=True)

        report = explored(log, "journaled", tmp_path, budget=3)

        assert (report.tried > 12, report.missed) == (True, 0)
        assert report.at_least is not None

    def test_it_is_told_if_there_was_no_time_for_the_ends_of_every_crash_position(self, tmp_path: Path) -> None:
        report = explored(saves(12, fsync=True), "journaled", tmp_path, seconds=0)

        assert report.tried == 0
        assert report.missed > 12

    def test_a_late_failed_sync_is_followed_by_power_losses_after_it(self, tmp_path: Path) -> None:
        log = saves(40, fsync=True, folder=True)
        log.invoke("41")
        log.write("s", b"9" * 20)
        log.fsync("s", failed=True)
        since = log.operations[-1].entered
        log.fsync("s")
        log.acknowledge("41")
        seen: list[State] = []

        def look(folder: str, state: State) -> Fault | None:
            seen.append(state)
            return None

        explore_power_loss(
            log.recording(), MODELS["journaled"], look, budget=1, since=since, folder=str(tmp_path / "state")
        )

        assert {state.acknowledged[-1] for state in seen} == {"40", "41"}
        assert (b"40" * 20, "41") in {(state.tree.listing()["s"], state.acknowledged[-1]) for state in seen}

    def test_a_budget_without_an_end_does_not_count_for_ever(self, tmp_path: Path) -> None:
        report = explored(never_synced(60), "strict", tmp_path, budget=1_000_000, seconds=0)

        assert report.tried == 0
        assert report.at_least is not None
        assert report.at_least <= 600

    def test_a_folder_with_something_in_it_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "mine").touch()

        with pytest.raises(ValueError, match="holds something"):
            explored(saves(1), "ext4", tmp_path)

        assert (tmp_path / "state" / "mine").exists()

    def test_what_is_left_of_a_state_is_gone_before_the_next_and_at_the_end(self, tmp_path: Path) -> None:
        seen: list[bool] = []

        def littering(folder: str, state: State) -> Fault | None:
            seen.append(Path(folder, "litter").exists())
            Path(folder, "litter").touch()
            return None

        explore_power_loss(saves(2).recording(), MODELS["ext4"], littering, folder=str(tmp_path / "state"))

        assert len(seen) > 5
        assert not any(seen)
        assert not (tmp_path / "state").exists()

    def test_progress_is_told(self, tmp_path: Path) -> None:
        told: list[int] = []

        report = explore_power_loss(
            saves(1).recording(), MODELS["ext4"], judge, folder=str(tmp_path / "state"), on_state=told.append
        )

        assert told == list(range(1, report.tried + 1))

    def test_a_judge_is_asked_a_bounded_number_of_times_for_a_finding(self, tmp_path: Path) -> None:
        log = never_synced(60)
        log.acknowledge("1")
        asked: list[State] = []

        def four_are_lost(folder: str, state: State) -> Fault | None:
            asked.append(state)
            data = Path(folder, "a").read_bytes().ljust(6000, b"\0")[100::100]
            return Fault(FaultKind.CORRUPT, "four") if data.count(0) > 3 and state.acknowledged else None

        report = explore_power_loss(
            log.recording(), MODELS["strict"], four_are_lost, folder=str(tmp_path / "state"), budget=100
        )

        assert report.tried == 100
        assert len(asked) <= 160
        assert len(report.findings[0].lost) == 4


class TestHangs:
    @staticmethod
    def explored(fault: Fault, tmp_path: Path) -> tuple[PowerLossReport, int]:
        looks: list[State] = []

        def hangs_on_a_torn_file(folder: str, state: State) -> Fault | None:
            looks.append(state)
            return fault if judge(folder, state) else None

        folder = str(tmp_path / "state")
        return explore_power_loss(saves(6).recording(), MODELS["strict"], hangs_on_a_torn_file, folder=folder), len(
            looks
        )

    def test_after_three_states_the_rest_is_not_tried(self, tmp_path: Path) -> None:
        report, looks = self.explored(Fault(FaultKind.WEDGED, "it hangs", hung=True), tmp_path)

        assert (report.hung, report.tried) == (3, looks)
        assert report.at_least is not None
        assert [(each.fault.kind, each.count) for each in report.findings] == [("WEDGED", 3)]

    def test_what_ends_at_once_is_tried_to_the_end(self, tmp_path: Path) -> None:
        report, _ = self.explored(Fault(FaultKind.WEDGED, "a lock is in the way"), tmp_path)

        assert (report.hung, report.at_least) == (0, None)

    def test_no_time_is_spent_on_a_smaller_state_after_a_hang_in_a_second_power_loss(self, tmp_path: Path) -> None:
        report, looks = self.explored(Fault(FaultKind.RECOVERY, "it hangs", hung=True), tmp_path)

        assert (report.hung, report.tried) == (3, looks)

"""Each rule of a model, with an example in which it decides."""

import pytest

from n00dles_testing.powerloss.forcing import SMALL
from tests.n00dles_testing.powerloss.logs import PAGE, Log, files, left, models_with, models_with_acknowledged

LATER = {"ext4", "journaled", "strict"}
ALL = {"kill", *LATER}


class TestData:
    def test_what_is_written_may_be_lost_by_a_power_loss_and_not_by_a_kill(self) -> None:
        log = Log({"a": b"old", "b": b"old"})
        log.write("a", b"new")
        log.write("b", b"new")

        found = models_with(log, {"a": b"old", "b": b"new"})

        assert found == LATER

    def test_a_kill_leaves_what_was_done_up_to_some_call(self) -> None:
        log = Log({"a": b"old", "b": b"old"})
        log.write("a", b"new")
        log.write("b", b"new")

        found = files(log, "kill")

        assert found == [
            {"a": b"old", "b": b"old"},
            {"a": b"new", "b": b"old"},
            {"a": b"new", "b": b"new"},
        ]

    def test_a_kill_cuts_a_long_write_where_a_page_ends(self) -> None:
        log = Log({"a": b"-" * 8196})
        log.write("a", b"+" * 8191, offset=5)

        found = files(log, "kill")

        assert [listing["a"] for listing in found] == [
            b"-" * 8196,
            b"-" * 5 + b"+" * 4091 + b"-" * 4100,
            b"-" * 5 + b"+" * 8187 + b"-" * 4,
            b"-" * 5 + b"+" * 8191,
        ]

    def test_a_short_write_is_not_cut_by_a_kill(self) -> None:
        log = Log({"a": b"-" * 8192})
        log.write("a", b"+" * PAGE, offset=100)

        found = files(log, "kill")

        assert len(found) == 2

    @pytest.mark.parametrize("model", sorted(LATER))
    def test_a_page_may_be_torn_at_sectors_and_nowhere_else(self, model: str) -> None:
        log = Log({"a": b"-" * PAGE})
        log.write("a", b"+" * 1200, offset=100)

        found = {listing["a"] for listing in files(log, model)}

        first = b"-" * 100 + b"+" * 412 + b"-" * (PAGE - 512)
        last = b"-" * 1024 + b"+" * 276 + b"-" * (PAGE - 1300)
        assert {first, last} <= found
        assert all(
            value[start:end] in (b"-" * (end - start), b"+" * (end - start))
            for value in found
            if isinstance(value, bytes)
            for start, end in ((100, 512), (512, 1024), (1024, 1300))
        )

    @pytest.mark.parametrize("how", ["fsync", "fdatasync", "sync"])
    def test_a_sync_forces_data(self, how: str) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.sync() if how == "sync" else getattr(log, how)("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        # By POSIX, sync() may return before it is done.
        assert found == ({"strict"} if how == "sync" else set())

    def test_a_sync_forces_data_of_its_own_file_only(self) -> None:
        log = Log({"a": b"old", "b": b"old"})
        log.write("a", b"new")
        log.fsync("b")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old", "b": b"old"})

        assert found == LATER

    def test_a_sync_forces_no_write_that_had_not_returned(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a")
        log.overlap()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        assert found == LATER


class TestSyncsOfAPart:
    def test_a_write_that_syncs_forces_its_own_pages_only(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.write("a", b"+" * 10, offset=PAGE)
        log.write_synced("a", b"h" * 10)
        log.acknowledge("1")

        body = models_with_acknowledged(log, {"a": b"h" * 10 + b"-" * (2 * PAGE - 10)})
        head = models_with_acknowledged(log, {"a": b"-" * PAGE + b"+" * 10 + b"-" * (PAGE - 10)})

        assert (body, head) == (LATER, set())

    def test_a_page_is_synced_whole(self) -> None:
        log = Log({"a": b"-" * PAGE})
        log.write("a", b"+" * 10, offset=100)
        log.write_synced("a", b"h" * 10)
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"h" * 10 + b"-" * (PAGE - 10)})

        assert found == set()

    def test_of_a_write_over_several_pages_a_part_can_be_forced(self) -> None:
        log = Log({"a": b"-" * 3 * PAGE})
        log.write("a", b"+" * 3 * PAGE)
        log.sync_part("a", PAGE, PAGE + 1)
        log.acknowledge("1")

        found = {
            bytes(listing["a"][::PAGE])
            for listing, state in left(log, "journaled")
            if state.acknowledged and isinstance(listing["a"], bytes)
        }

        assert found == {b"-+-", b"++-", b"-++", b"+++"}

    def test_what_is_forced_of_a_write_is_not_told_as_lost(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.write("a", b"+" * 2 * PAGE)
        log.sync_part("a", 0, PAGE)

        words = [
            [lost.words for lost in state.lost]
            for listing, state in left(log, "ext4")
            if listing["a"] == b"+" * PAGE + b"-" * PAGE
        ]

        assert words == [["the data of `a` from byte 4096 (4096 bytes)"]]

    def test_an_append_that_syncs_forces_a_gap_of_zeros_before_it_and_no_data_in_the_gap(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"+" * PAGE)
        log.write_synced("a", b"end", offset=PAGE)
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": bytes(PAGE) + b"end"})

        assert found == LATER

    def test_a_cut_is_forced_with_any_part(self) -> None:
        log = Log({"a": b"-" * 3 * PAGE})
        log.truncate("a", 2 * PAGE)
        log.write_synced("a", b"h")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"h" + b"-" * (3 * PAGE - 1)})

        assert found == set()

    def test_growth_in_another_part_commits_nothing(self) -> None:
        log = Log({"a": b"-" * PAGE})
        log.create("b")
        log.append("a", b"+" * 10)
        log.write_synced("a", b"h")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"h" + b"-" * (PAGE - 1)})

        assert found == LATER


class TestSizes:
    def test_a_file_grows_without_its_data_unless_the_file_system_writes_data_first(self) -> None:
        log = Log({"a": b"old"})
        log.append("a", b"+" * 20)

        found = models_with(log, {"a": b"old" + bytes(20)})

        assert found == {"journaled", "strict"}

    def test_a_file_that_was_cut_grows_again(self) -> None:
        log = Log({"a": b"12345678"})
        log.truncate("a", 0)
        log.fsync("a")
        log.write("a", b"new")

        found = models_with(log, {"a": bytes(3)})

        assert found == {"journaled", "strict"}

    def test_a_lost_page_before_a_kept_one_is_a_hole_of_zeros(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"+" * 2 * PAGE)

        found = models_with(log, {"a": bytes(PAGE) + b"+" * PAGE})

        assert found == LATER

    def test_a_file_that_has_not_grown_shows_none_of_the_data_beyond_its_end(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"+" * 2 * PAGE)

        found = models_with(log, {"a": b"+" * PAGE})

        assert found == ALL

    @pytest.mark.parametrize("old", [b"", b"-" * 700])
    def test_a_file_does_not_grow_by_sectors(self, old: bytes) -> None:
        log = Log({"a": old})
        log.append("a", b"+" * 2 * PAGE)

        found = {
            len(data) for model in LATER for listing in files(log, model) if isinstance(data := listing["a"], bytes)
        }

        assert found == {len(old), PAGE, 2 * PAGE, len(old) + 2 * PAGE}

    def test_a_torn_page_may_have_new_bytes_before_the_old_end_only(self) -> None:
        log = Log({"a": b"-" * 700})
        log.write("a", b"+" * 2000)

        found = models_with(log, {"a": b"+" * 512 + b"-" * 188})

        assert found == LATER

    @pytest.mark.parametrize("offset", [0, PAGE])
    def test_what_is_written_after_a_cut_does_not_stand_before_what_was_cut_off(self, offset: int) -> None:
        log = Log({"a": b"-" * 3 * PAGE})
        log.truncate("a", 0)
        log.write("a", b"+" * PAGE, offset=offset)

        found = models_with(log, {"a": b"-" * offset + b"+" * PAGE + b"-" * (2 * PAGE - offset)})

        assert found == {"strict"}

    def test_a_slot_that_is_emptied_and_written_is_old_or_new(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.truncate("a", 0)
        log.append("a", b"+" * 2 * PAGE)

        found = {
            model: {data.strip(b"\0") for listing in files(log, model) if isinstance(data := listing["a"], bytes)}
            for model in sorted(LATER)
        }

        mixed = {b"+" * PAGE + b"-" * PAGE, b"-" * PAGE + b"+" * PAGE}
        assert not mixed & (found["ext4"] | found["journaled"])
        assert mixed <= found["strict"]

    def test_a_page_of_which_a_part_stayed_is_written_where_it_was(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.truncate("a", 100)
        log.write("a", b"+" * 100)

        found = models_with(log, {"a": b"+" * 100 + b"-" * (2 * PAGE - 100)})

        assert found == LATER

    def test_what_is_written_after_a_file_was_made_longer_is_not_there_without_its_length(self) -> None:
        log = Log({"a": b""})
        log.truncate("a", 2 * PAGE)
        log.write("a", b"+" * 10)

        found = models_with(log, {"a": b"+" * 10})

        assert found == {"strict"}

    def test_a_zero_length_write_loses_nothing(self) -> None:
        log = Log({"a": b"old"})
        log.append("a", b"")

        found = [files(log, model) for model in sorted(ALL)]

        assert found == [[{"a": b"old"}]] * 4


class TestNames:
    def test_names_reach_the_disk_in_their_order_where_there_is_a_journal(self) -> None:
        log = Log()
        log.create("a")
        log.create("b")

        found = models_with(log, {"b": b""})

        assert found == {"strict"}

    def test_names_made_at_the_same_time_have_no_order(self) -> None:
        log = Log()
        log.create("a")
        log.create("b")
        log.overlap()

        found = models_with(log, {"b": b""})

        assert found == LATER

    def test_a_cut_is_in_order_with_names(self) -> None:
        log = Log({"a": b"old"})
        log.create("b")
        log.truncate("a", 0)

        found = models_with(log, {"a": b""})

        assert found == {"strict"}

    def test_the_name_of_a_synced_file_is_not_promised_by_posix(self) -> None:
        log = Log()
        log.create("a")
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {})

        assert found == {"strict"}

    def test_a_sync_of_a_file_commits_what_was_in_the_journal_before_its_own_last_change(self) -> None:
        log = Log({"a": b"old"})
        log.rename("a", "b")
        log.create("c")
        log.fsync("c")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        assert found == {"strict"}

    def test_a_sync_of_a_file_commits_nothing_after_its_own_last_change(self) -> None:
        log = Log({"c": b"old"})
        log.write("c", b"new")
        log.create("a")
        log.fsync("c")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"c": b"new"})

        assert found == LATER

    def test_an_overwrite_is_a_change_for_fsync_and_not_for_fdatasync(self) -> None:
        full, data_only = (Log({"c": b"old"}) for _ in range(2))
        for log in (full, data_only):
            log.create("a")
            log.write("c", b"new")
        full.fsync("c")
        data_only.fdatasync("c")
        for log in (full, data_only):
            log.acknowledge("1")

        found = [models_with_acknowledged(log, {"c": b"new"}) for log in (full, data_only)]

        assert found == [{"strict"}, LATER]

    def test_a_rename_is_a_change_for_fsync_and_not_for_fdatasync(self) -> None:
        full, data_only = (Log({"a": b"old"}) for _ in range(2))
        for log in (full, data_only):
            log.rename("a", "b")
        full.fsync("b")
        data_only.fdatasync("b")
        for log in (full, data_only):
            log.acknowledge("1")

        found = [models_with_acknowledged(log, {"a": b"old"}) for log in (full, data_only)]

        assert found == [{"strict"}, LATER]

    def test_an_append_is_a_change_for_fdatasync_as_well(self) -> None:
        log = Log({"c": b"old"})
        log.create("a")
        log.append("c", b"new")
        log.fdatasync("c")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"c": b"oldnew"})

        assert found == {"strict"}

    @pytest.mark.parametrize("allocated", [False, True])
    def test_a_write_into_a_hole_or_what_fallocate_has_set_aside_is_a_change_for_fdatasync(
        self, allocated: bool
    ) -> None:
        log = Log({"c": b""})
        log.truncate("c", 2 * PAGE, allocated=allocated)
        log.fsync("c")
        log.create("a")
        log.write("c", b"new")
        log.fdatasync("c")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"c": b"new".ljust(2 * PAGE, b"\0")})

        assert found == {"strict"}

    def test_a_second_write_to_the_same_page_is_no_change_for_fdatasync(self) -> None:
        log = Log({"c": b""})
        log.truncate("c", 2 * PAGE)
        log.write("c", b"old")
        log.fsync("c")
        log.create("a")
        log.write("c", b"new")
        log.fdatasync("c")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"c": b"new".ljust(2 * PAGE, b"\0")})

        assert found == LATER

    def test_a_sync_of_a_folder_forces_its_names(self) -> None:
        log = Log()
        log.create("a")
        log.fsync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {})

        assert found == set()

    def test_a_sync_of_a_folder_forces_no_names_in_another_one_by_posix(self) -> None:
        log = Log()
        log.mkdir("d")
        log.fsync()
        log.create("d/a")
        log.create("b")
        log.fsync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"d": None, "b": b""})

        assert found == {"strict"}

    @pytest.mark.parametrize("synced", ["", "d"])
    def test_a_rename_between_folders_is_forced_by_either_and_is_never_half_done(self, synced: str) -> None:
        log = Log({"a": b"old"})
        log.mkdir("d")
        log.fsync()
        log.rename("a", "d/a")
        log.fsync(synced)
        log.acknowledge("1")

        before = models_with_acknowledged(log, {"a": b"old", "d": None})
        both = models_with(log, {"a": b"old", "d": None, "d/a": b"old"})
        neither = models_with(log, {"d": None})

        assert (before, both, neither) == (set(), set(), set())

    def test_what_is_in_a_lost_folder_is_lost(self) -> None:
        log = Log()
        log.mkdir("d")
        log.create("d/a")
        log.append("d/a", b"new")
        log.fsync("d/a")
        log.fsync("d")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {})

        assert found == {"strict"}


class TestReplacing:
    @staticmethod
    def saved(old: bytes | None, new: bytes) -> Log:
        log = Log({} if old is None else {"a": old})
        log.create("t")
        log.append("t", new)
        log.rename("t", "a")
        return log

    def test_a_rename_over_a_file_takes_the_data_along_under_ext4(self) -> None:
        log = self.saved(b"old", b"new")

        found = models_with(log, {"a": b""})

        assert found == {"journaled", "strict"}

    def test_a_rename_to_a_new_name_takes_no_data_along(self) -> None:
        log = self.saved(None, b"new")

        found = models_with(log, {"a": b""})

        assert found == LATER

    @pytest.mark.parametrize(("size", "expected"), [(SMALL, {"journaled", "strict"}), (SMALL + 1, LATER)])
    def test_a_rename_of_a_large_file_takes_no_data_along(self, size: int, expected: set[str]) -> None:
        log = self.saved(b"old", b"+" * size)

        found = models_with(log, {"a": b""}, budget=60)

        assert found == expected

    def test_a_forced_rename_has_forced_the_data_under_ext4(self) -> None:
        log = self.saved(b"old", b"new")
        log.fsync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b""})

        assert found == {"journaled", "strict"}

    @pytest.mark.parametrize("sync", ["fsync", "fdatasync"])
    def test_what_is_written_over_synced_data_is_not_taken_along(self, sync: str) -> None:
        log = Log({"a": b"old"})
        log.create("t")
        log.append("t", b"1")
        getattr(log, sync)("t")
        log.write("t", b"2")
        log.rename("t", "a")

        found = models_with(log, {"a": b"1"})

        assert found == LATER

    @pytest.mark.parametrize(("allocated", "expected"), [(False, {"journaled", "strict"}), (True, LATER)])
    def test_what_is_written_where_fallocate_has_set_blocks_aside_is_not_taken_along(
        self, allocated: bool, expected: set[str]
    ) -> None:
        log = Log({"a": b"old"})
        log.create("t")
        log.truncate("t", 3, allocated=allocated)
        log.write("t", b"new")
        log.rename("t", "a")

        found = models_with(log, {"a": bytes(3)})

        assert found == expected

    def test_all_writes_to_a_page_that_is_new_are_taken_along(self) -> None:
        log = Log({"a": b"old"})
        log.create("t")
        log.append("t", b"1")
        log.append("t", b"2")
        log.rename("t", "a")

        found = models_with(log, {"a": b"1"})

        assert "ext4" not in found

    def test_what_is_written_after_the_rename_is_not_taken_along(self) -> None:
        log = self.saved(b"old", b"new")
        log.append("a", b"er")

        found = models_with(log, {"a": b"new"})

        assert "ext4" in found


class TestFailedSyncs:
    def test_what_was_pending_when_a_sync_failed_is_forced_by_no_later_one(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a", failed=True)
        log.fsync("a")
        log.acknowledge("1")

        lost = models_with_acknowledged(log, {"a": b"old"})
        kept = models_with_acknowledged(log, {"a": b"new"})

        assert (lost, kept) == (LATER, ALL)

    def test_a_sync_of_everything_forces_no_orphan_either(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a", failed=True)
        log.sync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        assert found == LATER

    def test_a_failed_sync_of_everything_leaves_orphans_of_all_files(self) -> None:
        log = Log({"a": b"old", "b": b"old"})
        for path in "ab":
            log.write(path, b"new")
        log.sync(failed=True)
        log.sync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old", "b": b"old"})

        assert found == LATER

    def test_after_a_failed_sync_of_everything_the_journal_still_has_the_names(self) -> None:
        log = Log()
        log.create("a")
        log.sync(failed=True)
        log.sync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {})

        assert found == {"strict"}

    def test_after_a_failed_sync_the_journal_still_has_the_cut(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.truncate("a", 0)
        log.fsync("a", failed=True)
        log.write("a", b"new")
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"new".ljust(PAGE, b"-") + b"-" * PAGE})

        assert found == {"strict"}

    def test_an_orphan_gets_to_the_disk_with_the_next_write_into_its_page(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"one\n")
        log.fsync("a", failed=True)
        log.append("a", b"two\n")
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": bytes(4) + b"two\n"})

        assert found == {"strict"}

    def test_an_orphan_is_there_if_what_was_written_into_its_page_later_is(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"one\n")
        log.fsync("a", failed=True)
        log.append("a", b"two\n")

        found = [models_with(log, {"a": data}) for data in (bytes(4) + b"two\n", b"one\ntwo\n", b"", b"one\n")]

        assert found == [{"strict"}, ALL, ALL, ALL]

    def test_what_was_written_while_a_sync_failed_may_have_been_written_before_it(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"one\n")
        log.append("a", b"two\n")
        log.fsync("a", failed=True)
        log.overlap()

        found = models_with(log, {"a": bytes(4) + b"two\n"})

        assert found == LATER

    def test_an_orphan_stays_lost_in_the_pages_that_are_not_written_again(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"+" * (PAGE + 10))
        log.fsync("a", failed=True)
        log.append("a", b"two\n")
        log.fsync("a")
        log.acknowledge("1")

        first = models_with_acknowledged(log, {"a": bytes(PAGE) + b"+" * 10 + b"two\n"})
        second = models_with_acknowledged(log, {"a": b"+" * PAGE + bytes(10) + b"two\n"})

        assert (first, second) == (LATER, {"strict"})

    def test_a_sync_of_nothing_new_writes_no_page_again(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.write("a", b"+" * 2 * PAGE)
        log.sync_part("a", 0, PAGE)
        log.fsync("a", failed=True)
        log.write("a", b"bad")
        log.fsync("a", failed=True)
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"+" * PAGE + b"-" * PAGE})

        assert found == LATER

    def test_a_failed_sync_of_a_part_leaves_orphans_there_only(self) -> None:
        log = Log({"a": b"-" * 2 * PAGE})
        log.write("a", b"+" * 2 * PAGE)
        log.sync_part("a", 0, 10, failed=True)
        log.fsync("a")
        log.acknowledge("1")

        found = [
            models_with_acknowledged(log, {"a": content * PAGE + other * PAGE})
            for content, other in [(b"-", b"+"), (b"+", b"-"), (b"-", b"-")]
        ]

        assert found == [LATER, set(), set()]

    def test_what_is_written_again_after_a_failed_sync_is_forced(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a", failed=True)
        log.write("a", b"new")
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        assert found == set()

    def test_an_orphan_does_not_come_over_what_was_written_and_forced_after_it(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"bad")
        log.fsync("a", failed=True)
        log.write("a", b"new")
        log.fsync("a")
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"bad"})

        assert found == set()

    def test_what_a_sync_has_forced_is_no_orphan_of_a_later_one(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a")
        log.fsync("a", failed=True)
        log.acknowledge("1")

        found = models_with_acknowledged(log, {"a": b"old"})

        assert found == set()

    def test_names_are_orphans_of_a_failed_sync_of_their_folder(self) -> None:
        log = Log()
        log.create("a")
        log.fsync(failed=True)
        log.fsync()
        log.acknowledge("1")

        found = models_with_acknowledged(log, {})

        assert found == LATER

    def test_the_data_of_an_orphan_is_not_taken_along_by_a_rename(self) -> None:
        log = Log({"a": b"old"})
        log.create("t")
        log.append("t", b"new")
        log.fsync("t", failed=True)
        log.rename("t", "a")

        found = models_with(log, {"a": b""})

        assert found == LATER

"""Which states are tried: at which moments, how many, and in which order."""

import random
from itertools import islice

import pytest

from n00dles_testing.powerloss import subsets
from n00dles_testing.powerloss.epochs import Epoch, epochs
from n00dles_testing.powerloss.models import MODELS
from n00dles_testing.powerloss.state import State
from n00dles_testing.powerloss.states import candidates, states
from n00dles_testing.powerloss.steps import steps
from n00dles_testing.powerloss.subsets import choices
from tests.n00dles_testing.powerloss.logs import PAGE, Log, files, left


def saves(number: int = 3, *, fsync: bool = False, folder: bool = False) -> Log:
    """A store that writes a file aside and renames it."""
    log = Log()
    for save in range(1, number + 1):
        log.invoke(str(save))
        log.create("s.tmp")
        log.append("s.tmp", b"%d" % save * 20)
        if fsync:
            log.fsync("s.tmp")
        log.rename("s.tmp", "s")
        if folder:
            log.fsync()
        log.acknowledge(str(save))
    return log


def never_synced(operations: int) -> Log:
    log = Log({"a": b""})
    for number in range(operations):
        log.append("a", bytes([number % 256]) * 100)
    return log


def made_up(log: Log, model: str = "ext4") -> list[Epoch]:
    recording = log.recording()
    return list(epochs(recording.base, steps(recording.base, recording.operations), MODELS[model]))


class TestMoments:
    def test_the_power_fails_before_each_sync_returns_and_at_the_end(self) -> None:
        log = saves(2, fsync=True, folder=True)

        found = [epoch.position for epoch in made_up(log)]

        syncs = [operation.exited for operation in log.operations if hasattr(operation, "data_only")]
        assert found == [*syncs, log.operations[-1].entered + 1]

    def test_a_sync_after_which_nothing_new_was_made_is_no_moment_of_its_own(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a")
        log.fsync()

        found = [epoch.position for epoch in made_up(log)]

        assert found == [log.operations[1].exited]

    def test_a_failed_sync_is_no_moment_of_its_own(self) -> None:
        log = Log({"a": b"old"})
        log.write("a", b"new")
        log.fsync("a", failed=True)

        found = [len(epoch.parts) for epoch in made_up(log)]

        assert found == [1]

    def test_what_was_acknowledged_before_the_next_sync_counts_for_what_was_lost_before_it(self) -> None:
        log = saves(1, fsync=True)

        found = [state.acknowledged for listing, state in left(log, "ext4") if "s" not in listing]

        assert ("1",) in found

    def test_the_crash_is_told_as_early_as_it_can_be(self) -> None:
        log = saves(2, fsync=True)

        lost = [
            [one.words for one in state.lost]
            for listing, state in left(log, "ext4")
            if "s" not in listing and state.acknowledged == ("1",)
        ]

        assert min(lost, key=len) == ["the rename of `s.tmp` to `s` in call `1`"]

    def test_calls_that_began_after_the_crash_are_not_invoked(self) -> None:
        log = saves(2, fsync=True)

        found = {(state.acknowledged, state.invoked) for _, state in left(log, "ext4")}

        assert (("1",), ("1",)) in found
        assert all(set(acknowledged) <= set(invoked) for acknowledged, invoked in found)

    def test_a_killed_process_has_been_told_what_it_was_told_before_the_next_call(self) -> None:
        log = saves(1)

        found = [(listing, state.acknowledged) for listing, state in left(log, "kill")]

        assert found == [
            ({}, ()),
            ({"s.tmp": b""}, ()),
            ({"s.tmp": b"1" * 20}, ()),
            ({"s": b"1" * 20}, ("1",)),
        ]


class TestChoice:
    def test_no_two_states_have_the_same_files_and_acknowledgements(self) -> None:
        log = saves(3, fsync=True)

        found = [(state.tree.digest(), state.acknowledged[-1:]) for _, state in left(log, "strict")]

        assert len(found) == len(set(found)) > 20

    def test_the_same_seed_gives_the_same_states_in_the_same_order(self) -> None:
        log = never_synced(60)

        first, second, other = (
            [state.tree.digest() for state in states(log.recording(), MODELS["strict"], 300, seed)]
            for seed in (7, 7, 8)
        )

        assert first == second
        assert first != other

    @pytest.mark.parametrize("model", sorted(MODELS))
    def test_there_are_no_more_states_than_the_budget(self, model: str) -> None:
        log = never_synced(60)

        found = list(states(log.recording(), MODELS[model], 50))

        assert len(found) == 50

    def test_a_small_budget_gets_to_every_moment(self) -> None:
        log = saves(5, fsync=True, folder=True)

        found = {state.acknowledged[-1:] for _, state in left(log, "strict", budget=20)}

        assert found == {(), ("1",), ("2",), ("3",), ("4",), ("5",)}

    def test_two_lost_pages_of_one_write_are_found_at_random(self) -> None:
        log = Log({"a": b"-" * 9 * PAGE})
        log.write("a", b"+" * 9 * PAGE)

        found = {bytes(listing["a"][::PAGE]) for listing in files(log, "ext4") if isinstance(listing["a"], bytes)}

        assert len(found) > 300

    def test_many_operations_without_a_sync_are_sampled(self) -> None:
        [epoch] = made_up(never_synced(200))

        found = list(choices([epoch], random.Random(1)))

        assert 200 < len(found) < 2200

    def test_a_lost_operation_before_the_last_one_finds_what_prefixes_do_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = saves(1)

        def corrupt_among_rules() -> bool:
            [epoch] = made_up(log)
            few = islice(choices([epoch], random.Random(0)), 25)
            return any(epoch.tree(epoch.legal(choice)).listing().get("s") == b"" for _, choice in few)

        monkeypatch.setattr(subsets, "_sides", lambda epoch: iter(()))
        monkeypatch.setattr(subsets, "_units", lambda epoch, rng: iter(()))
        with_rule = corrupt_among_rules()
        monkeypatch.setattr(subsets, "_omissions", lambda epoch, end, omitted: iter(()))
        without_rule = corrupt_among_rules()

        assert (with_rule, without_rule) == (True, False)

    def test_a_lost_folder_or_link_leaves_the_kinds_of_what_stays(self) -> None:
        log = Log()
        log.mkdir("d")
        log.create("d/a")
        log.rename("d", "e")

        found = files(log, "strict")

        assert {"e": None} in found
        assert {"e": None, "e/a": b""} in found

    def test_a_further_name_may_be_lost_without_the_first(self) -> None:
        log = Log({"a": b"old"})
        log.link("a", "b")
        log.unlink("a")

        found = files(log, "strict")

        assert {} in found
        assert {"a": b"old", "b": b"old"} in found

    def test_a_kill_comes_at_any_time_even_where_there_are_more_moments_than_the_budget(self) -> None:
        log = never_synced(500)

        found = [len(data) for listing, _ in left(log, "kill", budget=50) if isinstance(data := listing["a"], bytes)]

        assert len(found) == 50
        assert min(found) < 10_000
        assert max(found) > 40_000

    def test_a_kill_between_calls_comes_before_one_within_a_call(self) -> None:
        log = Log({"a": b""})
        log.append("a", b"+" * 100 * PAGE)
        log.append("a", b"+" * 100 * PAGE)

        found = {len(data) for listing, _ in left(log, "kill", budget=9) if isinstance(data := listing["a"], bytes)}

        assert {0, 100 * PAGE, 200 * PAGE} <= found


class TestSample:
    @staticmethod
    def tried(seed: int, more: int) -> list[State]:
        """Return so many states of a store that syncs a lot, besides those which are needed."""
        found = candidates(saves(12, fsync=True, folder=True).recording(), MODELS["strict"], 1000, seed)
        return [each.state for each in islice((each for each in found if not each.needed), more)]

    def test_another_seed_tries_others(self) -> None:
        first, second = ({state.tree.digest() for state in self.tried(seed, 12)} for seed in (0, 3))

        assert first != second
        assert first != {state.tree.digest() for state in self.tried(0, 1000)}

    def test_a_small_one_is_of_all_positions_and_of_pairs(self) -> None:
        found = [self.tried(seed, 12) for seed in range(10)]

        assert all(len({len(state.acknowledged) for state in each}) > 5 for each in found)
        assert all(any(len(state.lost) > 0 and state.tree.listing() for state in each) for each in found)

    def test_what_every_position_has_at_the_least_and_the_most_comes_first(self) -> None:
        found = candidates(saves(3).recording(), MODELS["strict"], 1000, 0)

        assert [each.needed for each in islice(found, 3)] == [True, True, False]


class TestLost:
    @staticmethod
    def lost(log: Log, model: str, listing: dict[str, bytes | None]) -> State:
        return next(state for found, state in left(log, model) if found == listing)

    def test_missing_bytes_are_told_by_the_name_that_the_file_has_now(self) -> None:
        log = saves(1)

        state = self.lost(log, "ext4", {"s": b""})

        [lost] = state.lost
        assert (lost.words, lost.path) == ("the data of `s` (20 bytes) in call `1`", "s")
        assert (lost.ranges, lost.whole, lost.zeros, lost.during) == (((0, 20),), True, False, "1")

    def test_a_torn_write_tells_the_part_that_is_missing(self) -> None:
        log = Log({"a": b"-" * 3 * PAGE})
        log.write("a", b"+" * 2 * PAGE, offset=PAGE)

        state = self.lost(log, "ext4", {"a": b"-" * PAGE + b"+" * PAGE + b"-" * PAGE})

        [lost] = state.lost
        assert lost.words == "the data of `a` from byte 8192 (4096 bytes)"
        assert (lost.ranges, lost.whole) == (((8192, 12288),), False)

    def test_zeros_are_told(self) -> None:
        log = Log({"a": b"old"})
        log.append("a", b"new")

        state = self.lost(log, "strict", {"a": b"old\0\0\0"})

        assert [lost.words for lost in state.lost] == ["the data of `a` from byte 3 (3 bytes) (zeros are in its place)"]

    def test_nothing_is_lost_where_everything_is_there(self) -> None:
        log = saves(2)

        state = self.lost(log, "strict", {"s": b"2" * 20})

        assert state.lost == ()

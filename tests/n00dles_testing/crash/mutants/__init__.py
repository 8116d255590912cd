"""Executors with one fault each: what a check has to catch, and no other check.

Each is the executor of n00dles with one thing that it does wrong, and names the clause that it breaks. `MUTANTS` are
those that are seen to be wrong with any pipeline that gives them an occasion; others need a certain one.
"""

from __future__ import annotations

from tests.n00dles_testing.crash.mutants.base import Around, Executor, Life, WholeStore
from tests.n00dles_testing.crash.mutants.composites import (
    AbandonsSiblings,
    ForgetsTheLimit,
    ForgetsTheRoutedNode,
    IgnoresTheLimit,
    RunsAllMembersAgain,
    TakesANodeForThePipeline,
    TakesTheOtherRoute,
)
from tests.n00dles_testing.crash.mutants.durability import (
    AlwaysCallsTwice,
    CallsTwice,
    DrawsANewKey,
    ForgetsTheLastNode,
    ForgetsTheResult,
    GivesAllNodesOneKey,
    HoldsBackTheFirstMember,
    ResumesOnlyOnce,
    RunsAgain,
    SavesAtTheJoin,
    SavesWhenTheRunEnds,
)
from tests.n00dles_testing.crash.mutants.failures import (
    BlamesTheNode,
    CallsAgainWhenTheSaveFailed,
    CountsAttemptsPerLife,
    CountsNoLives,
    ForgetsWhatItHadInHand,
    GivesUpAfterADeath,
    GoesOnWhenCancelled,
    LeavesItsWorkRunning,
    LosesTheRecordOfAFailedRun,
    NamesNobody,
    RefusesAFailedRun,
    StoresFailuresAsOutputs,
    StoresText,
    TakesACancellationForAFailure,
)
from tests.n00dles_testing.crash.mutants.identity import DoesNotCompare, KnowsNoOther
from tests.n00dles_testing.crash.mutants.sameness import (
    AsksAnotherQuestion,
    FailsToResume,
    ForgetsTheCost,
    HangsOnResume,
    LosesItsTraces,
    NeverCountsTokens,
    PassesDicts,
    ReportsSuccessWithNothingRun,
    ReturnsText,
)
from tests.n00dles_testing.crash.mutants.vacuous import OffersNoKey, SaysNothing

__all__ = [
    "MUTANTS",
    "AlwaysCallsTwice",
    "Around",
    "AsksAnotherQuestion",
    "CallsTwice",
    "DrawsANewKey",
    "Executor",
    "FailsToResume",
    "ForgetsTheCost",
    "ForgetsTheLastNode",
    "ForgetsTheResult",
    "HangsOnResume",
    "HoldsBackTheFirstMember",
    "Life",
    "LosesItsTraces",
    "NeverCountsTokens",
    "OffersNoKey",
    "PassesDicts",
    "ReportsSuccessWithNothingRun",
    "ReturnsText",
    "RunsAgain",
    "SavesAtTheJoin",
    "SavesWhenTheRunEnds",
    "SaysNothing",
    "TakesTheOtherRoute",
    "WholeStore",
]

MUTANTS: tuple[Executor, ...] = (
    SavesWhenTheRunEnds(),
    ForgetsTheLastNode(),
    HoldsBackTheFirstMember(),
    DrawsANewKey(),
    GivesAllNodesOneKey(),
    ReturnsText(),
    FailsToResume(),
    PassesDicts(),
    AsksAnotherQuestion(),
    ForgetsTheCost(),
    LosesItsTraces(),
    RunsAllMembersAgain(),
    IgnoresTheLimit(),
    ForgetsTheLimit(),
    TakesTheOtherRoute(),
    ForgetsTheRoutedNode(),
    TakesANodeForThePipeline(),
    DoesNotCompare(),
    StoresFailuresAsOutputs(),
    LosesTheRecordOfAFailedRun(),
    RefusesAFailedRun(),
    CountsAttemptsPerLife(),
    CountsNoLives(),
    GivesUpAfterADeath(),
    BlamesTheNode(),
    CallsAgainWhenTheSaveFailed(),
    ForgetsWhatItHadInHand(),
    GoesOnWhenCancelled(),
    LeavesItsWorkRunning(),
    TakesACancellationForAFailure(),
    AbandonsSiblings(),
    StoresText(),
    NamesNobody(),
    KnowsNoOther(),
    RunsAgain(),
    ForgetsTheResult(),
    ResumesOnlyOnce(),
)

reference = Executor()
offers_no_key = OffersNoKey()
forgets_the_last_node = ForgetsTheLastNode()
hangs_on_resume = HangsOnResume()

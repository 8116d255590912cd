"""Campaigns: an executor's contract (E01 to E18), proven on generated pipelines.

    from n00dles_testing.campaign import prove

    report = prove("mypackage.loop:executor", examples=1000)
    print(report.verdict, report.broken)

A campaign draws pipelines and plans (`subjects`, `plans`), lives them in this process (`stage`), and holds each against
an undisturbed run, the clauses of `crash.clauses`, and an oracle that knows the pipeline alone (`judgement`, `oracle`).
Clauses that are not about a disturbed life have families of their own (`names_family`, `identity_family`, …).
"""

from __future__ import annotations

from .campaign import DEFAULT_EXAMPLES, prove, replay
from .report import CampaignError, CampaignProgress, CampaignReport
from .tokens import CampaignToken

__all__ = [
    "DEFAULT_EXAMPLES",
    "CampaignError",
    "CampaignProgress",
    "CampaignReport",
    "CampaignToken",
    "prove",
    "replay",
]

"""A store that breaks a promise without a crash does not end a campaign.

Symptom: `tornpage explore` ended with a traceback, and its workers with exit code 1. The runs of the shard and their
failures were lost.
Cause: each shard makes a violation from a right recovery to test all judges. The broken store had no right recovery.
Fix: no judge has proved itself then, which makes a campaign vacuous at best. The runs report the broken promise
(properties/explore/crashes/violations.py, `judges_that_go_red`).
Found by: reading.
"""

from dataclasses import replace

import pytest

from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes import violations
from tornpage.properties.explore.crashes.campaign import Plan, run_campaign
from tornpage.properties.program.case import Settings

BUG = "RMQ-B03"


def test_the_failures_of_its_histories_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(violations, "_SETTINGS", replace(violations._SETTINGS, bug=BUG))
    plan = Plan(Settings(bug=BUG), seed=1, states=30, failures_max=1, shard_states=30)
    with choose_tracker("auto") as tracker:
        assert violations.judges_that_go_red(tracker) == []
        result = run_campaign(plan, tracker=tracker, progress=lambda states, seconds: None)
    assert result.verdict is Verdict.BROKEN
    assert result.failure is not None
    assert result.failure.broken.contract == 4

"""A failure of a campaign fails in its replay too.

Symptom: four of 167 searches of a scoreboard ended with "a failure does not replay", a fault of the harness.
Cause: a run is executed first and then crashed at each of its events. Judges asked for keys of messages that were put
after the crash, which a replay does not have. All recoveries had the clock of the end of the session.
Fix: keys are those of the recovered log. The crash of a case says how much later its recovery was.
"""

import pytest

from tornpage.model.operations import Crash, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.score.trials import TrialKey, run_trial


@pytest.mark.parametrize("bug", ["equal-hashes", "newest-index-file-dropped"])
def test_what_a_campaign_finds_is_found_again(bug: str) -> None:
    row = run_trial(TrialKey(bug, "covering", 0, 0), 60.0, "cpu")
    assert (row.end, row.why) == ("killed", "")


def test_a_recovery_may_begin_later_than_its_crash() -> None:
    with choose_tracker("auto") as tracker:
        for kill in (True, False):
            case = Case(Settings(), (Put(), Crash(kill=kill, later_ms=86_400_000), Put()))
            assert Case.from_token(case.token()) == case
            assert replay(case, tracker=tracker) is None

"""Test that people read words where documents keep identifiers."""

from tornpage.properties.campaign.coverage import ALL_JUDGES
from tornpage.properties.explore.crashes.scheduling import required
from tornpage.reports.activation_names import shown_name, shown_names


def test_each_required_name_and_each_judge_has_words_of_its_own() -> None:
    names = sorted({*required("posix-strict"), *ALL_JUDGES})
    words = shown_names(names)
    assert len(set(words)) == len(names) > 60
    assert not [word for word in words if "_" in word or word.startswith(("rule", "judge"))]


def test_an_unknown_name_loses_its_prefix_and_its_underscores() -> None:
    assert shown_name("rule_fail_write") == "failing writes"
    assert shown_name("judge_of_tomorrow") == "check: of tomorrow"
    assert shown_name("aimed_sync_lost") == "I/O fault: sync lost"
    assert shown_name("a_new_fault") == "a new fault"

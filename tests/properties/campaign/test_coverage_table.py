"""Test the coverage table of a campaign: figures, rows, and text."""

from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.explore.crashes.campaign import CrashResult, Plan
from tornpage.properties.program.case import Settings
from tornpage.render.campaign import campaign_outcome

PLAN = Plan(Settings(), seed=1, states=5)


def result_of(*levels: str) -> CrashResult:
    return CampaignResult(Tally(levels=list(levels)))


def test_figures_and_rows_count_what_runs_had() -> None:
    result = result_of("durability=sync pulls=above_32 rule_flush=off", "durability=sync pulls=above_32")
    outcome, text = campaign_outcome(result, PLAN, out=None, command="tornpage explore crashes", verbose=True)
    assert outcome.figures["pairs_exercised"] == 3
    assert outcome.figures["threes_exercised"] == 1
    assert outcome.figures["pairs"] > 10_000
    rows = {(row["factor"], row["level"]): row["exercised"] for row in outcome.tables["pairs"]["rows"]}
    assert (rows["durability", "sync"], rows["durability", "async"], rows["pulls", "above_32"]) == (2, 0, 2)
    assert "3 of" in text
    assert "not exercised" not in text


def test_the_table_has_each_level_and_some_missing_pairs() -> None:
    _, text = campaign_outcome(
        result_of("durability=sync pulls=above_32"),
        PLAN,
        out=None,
        command="tornpage explore crashes",
        with_coverage=True,
    )
    lines = text.splitlines()
    [line] = [line for line in lines if line.split()[:2] == ["pulls", "above_32"]]
    assert line.split()[2] == "1"
    [count] = [line for line in lines if line.startswith("not exercised (20 of ")]
    assert len(lines) - lines.index(count) == 21
    assert any("durability=async with " in line for line in lines[lines.index(count) :])

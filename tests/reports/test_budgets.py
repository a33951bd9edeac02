"""Test policies against a budget, and the two forms of sweeps."""

import json
from pathlib import Path

import pytest

from tests.reports.kinds.kinds_of_pages import sweep, sweep_point
from tornpage.reports.errors import ReportError
from tornpage.reports.kinds import page_kind
from tornpage.reports.pages.simulation_page import Limits, build_simulation_page
from tornpage.reports.results.budgets import PolicyCost, against, costs_of_sweep, read_sweep
from tornpage.reports.results.tables import BudgetRecord

BUDGET = BudgetRecord(loss_ms=10.0, put_p99_us=2_000.0)


def cost(policy: str, p99_us: float, loss_ms: float, refused: int = 0) -> PolicyCost:
    return PolicyCost(policy, "a load", p99_us, loss_ms, 5, refused)


def test_the_policy_that_uses_least_of_the_budget_is_first_and_refused_puts_never_meet_it() -> None:
    rows = against(
        [cost("slow", 3_000, 0), cost("risky", 1, 20), cost("good", 200, 5), cost("refuses", 1, 0, refused=3)], BUDGET
    )
    assert [row.cost.policy for row in rows] == ["good", "slow", "risky", "refuses"]
    assert [row.meets for row in rows] == [True, False, False, False]
    assert [row.used for row in rows] == [0.5, 1.5, 2.0, None]


def test_a_budget_without_any_loss_is_met_by_policies_that_lose_nothing() -> None:
    strict = BudgetRecord(loss_ms=0.0, put_p99_us=2_000.0)
    assert [row.meets for row in against([cost("sync", 200, 0), cost("async", 1, 0.1)], strict)] == [True, False]


def test_a_put_that_waits_for_its_sync_is_not_lost_after_its_answer(tmp_path: Path) -> None:
    sync, timer = costs_of_sweep(read_sweep(sweep(tmp_path / "sweep"))[:2])
    assert (sync.loss_ms, sync.loss_messages) == (0.0, 0)
    assert (timer.loss_ms, timer.loss_messages) == (4.0, 60)


def test_the_page_of_a_sweep_opens_with_the_answer(tmp_path: Path) -> None:
    directory = sweep(tmp_path / "sweep")
    assert page_kind(directory) == "simulation"
    page = build_simulation_page(directory).read_text(encoding="utf-8")
    assert '<p class="verdict">a policy meets the budget</p>' in page
    assert "sync 0 ms, one-ahead uses least of the budget: put p99 100 µs" in page
    assert page.index('id="policies"') < page.index('id="experiments"')
    strict = build_simulation_page(directory, limits=Limits(loss_ms=0.0, put_p99_us=50.0)).read_text(encoding="utf-8")
    assert '<p class="verdict">no policy meets the budget</p>' in strict


def test_a_sweep_in_tasks_has_a_file_for_each_point(tmp_path: Path) -> None:
    (tmp_path / "points").mkdir()
    for number in range(3):
        (tmp_path / "points" / f"{number:06}.json").write_text(json.dumps(sweep_point(2 - number)))
    assert [point.point for point in read_sweep(tmp_path)] == [0, 1, 2]
    assert page_kind(tmp_path) == "simulation"


def test_a_malformed_point_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "points.jsonl").write_text(json.dumps(sweep_point(0)) + "\nnonsense\n")
    with pytest.raises(ReportError, match="line 2 is no JSON"):
        read_sweep(tmp_path)
    (tmp_path / "points.jsonl").write_text(json.dumps(sweep_point(0, put_p99_us="much")) + "\n")
    with pytest.raises(ReportError, match=r"line 1\.put_p99_us is not a number"):
        read_sweep(tmp_path)


def test_a_directory_of_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="is no run directory"):
        page_kind(tmp_path)

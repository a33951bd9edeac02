"""Compare docs/against-java.md with live runs of RocketMQ 4.9.3.

Recorded answers are compared without Java: tests/impl/golden and tests/properties/judge/test_golden.py.
"""

from pathlib import Path

import pytest

from tests.support.impl.golden import ROOT, golden
from tornpage.outcomes import java_page
from tornpage.outcomes.java_page import compare_outcome, compared_rows, page_rows
from tornpage.peers.golden_figures import Figures, LiveRow
from tornpage.peers.rocketmq.installing import Release
from tornpage.properties.judge.golden import GoldenImage, golden_images

PAGE = ROOT / "docs" / "against-java.md"
STORES = ROOT / "tests" / "data" / "golden"
QUICK = [("10-crash-torn-properties", ""), ("08-halt-async", "stray-file")]
NONE = Release("4.9.3", Path("/none"), Path("/none"), "/none")


def rows() -> tuple[dict[str, str], dict[str, str]]:
    return page_rows(PAGE.read_text(encoding="utf-8"))


def test_both_tables_have_a_row_for_each_image() -> None:
    first, second = rows()
    assert first.keys() == second.keys()
    assert {image.name for image in golden_images(STORES)} <= first.keys()


@pytest.mark.parametrize(("case", "variant"), QUICK)
def test_a_live_run_gives_the_rows_of_the_page(release: Release, case: str, variant: str) -> None:
    for stated, live in compared_rows(release, GoldenImage(golden(case), variant), rows()):
        assert live == stated


@pytest.mark.deep
@pytest.mark.parametrize("image", golden_images(STORES), ids=lambda image: image.name)
def test_all_live_runs_give_the_rows_of_the_page(release: Release, image: GoldenImage) -> None:
    for stated, live in compared_rows(release, image, rows()):
        assert live == stated


@pytest.mark.parametrize(
    ("row", "live", "expected"),
    [
        (
            "| x |  | 1, 0 |  |  |  |  |  | 3, 2 |",
            Figures(0, 0, 0, 0, 0, 0, 0, 4),
            "| x |  |  |  |  |  |  |  | 4, 2 |",
        ),
        ("| x |  | 1, 0 |  |  |  |  |  |  |", Figures(0, 1, 0, 0, 0, 0, 0, 0), "| x |  | 1, 0 |  |  |  |  |  |  |"),
        ("| x | does not start, starts | | | | | | | |", None, "| x | does not start, starts | | | | | | | |"),
    ],
)
def test_only_the_half_of_rocketmq_changes(row: str, live: Figures | None, expected: str) -> None:
    assert java_page._first_row(row, LiveRow("x", live, None, ())) == expected


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the page; live runs give its rows, except one."""
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")

    def stated(
        release: Release, image: GoldenImage, rows: tuple[dict[str, str], dict[str, str]]
    ) -> list[tuple[str, str]]:
        pairs = [(row[image.name], row[image.name]) for row in rows]
        if image.name.startswith("09"):
            pairs[0] = (pairs[0][0], pairs[0][0].replace("10, 10", "11, 10"))
        return pairs

    monkeypatch.setattr(java_page, "compared_rows", stated)
    return copy


def test_a_row_that_differs_fails_and_can_be_written(page: Path) -> None:
    outcome, text = compare_outcome(NONE, str(STORES), str(page), write=False)
    assert (outcome.verdict, outcome.exit_code) == ("broken", 1)
    assert outcome.figures["rows_different"] == 1
    assert "live: | 09-crash-stale-log-tail | 11, 10 |" in text
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    outcome, _ = compare_outcome(NONE, str(STORES), str(page), write=True)
    assert (outcome.verdict, outcome.figures["rows_written"]) == ("holds", 1)
    assert "| 09-crash-stale-log-tail | 11, 10 |" in page.read_text(encoding="utf-8")

"""Test that a finding is rendered from its evidence, with at most one run after shrinking.

This covers the way from the judge to the page.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.properties.campaign import replay as replaying
from tornpage.properties.campaign.replay import Failure, Shrunk
from tornpage.properties.lockstep.lockstep import Lockstep


class CarryOuts:
    """Counts the lockstep runs that began after the last failure was shrunk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after_shrinking = self.shrunk = self.all = 0
        begin, shrink = Lockstep.__init__, replaying.shrink

        def counted(run: Lockstep, *arguments: Any, **options: Any) -> None:
            self.after_shrinking += 1
            self.all += 1
            begin(run, *arguments, **options)

        def ended(failure: Failure, **options: Any) -> Shrunk:
            small = shrink(failure, **options)
            self.shrunk += 1
            self.after_shrinking = 0
            return small

        monkeypatch.setattr(Lockstep, "__init__", counted)
        for module in [*sys.modules.values()]:
            if getattr(module, "shrink", None) is shrink:
                monkeypatch.setattr(module, "shrink", ended)


@pytest.mark.slow
def test_a_finding_is_carried_out_once_from_judge_to_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was run six times.

    These were twice before shrinking, once for each restatement, for the text and for the page map, and twice for the
    page.
    """
    counts, out = CarryOuts(monkeypatch), tmp_path / "out"
    arguments = ["explore", "--bug", "lying-flush", "--states", "300", "--seed", "2", "--failures", "1"]
    explored = CliRunner().invoke(cli, [*arguments, "--out", str(out)])
    assert explored.exit_code == 1, explored.output
    assert counts.shrunk == 1
    assert counts.all > 10
    assert "legal because" in explored.stdout
    (row,) = json.loads((out / "tables" / "page_map.json").read_text())["rows"]
    assert row["sentences"]
    assert counts.after_shrinking == 0
    reported = CliRunner().invoke(cli, ["report", str(out)])
    assert reported.exit_code == 0, reported.output
    (page,) = out.glob("case-*.html")
    assert row["sentences"][0] in page.read_text()
    assert counts.after_shrinking == 1


def test_a_case_is_replayed_and_explained_by_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tornpage.properties.planted import REPRODUCERS

    counts, token = CarryOuts(monkeypatch), REPRODUCERS["size-not-synced"].token()
    assert CliRunner().invoke(cli, ["replay", token]).exit_code == 1
    assert counts.all == 1
    assert CliRunner().invoke(cli, ["replay", token, "--image", str(tmp_path / "image")]).exit_code == 1
    assert counts.all == 2
    assert CliRunner().invoke(cli, ["explain", token, "--out", str(tmp_path / "page.html")]).exit_code == 1
    assert counts.all == 3

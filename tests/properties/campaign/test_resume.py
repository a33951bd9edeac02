"""Test rows in a file: complete ones are read, incomplete ones not, foreign ones named."""

from pathlib import Path

import pytest

from tornpage.properties.campaign.resume import BadRows
from tornpage.properties.score.shrunk import ShrunkRow, shrunk_rows
from tornpage.properties.score.trials import TRIALS, TrialRow, trial_rows

ROW = TrialRow("a", "x", 0, 0, "wall", 60.0, "killed", 1.5, count=7, contract=2, signature="s", token="tp1-x")


def test_rows_are_there_again(tmp_path: Path) -> None:
    kept = trial_rows(tmp_path)
    kept.add(ROW)
    kept.add(ROW)
    assert trial_rows(tmp_path).rows == kept.rows == [ROW, ROW]


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    trial_rows(None).add(ROW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_line_that_was_broken_off_is_cut_away(tmp_path: Path, cut: int) -> None:
    kept = trial_rows(tmp_path)
    kept.add(ROW)
    kept.add(ROW)
    path = tmp_path / TRIALS
    path.write_bytes(path.read_bytes()[:-cut])
    again = trial_rows(tmp_path)
    assert again.rows == [ROW]
    again.add(ROW)
    assert trial_rows(tmp_path).rows == [ROW, ROW]


@pytest.mark.parametrize("line", ["{}", "[1]", "nonsense", '{"bug": "a", "unknown": 1}'])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    trial_rows(tmp_path).add(ROW)
    with (tmp_path / TRIALS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadRows, match="line 2"):
        trial_rows(tmp_path)


def test_failures_made_small_lie_beside_the_trials(tmp_path: Path) -> None:
    row = ShrunkRow("a", "x", "tp1-x", 20.0, "wall", 40, operations=3, one_minimal=True, token="tp1-y")
    trial_rows(tmp_path).add(ROW)
    shrunk_rows(tmp_path).add(row)
    assert (trial_rows(tmp_path).rows, shrunk_rows(tmp_path).rows) == ([ROW], [row])

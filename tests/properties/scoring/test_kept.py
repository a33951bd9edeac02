"""Rows in a file: what was written is read again, what was half written is not, and foreign lines are named."""

from pathlib import Path

import pytest

from properties.scoring.kept import TRIALS, BadRows, KeptRows
from properties.scoring.trials import TrialRow

ROW = TrialRow("a", "x", 0, 0, "wall", 60.0, "killed", 1.5, count=7, contract=2, signature="s", token="tp1-x")


def test_rows_are_there_again(tmp_path: Path) -> None:
    kept = KeptRows(tmp_path)
    kept.add(ROW)
    kept.add(ROW)
    assert KeptRows(tmp_path).rows == kept.rows == [ROW, ROW]


def test_without_a_directory_nothing_is_written(tmp_path: Path) -> None:
    KeptRows(None).add(ROW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_line_that_was_broken_off_is_cut_away(tmp_path: Path, cut: int) -> None:
    kept = KeptRows(tmp_path)
    kept.add(ROW)
    kept.add(ROW)
    path = tmp_path / TRIALS
    path.write_bytes(path.read_bytes()[:-cut])
    again = KeptRows(tmp_path)
    assert again.rows == [ROW]
    again.add(ROW)
    assert KeptRows(tmp_path).rows == [ROW, ROW]


@pytest.mark.parametrize("line", ["{}", "[1]", "nonsense", '{"bug": "a", "unknown": 1}'])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    KeptRows(tmp_path).add(ROW)
    with (tmp_path / TRIALS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadRows, match="line 2"):
        KeptRows(tmp_path)

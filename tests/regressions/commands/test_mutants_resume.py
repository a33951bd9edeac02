"""Symptom: a second `tornpage bugs mutate --out DIR` refused the directory of the first.

Cause: the rows of mutants were not among the files that a run continues from.
Fix: a run keeps them.
"""

from pathlib import Path

import pytest

from tornpage.properties.mutation.reach import REACH
from tornpage.properties.mutation.trials import TRIALS
from tornpage.run.directory import prepare


@pytest.mark.parametrize("name", [TRIALS, REACH])
def test_rows_of_mutants_are_kept(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("{}\n")
    assert prepare(str(tmp_path)) == tmp_path
    assert (tmp_path / name).read_text() == "{}\n"

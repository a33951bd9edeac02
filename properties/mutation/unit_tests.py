"""Run the unit tests of the store on a mutant, beside the strategies.

The tests are those of the changed package in a checkout, such as `tests/impl/queue`, or all of `tests/impl` for a
package without a folder. They are run until the first failure, by pytest in a new process that loads the mutant before
the store.
"""

import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

from tornpage.properties.mutation.mutants import mutant_of
from tornpage.properties.mutation.trials import MutantEnd, MutantKey, MutantRow

__all__ = ["MUTANT_VARIABLE", "UNIT_TESTS", "UNIT_TESTS_S", "run_unit_tests", "unit_test_folder", "unit_tests_of"]

UNIT_TESTS = "unit tests"
"""The name of these trials among the strategies."""

MUTANT_VARIABLE = "TORNPAGE_MUTANT"
"""The environment variable with the id of the mutant that the plugin loads."""

_PLUGIN = "tornpage.properties.mutation.pytest_mutant"
UNIT_TESTS_S = 60.0
"""Processor time of the unit tests, about."""

_WALL_S_MAX = 1_200.0
_PASSED, _FAILED = 0, 1


def unit_test_folder() -> Path | None:
    """Return the folder of the unit tests, or None outside of a checkout."""
    folder = Path(__file__).resolve().parents[2] / "tests" / "impl"
    return folder if folder.is_dir() else None


def unit_tests_of(package: str) -> Path | None:
    """Return the folder with the unit tests of a package of the store.

    Return None outside of a checkout.
    """
    folder = unit_test_folder()
    return folder / package if folder is not None and (folder / package).is_dir() else folder


def run_unit_tests(key: MutantKey, budget_s: float) -> MutantRow:
    """Run the unit tests of the changed package on a mutant until the first failure.

    They have no budget; `budget_s` is only noted in the row.
    """
    root, folder = unit_test_folder(), unit_tests_of(mutant_of(key.mutant).package)
    if root is None or folder is None:
        raise FileNotFoundError("the unit tests are in a checkout of tornpage only")
    command = [sys.executable, "-P", "-m", "pytest", "-p", _PLUGIN, "-n0", "-x", "-q", "-p", "no:cacheprovider"]
    before, began = getrusage(RUSAGE_CHILDREN), perf_counter()
    try:
        ran = subprocess.run(
            [*command, str(folder)],
            cwd=root.parent.parent,
            env={**os.environ, MUTANT_VARIABLE: key.mutant},
            capture_output=True,
            text=True,
            timeout=_WALL_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return MutantRow(key.mutant, key.strategy, key.base_seed, budget_s, "hung", budget_s, why="no end in 20 min")
    after = getrusage(RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    end: MutantEnd = "exhausted" if ran.returncode == _PASSED else "killed" if ran.returncode == _FAILED else "raised"
    failed = next((line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    return MutantRow(
        key.mutant, key.strategy, key.base_seed, budget_s, end, round(seconds, 3),
        wall_s=round(perf_counter() - began, 3), why=failed[:300],
    )  # fmt: skip

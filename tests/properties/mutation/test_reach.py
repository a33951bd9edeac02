"""Test the marks of statements, and what the measured statements say about a mutant."""

import ast
import json
import subprocess
import sys

import pytest

from tornpage.properties.mutation.mutants import all_mutants, modules
from tornpage.properties.mutation.reach import Reach, ReachRow, marked_tree

MEASURED = """
import json, sys
from tornpage.properties.mutation.reach import measure_reach
row = measure_reach(sys.argv[1], 0, 0.3)
print(json.dumps([dict(row.first), row.digests]))
"""


def measured(strategy: str) -> tuple[dict[str, float], list[str]]:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", MEASURED, strategy], capture_output=True, text=True, check=True, timeout=120
    )
    first, digests = json.loads(ran.stdout)
    return first, digests


@pytest.mark.slow
def test_every_statement_of_a_mutant_has_a_mark() -> None:
    places: list[str] = []
    for module in modules():
        compile(marked_tree(module, places), module, "exec")
    assert not {mutant.statement for mutant in all_mutants()} - set(places)


@pytest.mark.slow
def test_docstring_and_future_import_stay_first() -> None:
    for module in modules():
        tree = marked_tree(module, [])
        assert ast.get_docstring(tree) is not None


@pytest.mark.slow
def test_strategy_runs_puts_and_not_the_code_of_replicas() -> None:
    first, digests = measured("random")
    puts = [each for each in first if each.startswith("put.put_path:")]
    assert any(first[each] > 0 for each in puts)
    assert any(first[each] == 0 for each in puts)  # definitions run at the import
    functions = {mutant.statement for mutant in all_mutants() if mutant.scope == "ReplicaServer._find"}
    assert functions
    assert not functions & set(first)
    assert digests == []


def test_strategy_without_a_measurement_is_tried_last() -> None:
    rows = {"random": ReachRow("random", 0, 1.0, {"a:1": 0.5}), "machine": ReachRow("machine", 0, 1.0, {"a:1": 0.1})}
    assert Reach(rows).order("a:1", ("new", "random", "machine")) == ("machine", "random", "new")
    assert Reach(rows).order("a:2", ("new", "random", "machine")) == ("new",)
    assert Reach(rows).runs("new", "a:2")
    assert not Reach(rows).runs("random", "a:2")

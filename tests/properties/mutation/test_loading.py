"""Test how a mutant takes its place in a process that has imported the store."""

import subprocess
import sys

import pytest

from tornpage.properties.mutation.mutants import Mutant, all_mutants

TRIAL = """
import sys
from tornpage.properties.mutation import ready
from tornpage.properties.mutation.trials import MutantKey, run_mutant_trial
row = run_mutant_trial(MutantKey(sys.argv[1], "random", 0), 20.0)
print(row.end, row.is_reached, row.why)
"""

EXCHANGED = """
import sys
from tornpage.properties.mutation.loading import exchange_code
from tornpage.properties.mutation.mutants import mutant_of
from tornpage.impl.message.key_hash import java_hash
import tornpage.impl.message.delay_levels as levels
placed = exchange_code(mutant_of(sys.argv[1]), set())
print(placed.is_reached, java_hash("a") != ord("a"), placed.is_reached)
print(exchange_code(mutant_of(sys.argv[2]), set()))
code = java_hash.__code__
print(exchange_code(mutant_of(sys.argv[1]), {(code.co_filename, code.co_qualname, code.co_firstlineno)}))
"""


def run(program: str, *arguments: str) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return ran.stdout.splitlines()


def mutant(module: str, scope: str, operator: str) -> Mutant:
    return next(
        each
        for each in all_mutants()
        if each.module.endswith(module) and each.scope == scope and each.operator == operator
    )


@pytest.mark.slow
def test_code_of_a_changed_function_is_exchanged_and_that_of_a_module_is_not() -> None:
    function = mutant("message.key_hash", "java_hash", "arithmetic")
    of_module = next(each for each in all_mutants() if not each.scope)
    assert run(EXCHANGED, function.id, of_module.id) == ["False True True", "None", "None"]


@pytest.mark.slow
def test_trial_exchanges_the_code_of_a_function() -> None:
    assert run(TRIAL, "dispatch.derived:Derived.flush:removed-sync:1")[0].startswith("killed True")


@pytest.mark.slow
def test_trial_imports_a_change_outside_of_functions() -> None:
    assert run(TRIAL, "message.codec:module:constant:1")[0].startswith("killed True")


def test_mutant_that_cannot_be_imported_is_found_without_the_whole_store() -> None:
    wanted = "config.broker_settings:module:swapped-arguments:1"
    (line,) = run(TRIAL, wanted)
    assert line.startswith("not imported True TypeError")

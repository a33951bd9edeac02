"""Test the list of mutants, samples, and the loading of a mutant in the place of a module."""

import importlib
import subprocess
import sys
from collections import Counter

import pytest

from tornpage.properties.mutation.edits import OPERATORS
from tornpage.properties.mutation.loading import StoreIsLoaded, load_mutant
from tornpage.properties.mutation.mutants import (
    LEFT_OUT,
    UnknownMutant,
    all_mutants,
    draw_sample,
    mutant_of,
)


def test_ids_are_unique_and_name_the_place() -> None:
    mutants = all_mutants()
    assert len({mutant.id for mutant in mutants}) == len(mutants) > 5_000
    assert not {mutant.package for mutant in mutants} & set(LEFT_OUT)
    chosen = mutants[len(mutants) // 2]
    assert mutant_of(chosen.id) == chosen


def test_every_operator_has_mutants_and_a_description() -> None:
    assert {mutant.operator for mutant in all_mutants()} == set(OPERATORS)


def test_unknown_mutant_is_refused() -> None:
    with pytest.raises(UnknownMutant, match=r"no mutant 'log\.nothing:x:constant:1'"):
        mutant_of("log.nothing:x:constant:1")


@pytest.mark.slow
def test_sample_is_drawn_in_proportion_to_packages_and_by_seed() -> None:
    mutants = all_mutants()
    drawn = draw_sample(60, 1)
    assert drawn == draw_sample(60, 1)
    assert drawn != draw_sample(60, 2)
    assert len(set(drawn)) == len(drawn)
    of_all, of_sample = (Counter(mutant.package for mutant in each) for each in (mutants, drawn))
    assert set(of_sample) == set(of_all)
    for package, count in of_sample.items():
        assert count <= max(1, 60 * of_all[package] / len(mutants) + 1)


def test_sample_of_a_package_and_an_operator_has_nothing_else() -> None:
    drawn = draw_sample(5, 1, packages=("put",), operators=("comparison",))
    assert {(mutant.package, mutant.operator) for mutant in drawn} == {("put", "comparison")}
    drawn = draw_sample(40, 1, packages=("put", "delay"), operators=("comparison", "constant"))
    assert {mutant.package for mutant in drawn} == {"put", "delay"}
    assert {mutant.operator for mutant in drawn} == {"comparison", "constant"}


def test_mutant_is_refused_in_a_process_that_has_the_store() -> None:
    importlib.import_module("tornpage.impl.message.key_hash")
    with pytest.raises(StoreIsLoaded, match="load a mutant in a new process"):
        load_mutant(all_mutants()[0])


PROGRAM = """
import sys
from tornpage.properties.mutation.edits import OPERATORS
from tornpage.properties.mutation.loading import load_mutant
from tornpage.properties.mutation.mutants import mutant_of
loaded = load_mutant(mutant_of(sys.argv[1]))
from tornpage.impl.message.key_hash import java_hash
before = loaded.is_reached
print(before, java_hash("a"), loaded.is_reached)
"""


def test_mutant_is_loaded_in_the_place_of_the_module_and_notes_that_it_ran() -> None:
    wanted = next(
        mutant
        for mutant in all_mutants()
        if mutant.module.endswith("key_hash") and mutant.scope == "java_hash" and mutant.operator == "arithmetic"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, wanted.id], capture_output=True, text=True, check=True, timeout=120
    )
    before, value, after = ran.stdout.split()
    assert (before, after) == ("False", "True")
    assert int(value) != ord("a")

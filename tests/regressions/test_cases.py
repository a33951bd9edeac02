"""Run the saved cases: programs that once broke a promise or misled the crash lab.

Each file of cases/ is one bug: its symptom, its cause, its fix, how it was found, and one or more programs. The bug was
in the store (cases/store) or in the crash lab (cases/lab). `mutant` is the id of the planted bug with the same mistake,
or null if there is none. A program is a case as `tornpage replay` reads it, with one addition. `{"each": [...]}` stands
for each of its values; in the list of operations each value is a list of operations. The test of a program runs all
combinations.
"""

import json
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.regressions import Attempt
from tornpage.properties.planted import PLANTED, parts_of
from tornpage.properties.program.case import Case

CASES = Path(__file__).with_name("cases")
FILES = sorted(CASES.glob("*/*.json"))
TEXTS = ("symptom", "cause", "fix", "found_by")
Item = dict[str, Any]


@cache
def document_of(path: Path) -> Item:
    """Return one file of cases/."""
    found: Item = json.loads(path.read_text(encoding="utf-8"))
    return found


PROGRAMS = [
    pytest.param(path, program, id=f"{path.stem}-{program['name']}")
    for path in FILES
    for program in document_of(path)["programs"]
]


def is_choice(value: object) -> bool:
    """Return whether a value of a program stands for several."""
    return isinstance(value, dict) and set(value) == {"each"}


def alternatives(item: Item) -> list[list[Item]]:
    """Return the lists of operations that an item of a program stands for."""
    if is_choice(item):
        return [list(operations) for operations in item["each"]]
    values = [
        value["each"] if isinstance(value, dict) and set(value) == {"each"} else [value] for value in item.values()
    ]
    return [[dict(zip(item, chosen, strict=True))] for chosen in product(*values)]


def cases_of(program: Item) -> Iterator[Case]:
    """Yield each case that a program stands for. Raises BadToken."""
    for chosen in product(*map(alternatives, program["operations"])):
        operations = [operation for part in chosen for operation in part]
        text = json.dumps({"tornpage_case": 1, "settings": program["settings"], "operations": operations})
        yield Case.from_text(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case_file_is_complete(path: Path) -> None:
    document = document_of(path)
    assert set(document) == {*TEXTS, "mutant", "programs"}
    assert all(document[name].strip() == document[name] != "" for name in TEXTS)
    assert document["mutant"] is None or document["mutant"] in PLANTED
    names = [program["name"] for program in document["programs"]]
    assert names
    assert len(set(names)) == len(names)
    assert all(set(program) == {"name", "settings", "operations"} for program in document["programs"])


@pytest.mark.slow
@pytest.mark.parametrize(("path", "program"), PROGRAMS)
def test_case_holds(path: Path, program: Item, attempt: Attempt) -> None:
    for case in cases_of(program):
        broken = attempt(case.operations, case.settings)
        assert broken is None, f"{document_of(path)['symptom']}\n{broken}\n{case.token()}"


@pytest.mark.parametrize("path", [path for path in FILES if document_of(path)["mutant"]], ids=lambda path: path.stem)
def test_case_catches_its_mutant(path: Path, attempt: Attempt) -> None:
    document = document_of(path)
    parts = parts_of(document["mutant"])
    cases = (case for program in document["programs"] for case in cases_of(program))
    assert any(attempt(case.operations, case.settings, parts) is not None for case in cases)


def test_each_stands_for_every_value() -> None:
    put, crash = {"op": "put"}, {"op": "crash", "back": {"each": [0, 1]}}
    program = {"settings": {}, "operations": [{"each": [[], [put]]}, put, crash]}
    assert [(len(case.operations), case.operations[-1].back) for case in cases_of(program)] == [  # type: ignore[union-attr]
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 1),
    ]

"""Test workloads: what is among them, and that each is a case that can be saved."""

from pathlib import Path

import pytest

from tornpage.properties.explore.exhaustive.operation_set import (
    MODES,
    OPERATION_SET,
    Mode,
    operation_set_of,
    operations_of,
    settings_of,
    workloads,
)
from tornpage.properties.program.case import Case


@pytest.mark.parametrize("mode", MODES)
def test_only_an_open_follows_a_close_and_it_follows_nothing_else(mode: Mode) -> None:
    letters = operation_set_of(mode)
    for length in range(4):
        for workload in workloads(letters, length):
            for number, name in enumerate(workload):
                closed = number > 0 and workload[number - 1] == "close"
                assert (name == "open") == closed


@pytest.mark.parametrize("mode", MODES)
def test_all_other_sequences_are_there_and_each_once(mode: Mode) -> None:
    letters = operation_set_of(mode)
    others = len(letters) - 1  # all but open; after a close there is one way to go on
    assert [len(list(workloads(letters, length))) for length in range(3)] == [1, others, (others - 1) * others + 1]
    found = list(workloads(letters, 3))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("mode", MODES)
def test_each_workload_can_be_written_down_as_a_case(mode: Mode) -> None:
    for workload in workloads(operation_set_of(mode), 2):
        case = Case(settings_of(mode, disk="journal"), operations_of(workload))
        assert Case.from_token(case.token()) == case


def test_the_page_tells_of_each_letter() -> None:
    page = (Path(__file__).parents[4] / "docs" / "exhaust.md").read_text()
    assert [name for name in OPERATION_SET if f"`{name}`" not in page] == []

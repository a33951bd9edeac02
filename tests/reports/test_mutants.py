"""Test the rates of mutants, with intervals and the unit tests beside them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reports.kinds.kinds_of_pages import mutant
from tornpage.reports.errors import ReportError
from tornpage.reports.pages.gaps import gaps_of, headline_of
from tornpage.reports.pages.run_page import build_report, render
from tornpage.reports.results.mutants import MutantRow, rate_rows, summarise_mutants, survivor_rows
from tornpage.reports.results.tables import read_run

MakeRun = Callable[..., Path]
OTHERS = ("steps", "put_latency", "at_risk", "stalls", "discovery", "activation", "page_map", "audit")


def rows_of(*verdicts: str, package: str = "put", unit_tests: str = "") -> list[MutantRow]:
    names = MutantRow.__dataclass_fields__
    documents = [mutant(n, verdict=v, package=package, unit_tests=unit_tests) for n, v in enumerate(verdicts)]
    return [MutantRow(**{name: document[name] for name in names}) for document in documents]


def test_a_rate_leaves_out_what_is_presumed_equivalent_and_what_has_no_result() -> None:
    rows = rows_of("killed", "killed", "killed", "not reached", "presumed equivalent", "no result")
    found = summarise_mutants(rows)
    assert (found.mutants, found.all.total, found.countable.killed, found.countable.total) == (6, 5, 3, 4)
    assert found.countable.said == "75 %"
    assert found.countable.interval == "30 to 95 %"
    assert found.survivors == (("not reached", 1), ("presumed equivalent", 1))


def test_the_unit_tests_have_a_rate_of_their_own() -> None:
    rows = rows_of("killed", "not reached", unit_tests="killed") + rows_of("killed", "killed", unit_tests="survived")
    found = summarise_mutants(rows)
    assert (found.unit_tests.killed, found.unit_tests.total) == (2, 4)
    assert "The unit tests killed 50 % of 4." in found.sentence
    [cells] = rate_rows(rows, lambda row: row.package)
    assert cells == ("put", "4", "3", "0", "75 %", "30 to 95 %", "50 %", "15 to 85 %")


def test_survivors_are_listed_with_their_change_the_most_telling_first() -> None:
    rows = rows_of("presumed equivalent", "not reached", "difference not judged", "killed")
    assert [cells[0] for cells in survivor_rows(rows)] == [
        "difference not judged",
        "not reached",
        "presumed equivalent",
    ]
    assert survivor_rows(rows)[0][3:] == ("if size > limit: raise TooLarge", "raise TooLarge")


def test_the_page_names_what_the_tester_is_blind_to(make_run: MakeRun) -> None:
    rows = [mutant(n, verdict="not reached" if n % 3 else "killed", package="log") for n in range(9)]
    rows.append(mutant(9, verdict="difference not judged", package="put"))
    run = read_run(make_run(record={"command": "bugs mutate"}, without=OTHERS, mutants={"rows": rows}))
    assert headline_of(run).word == "30 % of the mutants killed"
    assert gaps_of(run) == [
        "No judge objects to 1 mutant with other crash states.",
        "No trial runs the changed code of 6 mutants.",
        "The lowest kill rates by package: log (33 %).",
    ]
    page = render(run)
    assert 'id="mutants"' in page
    assert "Kill rate by operator" in page


def test_the_page_of_a_scoreboard_takes_the_mutants_of_another_run(make_run: MakeRun) -> None:
    board = make_run("score", record={"command": "bugs score"}, without=OTHERS)
    mutants = make_run("mutants", without=OTHERS, mutants={"rows": [mutant(0)]})
    assert 'id="mutants"' in build_report(board, mutants=mutants).read_text(encoding="utf-8")
    with pytest.raises(ReportError, match="has no mutants"):
        build_report(mutants, mutants=board)

"""Test the catalogue of known defects: complete, true about plants and tests, searchable."""

import ast
import json
import re
from pathlib import Path

import pytest

from tornpage.outcomes.holes import hunt_outcome, list_outcome
from tornpage.properties.planted import PLANTED, REPRODUCERS
from tornpage.properties.score.holes import HOLES, Hole, UnknownHole, holes_named

GROUPS = {"H": 12, "A": 7, "C": 17, "I": 7, "G": 11, "F": 2}
PARAGRAPHS = 53
HOSTED_PARAGRAPHS_MIN = 40
HOSTED = [hole for hole in HOLES.values() if hole.is_hosted]


def test_every_hole_is_there_once_and_in_order() -> None:
    assert list(HOLES) == [f"{group}{number}" for group, count in GROUPS.items() for number in range(1, count + 1)]
    assert len({hole.heading for hole in HOLES.values()}) == PARAGRAPHS
    assert all(HOLES[hole.heading].heading == hole.heading for hole in HOLES.values())


def test_most_of_them_can_be_planted_and_the_others_say_why_not() -> None:
    for hole in HOLES.values():
        assert hole.is_hosted != bool(hole.reason), hole.id
        assert set(hole.contracts) & set(range(1, 18)) == set(hole.contracts) != set(), hole.id
    left_out = {hole.heading for hole in HOLES.values() if not hole.is_hosted}
    assert PARAGRAPHS - len(left_out) >= HOSTED_PARAGRAPHS_MIN


@pytest.mark.parametrize("hole", HOSTED, ids=lambda hole: hole.id)
def test_its_bug_and_its_regression_exist(hole: Hole, repository: Path) -> None:
    assert hole.bug in PLANTED
    assert hole.instead
    path, _, name = hole.regression.partition("::")
    function, _, case = name.partition("[")
    source = (repository / path).read_text(encoding="utf-8")
    assert function in {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    if case:
        assert case.removesuffix("]") == hole.bug
        assert hole.bug in REPRODUCERS


def test_a_regression_is_named_after_its_hole() -> None:
    for hole in HOSTED:
        name = hole.regression.partition("::")[2]
        if not name.startswith("test_the_smallest_case"):
            ids = {hole.id} | {other.id for other in HOSTED if other.regression == hole.regression}
            assert re.fullmatch(rf"test_({'|'.join(ids)})_[a-z0-9_]+", name, re.IGNORECASE)


def test_names_are_ids_with_commas_between() -> None:
    assert [hole.id for hole in holes_named("c3, H1")] == ["C3", "H1"]
    assert len(holes_named("")) == len(HOLES)
    with pytest.raises(UnknownHole, match="H12"):
        holes_named("H13")


def test_the_list_says_for_each_hole_what_becomes_of_it() -> None:
    outcome, text = list_outcome(tuple(HOLES.values()))
    assert outcome.exit_code == 0
    assert outcome.figures["holes"] == len(HOLES)
    assert outcome.figures["hosted"] == len(HOSTED)
    assert all(hole.sentence in text for hole in HOLES.values())


def test_a_hunt_is_kept_and_not_made_again(tmp_path: Path) -> None:
    steps: list[str] = []
    outcome, text = hunt_outcome(holes_named("A3"), seconds=30.0, seed=0, out=str(tmp_path), progress=steps.append)
    assert outcome.exit_code == 0
    assert "tornpage replay tp1-" in text
    kept = tmp_path / "hole-A3.json"
    row = json.loads(kept.read_text())
    assert row["result"] == "found"
    kept.write_text(json.dumps(row | {"why": "as it was kept"}))
    _, text = hunt_outcome(holes_named("A3"), seconds=30.0, seed=0, out=str(tmp_path), progress=steps.append)
    assert "as it was kept" in text
    assert steps == ["A3 larger-than-a-file"] * 2


def test_what_is_not_found_in_its_time_is_said(tmp_path: Path) -> None:
    outcome, text = hunt_outcome(holes_named("C7"), seconds=0.001, seed=0, out=None, progress=lambda step: None)
    assert outcome.exit_code == 3
    assert "not found" in text
    assert outcome.findings[0]["code"] == "not-found"

"""Test `judge --redact`: a broken number has file and place, without quoted content."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.render.redacting import LEFT_OUT, SENTENCES, harmless_sentence, harmless_value

REPOSITORY = Path(__file__).parents[3]
GOLDEN = REPOSITORY / "tests" / "data" / "golden"
CRASHED = sorted(path.parent for path in GOLDEN.glob("*crash*/truth.json"))


def judged(case: Path, *options: str) -> tuple[dict[str, Any], str]:
    done = CliRunner().invoke(cli, ["judge", str(case / "store"), "--crashes", "0", "--redact", *options, "--json"])
    assert done.exit_code in (0, 1, 3), done.output
    said: dict[str, Any] = json.loads(done.stdout)
    return said, done.stdout


def test_a_broken_number_keeps_its_place() -> None:
    said, text = judged(GOLDEN / "11-crash-stale-queue-tail", "--bug", "RMQ-B02")
    (finding, *_) = [each for each in said["findings"] if each["code"] == "contract-4"]
    assert finding["file"] == f"consumequeue/topic-1:7/1/{0:020d}"
    assert (finding["sentence"], finding["expected"], finding["found"]) == (LEFT_OUT, "", "")
    assert "StaleCq" not in text
    assert "StaleCq" in CliRunner().invoke(cli, ["judge", str(GOLDEN / "11-crash-stale-queue-tail" / "store")]).stdout


@pytest.mark.parametrize("case", CRASHED, ids=lambda case: case.name)
def test_sentences_of_sound_recoveries_are_kept(case: Path) -> None:
    """Otherwise the list is not that of the judge. Reasons that name a file are left out here."""
    said, _ = judged(case, "--truth", str(case / "truth.json"))
    told = {row["number"]: row["sentence"] for row in said["rulings"]}
    assert len(told) == 18
    left_out = {number for number, sentence in told.items() if LEFT_OUT in sentence}
    assert left_out <= {7, 13}
    assert all(told[number].startswith("read-only, changed nothing") for number in left_out & {7})


def test_every_sentence_of_the_list_is_made_of_words_of_the_judge() -> None:
    """A sentence that the judge changes is left out until the list has it too."""
    code = [path.read_text() for path in (REPOSITORY / "properties" / "judge").rglob("*.py")]
    constants = [node.value for text in code for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)]
    words = {word for part in constants if isinstance(part, str) for word in re.findall("[a-z]+", part)}
    for sentence in SENTENCES:
        plain = re.sub(r"\(y\|ies\)|s\?", "", sentence)
        assert set(re.findall("[a-z]+", plain)) <= {*words, "entr"}, sentence


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("the store opens read-write", "the store opens read-write"),
        ("the store opens read-write: Orders", "the store opens read-write: …"),
        ("read-only, changed nothing, serves 3 records; Orders is torn",
         "read-only, changed nothing, serves 3 records; …"),
        ("a kill at operation 7 of the recovery: the log differs",
         "a kill at operation 7 of the recovery: the log differs"),
        ("a kill at operation 7 of the recovery: Orders: the log differs", "a kill at operation 7 of the recovery: …"),
        ("unit 3 of consumequeue/Orders/0 is wrong", "…"),
        ("Orders", "…"),
        ("", "…"),
        ("all bytes past 6004499887766554433 are zero on disk; they were zero before",
         "all bytes past -1 are zero on disk; they were zero before"),
    ],
)  # fmt: skip
def test_only_what_is_known_is_kept(sentence: str, shown: str) -> None:
    assert harmless_sentence(sentence) == shown


@pytest.mark.parametrize(
    ("sentence", "value", "shown"),
    [
        ("the log does not end where the store says", "18,000", "18,000"),
        ("the log does not end where the store says", "Orders", ""),
        ("the log differs from what was appended at offset 18", "31", ""),
        ("the watermarks are out of order after recovery", "0, 18, 18, 17", "0, 18, 18, 17"),
        ("the recovered log is not one that may survive", "1 record, log end 900", "1 record, log end 900"),
        (
            "records that had to survive are missing after recovery",
            "2 to 3 records, log end 900 to 950",
            "2 to 3 records, log end 900 to 950",
        ),
        ("a key is not found", "5", ""),
    ],
)
def test_values_are_kept_where_they_are_offsets(sentence: str, value: str, shown: str) -> None:
    assert harmless_value(sentence, value) == shown

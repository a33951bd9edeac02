"""Test the version matrix: comparisons, reasons, refusals, and a live run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.outcomes.live_pages import write_part
from tornpage.outcomes.peer_matrix import MatrixRequest, matrix_outcome, matrix_page
from tornpage.peers.matrix.answers import Answers, Difference, answers_of_ours, compared, keys_in
from tornpage.peers.matrix.known import KNOWN, OURS, Reading, known_finding, reason_of
from tornpage.peers.matrix.running import Cell, Matrix
from tornpage.peers.matrix.workload import config_of, operations
from tornpage.peers.matrix.writing import open_ours, settle, write_ours
from tornpage.peers.rocketmq.installing import REFERENCE, Release

COUNT = 20


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """Return a killed tornpage store and its answers before its end."""
    directory = tmp_path_factory.mktemp("ours") / "store"
    return directory, write_ours(directory, count=COUNT, seed=3, record_checksum="record", closed=False)


def test_a_killed_store_of_ours_gives_the_answers_of_its_writer(written: tuple[Path, Answers]) -> None:
    directory, expected = written
    assert (directory / "abort").exists()
    with open_ours(directory, config_of()) as store:
        settle(store)
        found = answers_of_ours(store, keys_in(expected))
    count, differences = compared(expected, found)
    assert differences == []
    assert count > 4 * COUNT
    assert sum(len(queue["messages"]) for queue in expected.queues.values()) >= COUNT


@pytest.mark.parametrize("part", ["end", "queues", "messages", "fields", "found"])
def test_any_other_answer_is_a_difference(written: tuple[Path, Answers], part: str) -> None:
    expected = written[1]
    found = Answers.of(json.loads(json.dumps(expected.document())))
    if part == "end":
        found.end += 1
    elif part == "messages":
        next(iter(found.queues.values()))["messages"].popitem()
    else:
        getattr(found, part).popitem()
    differences = compared(expected, found)[1]
    assert differences
    reading = Reading(OURS, "closed", REFERENCE)
    assert all(reason_of(reading, each, expected) is None for each in differences)


def test_operations_have_every_kind() -> None:
    made = list(operations(200, seed=0))
    assert [each.properties for each in made] == [each.properties for each in operations(200, seed=0)]
    assert any(each.is_batch for each in made)
    assert any("DELAY\x0118" in each.properties for each in made)
    assert sum("DELAY\x0117" in each.properties for each in made) == 1
    assert any(len(each.body) > 5000 for each in made)


# ---- reasons ---------------------------------------------------------------------------------------------------------

FIELDS = {"topic": "T", "stored": 1, "properties": {"UNIQ_KEY": "u"}}
JOINED = {**FIELDS, "properties": {"UNIQ_KEY": "u", "KEYS": "bWAIT\x01true"}}
LEVEL = "SCHEDULE_TOPIC_XXXX/16"
EXPIRED = Answers(queues={LEVEL: {"begin": 0, "end": 1, "messages": {}, "gaps": [[0, "MESSAGE_WAS_REMOVING"]]}})
CASES: list[tuple[str, Reading, Difference]] = [
    ("batch-joined", Reading("4.8.0", "closed", "4.9.3"), Difference("fields", "0", FIELDS, JOINED)),
    ("indexed-again", Reading("4.9.3", "killed", "4.9.3"), Difference("query", "T k", [[0, 1]], [[0, 1], [0, 1]])),
    ("delivered-again", Reading("4.5.2", "closed", "4.5.2", is_stock=True), Difference("log", "end", 10, 20)),
    ("expired-begin", Reading("4.9.3", "expired", OURS), Difference("queue", f"{LEVEL} begin", 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reading", "difference"), CASES, ids=[case[0] for case in CASES])
def test_a_reason_explains_its_own_difference(name: str, reading: Reading, difference: Difference) -> None:
    assert reason_of(reading, difference, EXPIRED) == name


@pytest.mark.parametrize(
    ("reading", "difference"),
    [
        (Reading("4.9.3", "closed", OURS), CASES[0][2]),
        (Reading("4.8.0", "closed", OURS), Difference("fields", "0", FIELDS, {**JOINED, "stored": 2})),
        (Reading("4.8.0", "closed", OURS), Difference("message", "T/0 1", [0, 1, "a"], None)),
        (Reading("4.9.3", "closed", "4.9.3"), CASES[1][2]),
        (Reading("4.9.3", "killed", OURS), CASES[1][2]),
        (Reading("4.9.3", "killed", "4.9.3"), Difference("query", "T k", [[0, "a"]], [])),
        (Reading("4.6.1", "closed", "4.6.1", is_stock=True), CASES[2][2]),
        (Reading("4.5.2", "closed", "4.5.2", is_stock=True), Difference("log", "end", 20, 10)),
        (Reading("4.9.3", "killed", "4.9.3"), CASES[2][2]),
        (Reading("4.9.3", "closed", OURS), CASES[3][2]),
        (Reading("4.9.3", "expired", OURS), Difference("queue", "TopicA/0 begin", 0, 1)),
    ],
)
def test_a_reason_explains_nothing_else(reading: Reading, difference: Difference) -> None:
    assert reason_of(reading, difference, EXPIRED) is None


def test_findings_have_reasons_too() -> None:
    assert known_finding("5.4.0", "closed", OURS, "index_rebuilt") == "tags-indexed"
    assert known_finding(OURS, "killed", "5.4.0", "index_rebuilt") == "tags-indexed"
    assert known_finding("5.3.3", "closed", OURS, "index_rebuilt") is None
    assert known_finding("4.9.3", "expired", OURS, "progress_corrected") == "progress-corrected"
    assert known_finding("4.9.3", "closed", OURS, "progress_corrected") is None


# ---- the command -----------------------------------------------------------------------------------------------------

GOOD = Cell("4.9.3", "closed", OURS, comparisons=9)
REQUEST = MatrixRequest((REFERENCE,), 200, 0, 1, None, resume=False)


def outcome_of(*cells: Cell, interrupted: bool = False) -> tuple[str | None, int, str]:
    outcome, text = matrix_outcome(Matrix(list(cells), interrupted), REQUEST, [])
    return outcome.verdict, outcome.exit_code, text


def test_a_difference_without_a_reason_fails() -> None:
    own = Cell(OURS, "killed", REFERENCE, "record", comparisons=7)
    assert outcome_of(GOOD, own)[:2] == ("holds", 0)
    assert outcome_of(GOOD, replace(own, known={"batch-joined": 3}))[:2] == ("holds", 0)
    verdict, code, text = outcome_of(GOOD, replace(own, unexplained=2, sentences=["log end: 1 became 2"]))
    assert (verdict, code) == ("broken", 1)
    assert "our store record killed, read by 4.9.3: 2 differences without a reason; log end: 1 became 2" in text
    assert outcome_of(GOOD, replace(own, error="the JVM ended"))[:2] == ("broken", 1)
    assert outcome_of(GOOD, replace(own, findings=["index_rebuilt"]))[:2] == ("broken", 1)
    assert outcome_of(GOOD, interrupted=True)[1] == 130
    assert outcome_of()[:2] == ("vacuous", 3)


def test_the_page_has_table_and_reasons(tmp_path: Path) -> None:
    matrix = Matrix([GOOD, Cell(OURS, "killed", REFERENCE, "record", comparisons=7, known={"batch-joined": 1})])
    outcome, _ = matrix_outcome(matrix, REQUEST, [])
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- begin matrix -->\nold\n<!-- end matrix -->\nafter\n")
    write_part(str(page), "matrix", matrix_page(matrix, outcome, "the command"))
    text = page.read_text()
    assert text.startswith("# Title\n\n<!-- begin matrix -->\n`the command`\n")
    assert text.endswith("<!-- end matrix -->\nafter\n")
    assert "old" not in text
    assert "| 4.9.3 | 0 of 0 | 0 of 7 (+1 known) | 0 of 9 |" in text
    assert all(f"| `{each.name}` |" in text for each in KNOWN)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["peer", "matrix", *arguments])


def test_misuse_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (run("--resume").exit_code, "needs --out" in run("--resume").output) == (2, True)
    unknown = run("--versions", "9.9.9")
    assert (unknown.exit_code, unknown.output.count("\n")) == (2, 1)
    assert "'9.9.9' is not a known version" in unknown.output
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "no release is installed" in run().output
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    missing = run("--versions", REFERENCE)
    assert (missing.exit_code, missing.output) == (
        2,
        "tornpage: no java on PATH or in JAVA_HOME; install a Java runtime\n",
    )


@pytest.mark.deep
def test_a_live_matrix_of_one_release_holds_and_resumes(release: Release, tmp_path: Path) -> None:
    arguments = ("--versions", release.version, "--operations", "40", "--out", str(tmp_path / "out"), "--json")
    document: dict[str, Any] = json.loads(run(*arguments).stdout)
    assert document["verdict"] == "holds", document["findings"]
    assert document["figures"]["readings"] == 4 * 2 + 3 * 2 + 3
    assert document["figures"]["comparisons"] > 1000
    again = json.loads(run(*arguments, "--resume").stdout)
    assert again["cells"] == document["cells"]
    other = run("--versions", release.version, "--operations", "41", "--out", str(tmp_path / "out"), "--resume")
    assert (other.exit_code, "run without --resume" in other.output) == (2, True)

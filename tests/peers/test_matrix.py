"""Test the version matrix: comparisons, reasons, refusals, and a live run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.impl.log.loading import Finding
from tornpage.outcomes.live_pages import write_part
from tornpage.outcomes.peer_matrix import MatrixRequest, matrix_outcome, matrix_page
from tornpage.peers.matrix.answers import Answers, Difference, answers_of_ours, compared, keys_in
from tornpage.peers.matrix.held import Held, held_in
from tornpage.peers.matrix.known import KNOWN, OURS, Opening, Reading, known_finding, reason_of
from tornpage.peers.matrix.running import Cell, Matrix
from tornpage.peers.matrix.workload import SETTINGS, config_of, operations
from tornpage.peers.matrix.writing import open_ours, settle, write_ours
from tornpage.peers.rocketmq.installing import REFERENCE, Release

COUNT = 20


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """Return a killed tornpage store and its answers before its end."""
    directory = tmp_path_factory.mktemp("ours") / "store"
    return directory, write_ours(directory, count=COUNT, seed=3, record_checksum="record", closed=False)


@pytest.mark.slow
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
REMOVING = "MESSAGE_WAS_REMOVING"
EXPIRED = Answers(
    queues={
        "TopicA/1": {"begin": 0, "end": 450, "messages": {}, "gaps": [[0, REMOVING], [200, REMOVING], [400, REMOVING]]},
        "TopicA/2": {"begin": 0, "end": 450, "messages": {"449": [900, 1, "a"]}, "gaps": []},
        "TopicB/0": {"begin": 0, "end": 3, "messages": {"0": [900, 7, "b"]}, "gaps": [[1, REMOVING]]},
    },
    begin=900,
)
"""TopicA/1 has expired, and so has TopicB/0, which serves the first record of the log, one of TopicA/2."""

KEPT, AT_END = EXPIRED.queues["TopicA/1"]["gaps"], Reading("4.9.8", "expired", "5.0.0")
BY_493, BY_OLD = Reading("4.9.3", "killed", "4.9.3"), Reading("5.0.0", "expired", "4.9.8")
CASES: list[tuple[str, Reading, Difference]] = [
    ("batch-joined", Reading("4.8.0", "closed", "4.9.3"), Difference("fields", "0", FIELDS, JOINED)),
    ("indexed-again", BY_493, Difference("query", "T k", [[0, 1]], [[0, 1], [0, 1]])),
    ("delivered-again", Reading("4.5.2", "closed", "4.5.2", is_stock=True), Difference("log", "end", 10, 20)),
    ("indexed-again", BY_493, Difference("query", "T k", [[2, 1], [0, 1]], [[2, 1], [0, 1], [0, 1]])),
    ("expired-begin", AT_END, Difference("queue", "TopicA/1 begin", 0, 450)),
    ("expired-begin", AT_END, Difference("queue", "TopicA/1 begin", 200, 450)),
    ("expired-begin", AT_END, Difference("queue", "TopicA/1 gaps", KEPT, [])),
    ("expired-begin", Reading("4.3.2", "expired", OURS), Difference("queue", "TopicA/1 begin", 0, 450)),
    ("expired-begin", BY_OLD, Difference("queue", "TopicA/1 begin", 450, 0)),
    ("expired-begin", BY_OLD, Difference("queue", "TopicA/1 gaps", [], KEPT[1:])),
    ("expired-begin", AT_END, Difference("queue", "TopicB/0 begin", 0, 3)),
    ("expired-begin", AT_END, Difference("queue", "TopicB/0 gaps", [[1, REMOVING]], [])),
    ("first-file-served", AT_END, Difference("message", "TopicB/0 0", [900, 7, "b"], None)),
    ("first-file-served", BY_OLD, Difference("message", "TopicA/1 0", None, [900, 7, "b"])),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reading", "difference"), CASES, ids=[f"{case[0]}-{at}" for at, case in enumerate(CASES)]
)
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
        (BY_493, Difference("query", "T k", [[0, "a"]], [])),
        (Reading("4.6.1", "closed", "4.6.1", is_stock=True), CASES[2][2]),
        (Reading("4.5.2", "closed", "4.5.2", is_stock=True), Difference("log", "end", 20, 10)),
        (BY_493, CASES[2][2]),
        (BY_493, Difference("query", "T k", [[0, 1]], [[0, 1], [0, 1], [0, 1]])),
        (BY_493, Difference("query", "T k", [[2, 1], [0, 1]], [[0, 1], [2, 1], [2, 1]])),
        (replace(AT_END, ending="closed"), Difference("queue", "TopicA/1 begin", 0, 450)),
        (AT_END, Difference("queue", "TopicA/1 begin", 0, 449)),
        (AT_END, Difference("queue", "TopicA/1 begin", 1, 450)),
        (AT_END, Difference("queue", "TopicA/1 begin", 450, 0)),
        (AT_END, Difference("queue", "TopicA/1 end", 450, 0)),
        (AT_END, Difference("queue", "TopicA/1 gaps", KEPT, KEPT)),
        (AT_END, Difference("queue", "TopicA/1 gaps", KEPT[:2], [])),
        (AT_END, Difference("queue", "TopicA/1 gaps", [[0, "NO_MATCHED_MESSAGE"], *KEPT[1:]], [])),
        (AT_END, Difference("queue", "TopicA/2 begin", 0, 450)),
        (AT_END, Difference("queue", "TopicB/0 gaps", [[2, REMOVING]], [])),
        (AT_END, Difference("message", "TopicB/0 0", [900, 7, "b"], [900, 7, "b"])),
        (AT_END, Difference("message", "TopicA/2 449", [900, 1, "a"], None)),
        (replace(AT_END, ending="closed"), Difference("message", "TopicB/0 0", [900, 7, "b"], None)),
        (replace(AT_END, reader="4.3.2"), Difference("message", "TopicB/0 0", [900, 7, "b"], None)),
        (BY_OLD, Difference("message", "TopicA/1 1", None, [900, 7, "b"])),
        (BY_OLD, Difference("message", "TopicA/1 0", None, [901, 7, "b"])),
        (Reading("5.0.0", "expired", OURS), Difference("message", "TopicA/1 0", None, [900, 7, "b"])),
        (replace(AT_END, reader="4.9.3"), Difference("queue", "TopicA/1 begin", 0, 450)),
        (replace(AT_END, writer="5.0.0"), Difference("queue", "TopicA/1 begin", 0, 450)),
    ],
)
def test_a_reason_explains_nothing_else(reading: Reading, difference: Difference) -> None:
    assert reason_of(reading, difference, EXPIRED) is None


EARLY = Answers(queues={"SCHEDULE_TOPIC_XXXX/0": {"begin": 2, "end": 5, "messages": {"4": [0, 1, "a"]}, "gaps": []}})
CORRECTED = Finding("note", "progress_corrected", "store/config/delayOffset.json", 0, "")
OF_OLD = Reading("4.9.8", "expired", OURS)


def reasons_of(progress: int, reading: Reading = OF_OLD, finding: Finding = CORRECTED) -> tuple[str, ...]:
    held = Held(progress=((1, progress),))
    return known_finding(reading, finding, Opening(held, held, held), EARLY)


def test_progress_before_its_expired_queue_is_a_reason() -> None:
    assert reasons_of(1) == ("progress-corrected",)
    assert reasons_of(2) == reasons_of(6) == ()
    assert reasons_of(1, replace(OF_OLD, ending="closed")) == reasons_of(1, replace(OF_OLD, writer="5.0.0")) == ()
    assert reasons_of(1, finding=replace(CORRECTED, file="store/config/consumerOffset.json")) == ()
    assert reasons_of(1, finding=replace(CORRECTED, code="config_file_unreadable")) == ()


def test_held_has_progress_and_problems_of_the_index(written: tuple[Path, Answers], tmp_path: Path) -> None:
    directory = tmp_path / "store"
    shutil.copytree(written[0], directory)
    held = held_in(directory)
    assert held.runs
    assert held.problems == ()
    (directory / "config").mkdir(exist_ok=True)
    (directory / "config" / "delayOffset.json").write_text('{\n\t"offsetTable":{1:3,2:5\n\t}\n}')
    [path] = (directory / "index").iterdir()
    data = bytearray(path.read_bytes())
    data[-SETTINGS["maxIndexNum"] * 20 + 20] ^= 1
    path.write_bytes(bytes(data))
    assert held_in(directory).progress == ((1, 3), (2, 5))
    assert held_in(directory).problems
    assert held_in(tmp_path / "none") == Held()


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
@pytest.mark.parametrize(("count", "comparisons"), [("10", 200), ("40", 1000)], ids=["less than two log files", "more"])
def test_a_live_matrix_of_one_release_holds_and_resumes(
    release: Release, tmp_path: Path, count: str, comparisons: int
) -> None:
    out = str(tmp_path / "out")
    arguments = ("--versions", release.version, "--operations", count, "--seed", "1", "--out", out, "--json")
    document: dict[str, Any] = json.loads(run(*arguments).stdout)
    assert document["verdict"] == "holds", document["findings"]
    assert document["figures"]["readings"] == 4 * 2 + 3 * 2 + 3
    assert document["figures"]["comparisons"] > comparisons
    again = json.loads(run(*arguments, "--resume").stdout)
    assert again["cells"] == document["cells"]
    other = run("--versions", release.version, "--operations", "41", "--out", str(tmp_path / "out"), "--resume")
    assert (other.exit_code, "run without --resume" in other.output) == (2, True)

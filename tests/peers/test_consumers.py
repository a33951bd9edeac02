"""Compare the consumer's library with live and recorded answers of RocketMQ 4.9.3.

`tornpage peer consumers` compares all cases; the tests take some chunks of each suite.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.peer import command
from tornpage.peers.consumers.allocations import DRAWN, EXHAUSTIVE
from tornpage.peers.consumers.comparing import RECORDED, SUITES, compare, compare_recorded
from tornpage.peers.consumers.process_queues import SEQUENCES
from tornpage.peers.consumers.suites import Case, Suite
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process

RECORDING = json.loads(RECORDED.read_text())
SOME = {
    "allocation": range(8),
    "names": range(0, 100, 20),
    "process queue": range(0, 100, 10),
    "local offsets": range(0, 20, 4),
}


def some(suite: Suite) -> Sequence[int]:
    return SOME.get(suite.name, range(suite.chunks))


def silent(done: int, name: str) -> None:
    pass


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, ["consumers", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_answers_are_those_that_java_gave() -> None:
    found = compare_recorded(RECORDING, chunks=some)
    assert found.unknown == []
    assert found.unused_rules == []
    assert found.compared["allocation"] == 19_456


def test_a_recording_has_a_digest_for_each_chunk() -> None:
    assert {name: len(digests) for name, digests in RECORDING["digests"].items()} == {
        suite.name: suite.chunks for suite in SUITES
    }


@pytest.mark.parametrize("suite", [replace(suite, chunks=1) for suite in SUITES], ids=lambda suite: suite.name)
def test_answers_are_those_of_the_live_library(client: Release, suite: Suite) -> None:
    with Process(client) as process:
        found = compare(process, seed=1, suites=[suite], progress=silent)
        assert found.differences == []
        assert found.compared[suite.name] >= 50
        recorded = compare(process, seed=0, suites=[suite], progress=silent)
    assert recorded.digests[suite.name] == RECORDING["digests"][suite.name][:1]


def wrong_share(case: Case) -> Any:
    """Return shares with the first two clients' swapped."""
    answer = EXHAUSTIVE.ours(case)
    return {**answer, "shares": [*answer["shares"][1::-1], *answer["shares"][2:]]}


def late_commit(case: Case) -> Any:
    """Return states whose highest offset is that of RocketMQ after an old message."""
    answers = SEQUENCES.ours(case)
    for _, state in answers:
        state["queueOffsetMax"] += 1
    return answers


@pytest.mark.parametrize(("suite", "ours"), [(EXHAUSTIVE, wrong_share), (SEQUENCES, late_commit)])
def test_another_answer_is_found(client: Release, suite: Suite, ours: Callable[[Case], Any]) -> None:
    wrong = replace(suite, chunks=1, ours=ours)
    with Process(client) as process:
        found = compare(process, seed=0, suites=[wrong], progress=silent)
    assert found.differing[suite.name] > 90
    assert len(found.differences) == 5
    assert compare_recorded(RECORDING, suites=[wrong]).unknown == [f"{suite.name}, chunk 0"]


def test_a_listed_difference_that_does_not_occur_is_named() -> None:
    found = compare_recorded({**RECORDING, "rules": {}}, suites=[DRAWN], chunks=lambda suite: [0])
    assert found.unused_rules == ["names: CONFIG", "names: MACHINE_ROOM", "names: empty"]


def test_rules_count_the_answers_that_they_change(client: Release) -> None:
    """Without its rule each listed difference is a difference."""
    suite = replace(SEQUENCES, chunks=1)
    with Process(client) as process:
        applied: Counter[str] = Counter()
        assert suite.differences(process, 0, 0, applied)[1] == []
        unmended = replace(suite, mended=lambda case, java, applied: java)
        differences = unmended.differences(process, 0, 0, Counter())[1]
    assert all(applied[rule] for rule in SEQUENCES.rules)
    assert differences


@pytest.mark.deep
def test_all_answers_are_those_of_the_live_library(client: Release) -> None:
    done = run("--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["verdict"]) == (0, "holds")
    assert document["figures"]["compared_allocation"] == 19_456


@pytest.mark.deep
def test_all_recorded_answers_are_ours() -> None:
    done = run("--recorded")
    assert done.exit_code == 0
    assert "0 chunks differ" in done.stdout


def test_a_recording_and_a_seed_exclude_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--recorded", "--seed", "1").exit_code == 2
    assert run("--record", "x.json", "--seed", "1").exit_code == 2


def test_without_java_the_command_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = run()
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "tornpage: no java on PATH or in JAVA_HOME; install a Java runtime"

"""Test the rulings on a peer.

The answers are made up, or come from a live Java store on golden images.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.judge import command
from tornpage.peers.judging import Expectation, PeerAnswers, expectation_of, judge_with_peer, rulings_on
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import LogBounds, PeerMessage, PeerQueue
from tornpage.properties.judge.image import read_image, read_truth
from tornpage.properties.judge.rulings import NAMES
from tornpage.properties.judge.shape import SettingsOverride, look_at, read_override

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CASE = GOLDEN / "11-crash-stale-queue-tail"
TORN = GOLDEN / "10-crash-torn-properties"
HALT = GOLDEN / "08-halt-async"


def override_of(case: Path) -> SettingsOverride:
    settings = json.loads((case / "config.json").read_text())["store"]
    return read_override({name: str(value) for name, value in settings.items()}, source=case.name)


@pytest.fixture(scope="module")
def expected() -> Expectation:
    seen = read_image(HALT / "store")
    return expectation_of(seen, look_at(seen, override_of(HALT)), read_truth(str(HALT / "truth.json")))[0]


@pytest.fixture(scope="module")
def right(expected: Expectation) -> PeerAnswers:
    """Return the answers of a peer that keeps everything."""
    from tornpage.peers.judging import _sha256

    queues = {}
    for queue, memory, count in expected.derived.queues_at(expected.due_end):
        messages = [
            PeerMessage(unit.queue_offset, unit.record.offset, unit.record.size_bytes,
                        _sha256(expected.ledger.stored(unit.record)), None, None, None)
            for unit in memory.units[:count]
        ]  # fmt: skip
        queues[queue] = (PeerQueue(*queue, messages[0].place, messages[-1].place + 1), messages, ())
    found = {
        key: [
            (record.offset, record.size_bytes, _sha256(expected.ledger.stored(record)))
            for record in expected.derived.records_with(key, expected.due_end)
        ]
        for key in expected.keys
    }
    return PeerAnswers(LogBounds(0, expected.due_end, 0), queues, found)


def broken(expected: Expectation, first: PeerAnswers, second: PeerAnswers | None = None) -> list[int]:
    rulings, _ = rulings_on(expected, first, second or first, HALT / "store")
    assert [ruling.contract for ruling in rulings] == list(NAMES)
    return [ruling.contract for ruling in rulings if ruling.verdict == "broken"]


def test_a_peer_that_keeps_everything_breaks_nothing(expected: Expectation, right: PeerAnswers) -> None:
    assert broken(expected, right) == []
    rulings, kept = rulings_on(expected, right, right, HALT / "store")
    assert kept == len(expected.records) == 210
    assert [ruling.contract for ruling in rulings if ruling.verdict == "holds"] == [1, 2, 4, 5, 6, 7, 16, 17]


def without_last(answers: PeerAnswers) -> PeerAnswers:
    queue = min(answers.queues)
    bounds, messages, gaps = answers.queues[queue]
    return replace(answers, queues={**answers.queues, queue: (bounds, messages[:-1], gaps)})


def with_other_bounds(answers: PeerAnswers) -> PeerAnswers:
    queue = min(answers.queues)
    bounds, messages, gaps = answers.queues[queue]
    return replace(answers, queues={**answers.queues, queue: (replace(bounds, end=bounds.end + 1), messages, gaps)})


def with_another_record(answers: PeerAnswers) -> PeerAnswers:
    queue = min(answers.queues)
    bounds, messages, gaps = answers.queues[queue]
    other = [replace(messages[0], record_sha256="0" * 64), *messages[1:]]
    return replace(answers, queues={**answers.queues, queue: (bounds, other, gaps)})


def with_keys(change: Callable[[list[Any]], list[Any]]) -> Callable[[PeerAnswers], PeerAnswers]:
    def changed(answers: PeerAnswers) -> PeerAnswers:
        key = min(answers.found)
        return replace(answers, found={**answers.found, key: change(list(answers.found[key]))})

    return changed


@pytest.mark.parametrize(
    ("change", "numbers"),
    [
        (lambda answers: replace(answers, log=LogBounds(0, answers.log.end - 1, 0)), [1, 2, 4, 5, 17]),
        (lambda answers: replace(answers, log=replace(answers.log, behind=-4)), [16]),
        (without_last, [4]),
        (with_another_record, [4]),
        (with_other_bounds, [17]),
        (with_keys(lambda found: found[:-1]), [5]),
        (with_keys(lambda found: [*found, found[0]]), [5]),
        (with_keys(lambda found: [*found, (0, 1, "0")]), [5]),
        (lambda answers: PeerAnswers(failed=(7, "load() returned false")), [7]),
        (lambda answers: PeerAnswers(failed=(16, "no answer to 'open' within 1 s")), [16]),
        (lambda answers: PeerAnswers(answers.log, failed=(16, "dispatch stands still at 4")), [16]),
        (lambda answers: PeerAnswers(failed=(8, "read: java.lang.Oh")), [8]),
    ],
)
def test_each_broken_promise_has_its_number(
    expected: Expectation, right: PeerAnswers, change: Callable[[PeerAnswers], PeerAnswers], numbers: list[int]
) -> None:
    assert broken(expected, change(right)) == numbers


def test_answers_that_differ_after_a_second_recovery_break_number_6(expected: Expectation, right: PeerAnswers) -> None:
    for second in (without_last(right), PeerAnswers(failed=(7, "no")), with_keys(lambda found: found[:-1])(right)):
        assert broken(expected, right, second) == [6]


def test_what_an_image_has_lost_is_not_asked_of_a_peer(tmp_path: Path) -> None:
    shutil.copytree(HALT / "store", tmp_path / "store", copy_function=shutil.copyfile)
    (tmp_path / "store" / "commitlog" / "00000000000000196608").unlink()
    truth = read_truth(str(HALT / "truth.json"), power_loss=False)
    seen = read_image(tmp_path / "store")
    expected, _ = expectation_of(seen, look_at(seen, override_of(HALT)), truth)
    assert "the image itself lacks" in expected.unknown[2]


# ---- a live store ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "kept", "numbers"),
    [(CASE, 1, []), (TORN, 24, [1, 4, 17]), (HALT, 210, [5])],
    ids=lambda each: str(each)[-9:],
)
def test_a_live_store_is_judged_on_golden_images(release: Release, case: Path, kept: int, numbers: list[int]) -> None:
    with Process(release) as process:
        truth = read_truth(str(case / "truth.json"))
        found = judge_with_peer(process, read_image(case / "store"), override=override_of(case), truth=truth)
    assert (found.peer, found.kept, found.numbers("broken")) == ("rocketmq:4.9.3", kept, numbers)


def test_a_store_with_a_short_file_does_not_start(release: Release, tmp_path: Path) -> None:
    shutil.copytree(CASE / "store", tmp_path / "store", copy_function=shutil.copyfile)
    (tmp_path / "store" / "commitlog" / "00000000000000065536").write_bytes(b"")
    with Process(release) as process:
        found = judge_with_peer(process, read_image(tmp_path / "store"), override=override_of(CASE))
    assert (found.kept, found.numbers("broken")) == (None, [7])


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, [*arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_judge_shows_the_peer_and_ends_as_our_store_does(release: Release) -> None:
    asked = (str(TORN / "store"), "--crashes", "1", "--peer", "rocketmq:4.9.3")
    done = run(*asked, "--json")
    document = json.loads(done.stdout)
    (peer,) = document["peers"]
    assert (done.exit_code, document["verdict"]) == (0, "holds")
    assert (peer["peer"], peer["verdict"], peer["broken"], peer["records_kept"]) == (
        "rocketmq:4.9.3", "broken", [1, 4, 17], 24)  # fmt: skip
    text = run(*asked).stdout
    assert "verdict: holds" in text
    assert "rocketmq:4.9.3: broken; keeps 24 records" in text


def test_nothing_of_a_redacted_image_is_shown(release: Release) -> None:
    done = run(str(TORN / "store"), "--crashes", "1", "--peer", "rocketmq:4.9.3", "--redact", "--json")
    assert done.exit_code == 0
    assert "TornTopic" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((str(CASE / "store"), "--peer", "other:1"), "'other:1' is no peer; give rocketmq:VERSION"),
        ((str(CASE / "store"), "--peer", "rocketmq:9.9.9"), "is not a known version"),
        ((str(GOLDEN), "--golden", "--peer", "rocketmq:4.9.3"), "give --peer with one image"),
    ],
)
def test_what_is_no_peer_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert line in said


def test_a_peer_that_is_not_installed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = run(str(CASE / "store"), "--peer", "rocketmq:4.9.3")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "run `tornpage peer install rocketmq 4.9.3` first" in done.stderr

"""Test that requests sent ahead of their answers change no result."""

import sys
from pathlib import Path

import pytest

from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult, run_target_campaign
from tornpage.properties.foreign.process import Died, StoreProcess
from tornpage.properties.foreign.protocol import BadHandshake, read_handshake
from tornpage.properties.foreign.session import StoreSession
from tornpage.properties.foreign.spec import read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.program.case import Settings

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
LOG = f"{Path(__file__).with_name('test_open_many.py')}:Log"

PROGRAM = """
import json, sys
while line := sys.stdin.readline():
    ask = json.loads(line)
    answer = {{"body": None}}
    if ask["do"] == "hello":
        answer = {{"tornpage": 1, "ahead": {ahead}, "promises": {{"offsets": False}}}}
    elif ask.get("number") == 9:
        print("gone", file=sys.stderr)
        sys.exit(3)
    elif ask["do"] == "read":
        answer = {{"body": None, "number": ask["number"]}}
    print(json.dumps(answer), flush=True)
"""


def started(tmp_path: Path, *, ahead: bool = True) -> StoreSession:
    program = tmp_path / "store.py"
    program.write_text(PROGRAM.format(ahead=ahead))
    spec = read_spec(f"cmd:{sys.executable} {program} {{dir}}")
    return StoreSession(StoreProcess(spec, tmp_path), opens_again=False)


def reads(*numbers: int) -> list[dict[str, object]]:
    return [{"topic": "T", "queue": 0, "number": number} for number in numbers]


def asked(session: StoreSession, number: int) -> object:
    return session.call("read", topic="T", queue=0, number=number)["number"]


def test_answers_come_in_the_order_of_the_requests(tmp_path: Path) -> None:
    session = started(tmp_path)
    try:
        session.ahead("read", reads(1, 2, 3))
        assert len(session.process._sent_ahead) == 3
        assert [asked(session, number) for number in (1, 2, 3, 4)] == [1, 2, 3, 4]
    finally:
        session.process.kill()


def test_request_that_was_not_sent_ahead_gets_its_own_answer(tmp_path: Path) -> None:
    session = started(tmp_path)
    try:
        session.ahead("read", reads(1, 2, 3))
        assert [asked(session, number) for number in (1, 7, 2)] == [1, 7, 2]
    finally:
        session.process.kill()


def test_requests_past_the_limit_are_sent_when_they_are_asked(tmp_path: Path) -> None:
    session = started(tmp_path)
    try:
        session.ahead("read", reads(*range(100, 1_100)))
        assert 0 < len(session.process._sent_ahead) < 1_000
        assert [asked(session, number) for number in range(100, 1_100)] == list(range(100, 1_100))
    finally:
        session.process.kill()


def test_death_is_reported_at_the_request_that_has_no_answer(tmp_path: Path) -> None:
    session = started(tmp_path)
    try:
        session.ahead("read", reads(1, 2, 9, 3))
        assert [asked(session, 1), asked(session, 2)] == [1, 2]
        with pytest.raises(Died, match="exits with 3 instead of answering read; on standard error: gone"):
            session.process.ask("read", topic="T", queue=0, number=9)
    finally:
        session.process.kill()


def test_nothing_is_sent_ahead_without_the_word_of_the_store(tmp_path: Path) -> None:
    session = started(tmp_path, ahead=False)
    try:
        session.ahead("read", reads(1, 2))
        assert not session.process._sent_ahead
    finally:
        session.process.kill()


def test_ahead_is_true_or_false() -> None:
    with pytest.raises(BadHandshake, match="ahead is 1: true or false"):
        read_handshake({"tornpage": 1, "ahead": 1})


def run(target: str) -> TargetResult:
    plan = TargetPlan(Settings(target=target), states=40, seed=5, failures_max=1)
    with choose_tracker("auto") as tracker:
        return run_target_campaign(plan, tracker=tracker)


@pytest.mark.slow
@watched
@pytest.mark.parametrize("name", ["Log", "Unsynced"])
def test_result_is_that_of_one_request_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = LOG.replace(":Log", f":{name}")
    ahead = run(target)
    monkeypatch.setattr(StoreSession, "ahead", lambda session, do, requests: None)
    single = run(target)
    assert ahead.result_hash == single.result_hash
    assert ahead.tally.lines() == single.tally.lines()


@pytest.mark.slow
@watched
def test_result_does_not_depend_on_the_trace_of_the_last_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is not crashed again is not traced, and this changes no result."""
    untraced: list[bool] = []
    record_no_more = TargetTrial.record_no_more

    def noted(trial: TargetTrial) -> None:
        record_no_more(trial)
        untraced.append(True)

    monkeypatch.setattr(TargetTrial, "record_no_more", noted)
    fast = run(LOG)
    assert untraced
    monkeypatch.setattr(TargetTrial, "record_no_more", lambda trial: None)
    assert run(LOG).tally.lines() == fast.tally.lines()

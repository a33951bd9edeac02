"""Test campaigns of consumer groups: seeds, verdicts, planted bugs, programs, the command."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.model.consumers.operations import (
    AddQueue,
    CommitProgress,
    CrashBroker,
    CrashLocal,
    DeleteFiles,
    DeliverAnswer,
    DeliverRequest,
    FailRequests,
    FinishBatch,
    FlushBroker,
    GroupOperation,
    HangMember,
    HoldResults,
    Join,
    KillMember,
    Leave,
    PartitionMember,
    PassTime,
    Produce,
    RestartBroker,
    RunGroup,
    StepBroker,
    StepMember,
)
from tornpage.properties.consumers.puller import PulledQueue
from tornpage.properties.consumers.replay import replay_group
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.consumers.campaign import CANARY, REQUIRED, GroupPlan, explore_group
from tornpage.properties.explore.consumers.draws import draw_settings
from tornpage.properties.explore.consumers.programs import ALPHABET, all_programs, unequal_words
from tornpage.properties.planted import GROUP_REPRODUCERS
from tornpage.properties.program.group_case import GroupCase, GroupSettings

TWO = GroupSettings()


@pytest.mark.slow
def test_equal_seeds_give_equal_campaigns(tracker: DirtyTracker) -> None:
    first, second = (explore_group(GroupPlan(TWO, seed=3, states=12), tracker=tracker) for _ in range(2))
    assert first.result_hash == second.result_hash
    assert first.canary == CANARY
    assert first.verdict in (Verdict.HOLDS, Verdict.VACUOUS)
    other = explore_group(GroupPlan(TWO, seed=4, states=2), tracker=tracker)
    assert other.result_hash != first.result_hash


def test_a_short_campaign_is_vacuous(tracker: DirtyTracker) -> None:
    result = explore_group(GroupPlan(TWO, states=1), tracker=tracker)
    assert result.verdict is Verdict.VACUOUS
    assert result.silent
    assert set(result.silent) == {each for each in REQUIRED if not result.tally.hit[each]}


def test_a_campaign_on_the_disk_kill_asks_for_no_lost_write(tracker: DirtyTracker) -> None:
    result = explore_group(GroupPlan(replace(TWO, disk="kill"), states=1), tracker=tracker)
    assert set(result.silent) == {each for each in REQUIRED if not result.tally.hit[each]} - {"writes lost"}


@pytest.mark.deep
@pytest.mark.parametrize("bug", GROUP_REPRODUCERS)
def test_a_campaign_catches_it(bug: str, tracker: DirtyTracker) -> None:
    plan = GroupPlan(GroupSettings(bug=bug), seed=1, states=6_000)
    assert explore_group(plan, tracker=tracker).verdict is Verdict.BROKEN


@pytest.mark.deep
@pytest.mark.parametrize("members", [2, 3])
def test_a_long_campaign_holds(members: int, tracker: DirtyTracker) -> None:
    result = explore_group(GroupPlan(GroupSettings(members=members), seed=5, states=4_000), tracker=tracker)
    assert result.verdict is Verdict.HOLDS, result.silent


# ---- all small programs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, pytest.param(2, marks=pytest.mark.deep)])
def test_a_program_that_is_left_out_repeats_a_listed_one(length: int, tracker: DirtyTracker) -> None:
    count, unequal = unequal_words(length, TWO, tracker=tracker)
    assert count
    assert not unequal


def test_programs_are_counted() -> None:
    assert len(ALPHABET) == 21
    assert [sum(1 for _ in all_programs(length)) for length in (1, 2, 3)] == [18, 259, 3_482]


def test_all_programs_of_one_operation(tracker: DirtyTracker) -> None:
    result = explore_group(GroupPlan(TWO, length=1), tracker=tracker)
    assert result.tally.runs == 18
    assert not result.found


def test_messages_that_the_broker_has_lost_overtake_none(tracker: DirtyTracker) -> None:
    """The judge of order once took a message that a crash had lost for one that was overtaken."""
    operations = (
        PassTime(61_000), Join(), RunGroup(), Produce(tag="B"), Produce(), Produce(), StepBroker(), DeliverAnswer(),
        CrashBroker(),
    )  # fmt: skip
    case = GroupCase(replace(TWO, is_orderly=True, threshold=2), operations)
    assert replay_group(case, tracker=tracker) is None


def test_lost_messages_overtake_none_that_came_later(tracker: DirtyTracker) -> None:
    """The judge once took a message put after a crash for one that was overtaken."""
    operations = (
        FailRequests("members", 2), PassTime(61_000), Produce(), Join(), RunGroup(), Produce(), Produce(),
        RunGroup(3, 500), CrashBroker(), RestartBroker(), Produce(),
    )  # fmt: skip
    case = GroupCase(replace(TWO, is_orderly=True, batch=2), operations)
    assert replay_group(case, tracker=tracker) is None


def test_no_retry_begins_during_a_hand_over(tracker: DirtyTracker) -> None:
    """A message whose return had failed ran again, and its queue was given back meanwhile."""
    operations = (
        Produce(), HoldResults(), Join(), RunGroup(), Join(1), FailRequests("send_to_retry"), RunGroup(by_ms=500),
        PassTime(5_500), FinishBatch(result="later"), RunGroup(by_ms=6_000),
    )  # fmt: skip
    assert replay_group(GroupCase(TWO, operations), tracker=tracker) is None


def test_a_result_counts_for_the_ownership_of_its_run(tracker: DirtyTracker) -> None:
    """The model once counted a run from before a crash for the next lease."""
    operations = (
        Join(), RunGroup(6, 500), Produce(), HoldResults(), RunGroup(2, 6_000), CrashBroker(others="kept"),
        RestartBroker(), RunGroup(2, 6_000), Leave(),
    )  # fmt: skip
    assert replay_group(GroupCase(TWO, operations), tracker=tracker) is None


def test_a_hand_over_waits_for_no_listener_of_an_earlier_lease(tracker: DirtyTracker) -> None:
    """The judge once asked a new ownership to wait for a run whose result counts no more."""
    operations = (
        HoldResults(), Join(), Produce(), RunGroup(by_ms=500), CrashBroker(), RestartBroker(), RunGroup(by_ms=1_000),
        Join(1), RunGroup(),
    )  # fmt: skip
    assert replay_group(GroupCase(TWO, operations), tracker=tracker) is None


def test_an_orderly_member_goes_on_past_a_dead_letter_that_a_crash_takes(tracker: DirtyTracker) -> None:
    """The judge once counted the lost dead letter as a message that was overtaken."""
    operations = (
        PassTime(61_000), Join(1), Produce(), Produce(), RunGroup(result="later"), HoldResults(), RunGroup(by_ms=500),
        FinishBatch(1, result="later"), DeliverRequest(1), DeliverAnswer(1), CrashBroker(),
    )  # fmt: skip
    settings = GroupSettings(is_orderly=True, retries=1)
    assert replay_group(GroupCase(settings, operations), tracker=tracker) is None
    failure = replay_group(GroupCase(replace(settings, syncs=True), operations), tracker=tracker)
    assert failure is None


@pytest.mark.slow
def test_orderly_programs_need_no_message_that_is_sent_back(tracker: DirtyTracker) -> None:
    concurrent = explore_group(GroupPlan(TWO, length=1), tracker=tracker)
    orderly = explore_group(GroupPlan(replace(TWO, is_orderly=True), length=1), tracker=tracker)
    assert ("sent back" in concurrent.silent, "sent back" in orderly.silent) == (
        not concurrent.tally.hit["sent back"],
        False,
    )
    assert orderly.tally.hit["sent back"] == 0


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_finds_a_bug_and_its_token_replays(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli, ["explore", "consumers", "--bug", "CC20", "--states", "60", "--seed", "1", "--json"]
    )
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    finding = document["findings"][0]
    token, sentence = finding["token"], finding["sentence"]
    assert token.startswith("tg1-")
    again = CliRunner().invoke(cli, ["replay", token])
    assert again.exit_code == 1
    assert sentence.partition("(")[0] in again.stdout
    small = CliRunner().invoke(cli, ["shrink", token, "--seconds", "1", "--json"])
    assert small.exit_code == 1
    told = CliRunner().invoke(cli, ["explain", token])
    assert told.exit_code == 1
    assert "Began" in told.stdout
    kept = CliRunner().invoke(cli, ["promote", token, "--name", "second_copy", "--directory", str(tmp_path)])
    assert kept.exit_code == 0
    assert "catches CC20" in kept.stdout


def test_the_command_states_its_bound() -> None:
    result = CliRunner().invoke(cli, ["explore", "consumers", "--all-of", "1", "--json"])
    assert result.exit_code in (0, 3)
    figures = json.loads(result.stdout)["figures"]
    assert figures["runs"] == 18
    assert figures["left_out_checked"] > 0


@pytest.mark.parametrize(
    ("arguments", "why"), [(["--orderly"], "goes with --all-of"), (["--all-of", "1", "--members", "3"], "two members")]
)
def test_the_command_refuses_what_does_not_fit(arguments: list[str], why: str) -> None:
    result = CliRunner().invoke(cli, ["explore", "consumers", *arguments])
    assert result.exit_code == 2
    assert why in result.output


# ---- regressions -----------------------------------------------------------------------------------------------------


def holds(tracker: DirtyTracker, *operations: object, settings: GroupSettings = TWO) -> None:
    """Run a case that was broken once."""
    failure = replay_group(GroupCase(settings, operations), tracker=tracker)  # type: ignore[arg-type]
    assert failure is None, failure.broken


def test_local_progress_survives_with_its_directory(tracker: DirtyTracker) -> None:
    """Regression: the directory of local progress was not synced into its parent.

    Found by drawn runs: "the local progress of a member after a crash is not one that it has saved" (found None).
    """
    holds(tracker, CrashLocal())


def test_a_lost_topic_table_is_read_after_a_crash(tracker: DirtyTracker) -> None:
    """Regression: the lab kept a queue whose creation a crash had undone."""
    holds(tracker, AddQueue(), CrashBroker(back=5, others="kept"))


def test_a_result_after_the_limit_of_a_hand_over_is_not_owed(tracker: DirtyTracker) -> None:
    """Regression: the judge asked for a result after the limit of a hand-over."""
    holds(tracker, Produce(), HoldResults(), Join(), RunGroup(), Leave(), PassTime(62_500))


_LOST_WHILE_IT_RUNS = (Produce(), HoldResults(), Join(), RunGroup(), CrashBroker(), RestartBroker(), Produce())
"""A listener has a message that the broker has lost. Another message has its place in log and queue."""


def test_another_message_at_a_physical_offset_is_not_sent_back(tracker: DirtyTracker) -> None:
    """Regression: the broker copied another message than the failed one (C29).

    It had taken the physical offset of the failed one. Found by drawn runs: "message 2 is sent
    back without a failed try".
    """
    holds(tracker, *_LOST_WHILE_IT_RUNS, FinishBatch(result="later"), RunGroup())


def test_a_message_at_the_place_of_another_one_is_sent_back(tracker: DirtyTracker) -> None:
    """Regression: the broker took its return for a repeated one.

    Both keys named the place only.
    """
    first_fails = (FinishBatch(result="later"), HoldResults(hold=False), FailRequests("send_back"))
    holds(tracker, *_LOST_WHILE_IT_RUNS, *first_fails, RunGroup(), RunGroup(4, 2_000, "later"))


def test_a_copy_has_the_number_of_its_record(tracker: DirtyTracker) -> None:
    """Regression: only the copy that the client sent counted local tries.

    Found by drawn runs: "message 1 is sent back without its failed try".
    """
    fail = (FailRequests("send_back"), FailRequests("send_to_retry"))
    again = (PartitionMember(), RunGroup(1, 6_000, "later"), RunGroup())
    holds(tracker, Produce(), Join(), *fail, RunGroup(result="later"), *again)


def test_the_end_of_a_run_waits_for_the_locks_of_a_lost_member(tracker: DirtyTracker) -> None:
    """Regression: a member got a queue while the lab counted the readers of each queue."""
    joins = (Join(1), StepMember(1), KillMember(1), Produce(3), Join(1), Join())
    holds(tracker, *joins, settings=replace(TWO, is_orderly=True, syncs=True, pull_batch=1, batch=2))


# ---- programs that pull and commit by themselves ---------------------------------------------------------------------

_MANUAL = replace(TWO, is_manual=True, syncs=True)
_LATE_COMMIT = (
    Produce(), HoldResults(), Join(), RunGroup(), CommitProgress(), FinishBatch(), CommitProgress(),
    DeliverRequest(number=1), DeliverRequest(),
)  # fmt: skip


def test_a_commit_that_arrives_late_lowers_no_progress(tracker: DirtyTracker) -> None:
    holds(tracker, *_LATE_COMMIT, settings=_MANUAL)
    broken = replay_group(GroupCase(replace(_MANUAL, bug="CB21"), _LATE_COMMIT), tracker=tracker)
    assert broken is not None
    assert (broken.broken.contract, broken.case.operations) == (24, _LATE_COMMIT)


def test_a_commit_past_a_running_message_is_noticed(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PulledQueue, "finished", property(lambda queue: queue.next_offset))
    case = GroupCase(_MANUAL, (Produce(), HoldResults(), Join(), RunGroup(), PassTime(5_000), RunGroup()))
    failure = replay_group(case, tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == 21


def test_a_program_may_repeat_a_refused_commit(tracker: DirtyTracker) -> None:
    """Regression: a judge of pauses was applied to programs that commit by themselves.

    Found by drawn runs: "a member repeats a request at once that was refused".
    """
    holds(tracker, Join(), FailRequests("update_offset"), RunGroup(), CommitProgress(), settings=_MANUAL)


# ---- retention -------------------------------------------------------------------------------------------------------


def test_a_group_with_retention_begins_at_the_first_messages() -> None:
    """Regression: a new group skipped the messages of a queue with expired ones.

    It began at the last messages. Found by drawn runs: "progress of queue 2 of T passes over message 4".
    """
    drawn = [draw_settings(TWO, Random(seed)) for seed in range(200)]
    begins = {(each.log_file_bytes < TWO.log_file_bytes, each.begins) for each in drawn}
    assert begins == {(True, "first"), (False, "first"), (False, "last")}


def test_a_group_goes_on_after_expired_messages(tracker: DirtyTracker) -> None:
    """A member hangs while retention deletes messages that it has not consumed."""
    produced: tuple[GroupOperation, ...] = (
        *[Produce(body_bytes=600)] * 6,
        FlushBroker(),
        StepBroker(),
        PassTime(1_000),
        DeleteFiles(),
    )
    settings = replace(TWO, queues=1, log_file_bytes=1536)
    trial = GroupTrial(settings, tracker=tracker)
    operations: tuple[GroupOperation, ...] = (
        Join(), RunGroup(), HangMember(), *produced, CrashBroker(kill=True), RestartBroker(),
    )  # fmt: skip
    for operation in operations:
        trial.run(operation)
    assert trial.group.begin >= 1536
    trial.finish()
    assert trial.group.excused

from dataclasses import fields, replace

import pytest

from tornpage.model.answers import ANY_REFUSAL, Answer, Marks, PutAnswer, accepted, matches
from tornpage.model.crash import next_process, reopened
from tornpage.model.operations import (
    AimFault,
    Clean,
    ClockStep,
    Close,
    CommitOffset,
    Concurrent,
    DeleteTopics,
    FailAppend,
    FailSync,
    Flush,
    Get,
    GetMessage,
    Operation,
    PullHeld,
    Put,
    RefuseFile,
    Step,
)
from tornpage.model.state import Clock, CommitLog, Disk, Faults, Layout, Process, State, Timers
from tornpage.model.step import applies, begin, step

LAYOUT = Layout(file_bytes=1024, record_bytes_max=1 << 20, trailer=False, sync_flush=False, files_max=1000)
SYNC = replace(LAYOUT, sync_flush=True)
HOUR_MS = 3_600_000


def after(*operations: Operation, layout: Layout = LAYOUT, state: State | None = None) -> tuple[State, Answer]:
    """Return the first outcome of the last operation, each of the others having had its first."""
    now, answer = State() if state is None else state, Answer()
    for operation in operations:
        now, answer = next(step(now, operation, layout))
    return now, answer


def outcomes(state: State, operation: Operation, layout: Layout = LAYOUT) -> list[tuple[State, Answer]]:
    return list(step(state, operation, layout))


def test_a_log_is_disk_process_and_timers_and_a_crash_leaves_the_disk() -> None:
    log = CommitLog(flushed_offset=7, flags=16, retry_ms=3)
    assert (log.disk, log.process, log.timers) == (Disk(flushed_offset=7), Process(flags=16), Timers(retry_ms=3))
    assert log.changed(flags=0, end_offset=9) == CommitLog(flushed_offset=7, end_offset=9, retry_ms=3)
    assert CommitLog(log.disk) == CommitLog(flushed_offset=7)
    names = [field.name for part in (Disk, Process, Timers) for field in fields(part)]
    assert all(getattr(log, name) is not None or name.endswith("_ms") or name == "hanging" for name in names)
    assert len(set(names)) == len(names) == 28


def test_a_put_answers_with_its_place_and_time() -> None:
    state, answer = after(Put(advance_ms=5))
    assert isinstance(answer.put, PutAnswer)
    assert answer.put[:6] == ("PUT_OK", 0, state.log.end_offset, 0, 5, 1)
    assert answer.marks == Marks(0, 0, state.log.end_offset, state.log.end_offset)
    assert state.clock == Clock(5)


def test_a_closed_store_gives_no_service_and_time_passes() -> None:
    state, answer = after(Close(), Put(advance_ms=2))
    assert answer.put == PutAnswer("SERVICE_NOT_AVAILABLE")
    assert answer.marks is None
    assert (state.log.records, state.clock.now_ms) == ((), 2)


def test_a_later_put_is_answered_by_the_step_that_covers_it() -> None:
    state, answer = after(Put(later=True), Put(later=True), layout=SYNC)
    assert (answer.put, [put.number for put in state.puts]) == ("waits", [0, 1])
    state, answer = after(Step("group-commit"), layout=SYNC, state=state)
    assert answer.ended is not None
    assert [(number, put.status) for number, put in answer.ended] == [(0, "PUT_OK"), (1, "PUT_OK")]
    assert state.puts == ()


def test_a_failed_sync_is_answered_and_poisons() -> None:
    state, answer = after(FailSync(), Put(), layout=SYNC)
    assert isinstance(answer.put, PutAnswer)
    assert answer.put.status == "CREATE_MAPEDFILE_FAILED"  # the first put makes a file, whose sync fails
    state, answer = after(Put(), FailSync(), Flush())
    assert (answer.durable, state.log.poisoned) == (False, True)


def test_what_the_disk_has_left_to_fail_tells_outcomes_apart() -> None:
    state, _ = after(FailAppend())
    found = Answer(faults=Faults())
    left = {each.environment.faults.append for each, _ in outcomes(state, Put())}
    assert left == {True, False}
    ((consumed, answer),) = accepted(step(state, Put(), LAYOUT, found=found), found)
    assert (consumed.environment.faults, answer.put) == (Faults(), PutAnswer("UNKNOWN_ERROR"))
    grown = Answer(faults=Faults(syncs=1))
    assert not list(accepted(step(state, Put(), LAYOUT, found=grown), grown))


def test_dispatch_breaks_off_only_where_a_file_was_refused() -> None:
    state, _ = after(Put())
    assert [answer.failed for _, answer in outcomes(state, Step("reput"))] == [False]
    refusing = begin(state, RefuseFile(), LAYOUT)
    broken = [each for each, answer in outcomes(refusing, Step("reput")) if answer.failed]
    assert [(each.broke_off, each.environment.faults.files) for each in broken] == [(True, 0)]
    assert not applies(broken[0], GetMessage(), LAYOUT)


def test_reads_name_queues_in_the_order_of_their_first_record() -> None:
    state, _ = after(Put(topic="B"), Put(topic="A"), Step("reput"))
    _, answer = after(GetMessage(queue=1), state=state)
    assert answer.pulled is not None
    assert (answer.pulled.status, answer.pulled.offsets) == ("FOUND", (state.log.records[1].offset,))
    _, answer = after(Get(record=1), state=state)
    assert answer.got is not None
    assert (answer.got.status, answer.got.topic) == ("FOUND", "A")


def test_a_held_pull_ends_with_the_message_it_waits_for() -> None:
    state, answer = after(Put(), Step("reput"), PullHeld())
    assert (answer.pull, len(state.pulls)) == ("held", 1)
    state, answer = after(Put(), Step("reput"), Step("pull-hold"), state=state)
    assert answer.ended_pulls is not None
    ((number, pulled),) = answer.ended_pulls
    assert (number, not isinstance(pulled, str) and pulled.status, state.pulls) == (0, "FOUND", ())


def test_a_commit_of_an_offset_counts_up_to_the_end() -> None:
    state, answer = after(Put(), Step("reput"), CommitOffset(behind=-5))
    assert answer.committed == 1
    assert state.consumers.committed == ((("T", "g", 0), 1),)


def test_clean_up_takes_ages_from_the_wall_clock() -> None:
    puts = (Put(body_bytes=800), Put(body_bytes=800), Put(body_bytes=800), Step("reput"), Flush())
    state, _ = after(*puts)
    back, _ = after(ClockStep(by_ms=-2 * HOUR_MS), state=state)
    clean = Clean(after_hours=73, manual=True)
    assert after(clean, state=state)[0].log.min_offset == 2 * 1024
    assert after(clean, state=back)[0].log.min_offset == 0


def test_two_producers_have_every_order_of_their_puts() -> None:
    both = Concurrent(first=(Put(fill=1), Put(fill=2)), second=(Put(fill=3),))
    orders = {
        tuple(record.message.born_timestamp % 10 for record in each.log.records) for each, _ in outcomes(State(), both)
    }
    assert orders == {(1, 2, 3), (1, 3, 2), (3, 1, 2)}


def test_answers_of_two_producers_leave_one_order() -> None:
    both = Concurrent(first=(Put(fill=1),), second=(Put(fill=2),))
    for _, expected in outcomes(State(), both):
        found = Answer(producers=expected.producers)
        chosen = list(accepted(step(State(), both, LAYOUT, found=found), found))
        assert [answer.producers for _, answer in chosen] == [expected.producers]


RULED, _ = after(Put(), Put(), Step("reput"), AimFault("sync-error"))


def test_under_a_rule_a_put_is_stored_or_refused() -> None:
    answers = [answer for _, answer in outcomes(RULED, Put())]
    found = {(each.put.status, bool(each.read_only)) for each in answers if isinstance(each.put, PutAnswer)}
    assert {("PUT_OK", False), ("PUT_OK", True), (ANY_REFUSAL, False), (ANY_REFUSAL, True)} <= found
    sound = Answer(put=PutAnswer("CREATE_MAPEDFILE_FAILED"), faults=Faults(fired=False))
    assert not list(accepted(step(RULED, Put(), LAYOUT, found=sound), sound))
    end = RULED.log.end_offset
    fired = replace(sound, faults=Faults(fired=True), marks=Marks(0, 0, end, end), read_only=False)
    assert len(list(accepted(step(RULED, Put(), LAYOUT, found=fired), fired))) == 1


def test_under_a_rule_nothing_promised_is_taken_back() -> None:
    flushed, _ = after(Put(), Flush(), AimFault("sync-error"))
    end = flushed.log.end_offset
    for operation in (Put(), Flush(), Step("flush"), Clean(), DeleteTopics()):
        assert all(each.log.flushed_offset >= end for each, _ in outcomes(flushed, operation))


def test_under_a_rule_a_durable_flush_has_flushed_everything() -> None:
    ends = {each.log.flushed_offset for each, answer in outcomes(RULED, Flush()) if answer.durable}
    assert ends == {RULED.log.end_offset}
    assert {0, RULED.log.records[0].end_offset} < {
        each.log.flushed_offset for each, answer in outcomes(RULED, Flush()) if not answer.durable
    }


def test_under_a_rule_a_deletion_is_done_for_all_topics_or_for_none() -> None:
    found = {(answer.names, answer.is_anew, bool(each.log.deleted)) for each, answer in outcomes(RULED, DeleteTopics())}
    assert found == {(("T",), True, True), ("refused", True, True), ("refused", False, False)}


@pytest.mark.parametrize(
    "operation",
    [Put(), Flush(), Step("flush"), Step("progress"), Step("reput"), Clean(manual=True), DeleteTopics(), Close()],
    ids=str,
)
@pytest.mark.parametrize("layout", [LAYOUT, replace(LAYOUT, pool_buffers=1)], ids=["plain", "pool"])
def test_an_answer_spares_outcomes_and_loses_none(operation: Operation, layout: Layout) -> None:
    state, _ = after(Put(), Put(body_bytes=700), Put(body_bytes=700), AimFault("sync-error"), layout=layout)
    for _, answer in outcomes(state, operation, layout)[::7]:
        found = replace(answer, note=None)
        if isinstance(found.put, PutAnswer) and found.put.status == ANY_REFUSAL:
            found = replace(found, put=PutAnswer("CREATE_MAPEDFILE_FAILED"))
        plain = [each for each, said in accepted(step(state, operation, layout), found)]
        spared = [each for each, said in accepted(step(state, operation, layout, found=found), found)]
        assert plain == spared != []
        assert all(matches(said, found) for _, said in step(state, operation, layout) if said == answer)


def test_the_next_process_has_the_disk_and_saved_progress() -> None:
    state, _ = after(Put(), Step("reput"), CommitOffset(), Step("progress"), CommitOffset(behind=1), PullHeld())
    again = next_process(state, reopened(state.log), layout=LAYOUT)
    assert again.consumers.committed == state.consumers.saved == ((("T", "g", 0), 1),)
    assert (again.pulls, again.log.timers, again.log.flags) == ((), Timers(), 0)
    assert again.log.flushed_offset == state.log.end_offset

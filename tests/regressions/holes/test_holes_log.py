"""Minimal reproducers of the RocketMQ 4.9.3 defects H1 to H11, A1 to A3 and A5 to A7.

Each one holds in this store and breaks a promise when its defect is planted.
Found by: `tornpage bugs holes --hunt` (docs/holes.md), then made smaller by hand.
"""

from tests.support.regressions import Attempt, breaks_only_with
from tornpage.model.operations import (
    Close,
    CommitOffset,
    Crash,
    Damage,
    FailSync,
    FailWrite,
    Flush,
    Member,
    Open,
    Put,
    PutBatch,
    Step,
)
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.score.holes import HOLES

FIRST, SECOND, THIRD = (f"/store/commitlog/{base:020d}" for base in (0, 1024, 2048))
A_FILE_EACH = Settings(file_bytes=1024)
FILLS_A_FILE = Put(body_bytes=700)
COMMIT = Step(service="commit", after_ms=200)
REPUT = Step(service="reput")
DELIVER, SAVE = Step(service="schedule", after_ms=1_000), Step(service="progress", after_ms=10_000)


def test_h1_stale_tail_does_not_return(attempt: Attempt) -> None:
    """A page is lost and the page after it survives: the cut erases the survivor."""
    puts = (Put(), Flush(), Put(body_bytes=4200), Put(body_bytes=4000))
    breaks_only_with("H1", attempt, (*puts, Crash(survived={f"page {FIRST} 2": 1})), contract=3)


def test_h2_record_without_its_properties_does_not_count(attempt: Attempt) -> None:
    """The surviving page holds everything up to the length of the properties."""
    put = Put(body_bytes=4004, properties="KEYS\x01k\x02TAGS\x01TagA")
    breaks_only_with("H2", attempt, (put, Crash(survived={f"page {FIRST} 0": 1})), contract=1)


def test_h2b_record_without_its_topic_does_not_count(attempt: Attempt) -> None:
    """The surviving page holds everything up to the length of the topic.

    The record has no properties and no trailer.
    """
    operations = (Put(topic="TopicTest", body_bytes=4007), Crash(survived={f"page {FIRST} 0": 1}))
    breaks_only_with("H2", attempt, operations, Settings(trailer=False), contract=1)


def test_h3_record_in_a_body_does_not_count(attempt: Attempt) -> None:
    """The file loses its end, and with it the record around another record."""
    operations = (Put(body_bytes=506, body_kind="record"), Damage(kind="truncate", amount=600))
    breaks_only_with("H3", attempt, operations, A_FILE_EACH, contract=7)


def test_h4_log_does_not_go_on_behind_a_gap(attempt: Attempt) -> None:
    """Of three files the name of the second is lost."""
    survived = {f"page {FIRST} 0": 3, f"link {THIRD}": 1, f"page {THIRD} 0": 1}
    breaks_only_with("H4", attempt, (FILLS_A_FILE,) * 3 + (Crash(survived=survived),), A_FILE_EACH, contract=1)


def test_h5_old_files_are_not_believed_for_their_times(attempt: Attempt) -> None:
    """The clock was set back by 20 s: the second file is older than the checkpoint.

    The first file is not durable.
    """
    second = f"/store/commitlog/{8192:020d}"
    survived = {f"page {FIRST} 0": 9, f"page {second} 0": 9, f"page {second} 1": 9}
    before = (Put(body_bytes=100), Flush(), Step(service="reput"), Step(service="flush-queues"))
    back = Put(body_bytes=5000, advance_ms=-20_000)
    operations = (*before, back, Put(body_bytes=5000), Crash(survived=survived))
    breaks_only_with("H5", attempt, operations, Settings(file_bytes=8192), contract=1)


def test_h6_crash_does_not_pass_for_a_clean_exit(attempt: Attempt) -> None:
    """The power loss takes the marker.

    A torn record then looks like damage after a clean exit.
    """
    operations = (Put(), Flush(), Put(body_bytes=4200), Crash(survived={f"page {FIRST} 0": 1}))
    breaks_only_with("H6", attempt, operations, contract=7)


def test_h7_lengths_that_wrap_are_refused(attempt: Attempt) -> None:
    """Properties of message and batch are 32,768 bytes together.

    A topic of 43 characters has 129 bytes.
    """
    own, common = "m\x01" + "v" * 19_998, "b\x01" + "w" * 12_765
    batch = PutBatch(members=(Member(properties=own),), properties=common)
    breaks_only_with("H7", attempt, (batch,), Settings(file_bytes=65536, trailer=False), contract=8)
    breaks_only_with("H7", attempt, (Put(topic="订" * 43),), contract=8, bug="topic-in-characters")


def test_h8_removed_file_does_not_come_back(attempt: Attempt) -> None:
    """The second file survives without the first record in it, and is removed."""
    operations = (FILLS_A_FILE, Flush(), FILLS_A_FILE, FILLS_A_FILE, Crash(survived={f"page {THIRD} 0": 1}))
    breaks_only_with("H8", attempt, operations, A_FILE_EACH, contract=3)


def test_h9_half_a_commit_does_not_count(attempt: Attempt) -> None:
    """A commit writes half of its bytes."""
    operations = (Put(body_bytes=700), FailWrite(), COMMIT)
    breaks_only_with("H9", attempt, operations, Settings(pool_buffers=1), contract=9)


def test_h10_record_without_its_body_does_not_count(attempt: Attempt) -> None:
    """The page in the middle of a body is lost."""
    survived = {f"page {FIRST} 0": 1, f"page {FIRST} 2": 1}
    breaks_only_with("H10", attempt, (Put(body_bytes=10_000), Crash(survived=survived)), contract=1)


def test_h11_old_bytes_of_a_buffer_stay_behind(attempt: Attempt) -> None:
    """The only buffer serves its second file, which ends with a blank."""
    fills = Put(body_bytes=700)
    operations = (fills, COMMIT, fills, COMMIT, Put(body_bytes=400), Put(body_bytes=700), COMMIT)
    breaks_only_with("H11", attempt, operations, Settings(file_bytes=1024, pool_buffers=1), contract=1)


def test_a1_failed_sync_is_no_success(attempt: Attempt) -> None:
    """The sync of a flush fails with EIO."""
    breaks_only_with("A1", attempt, (Put(), FailSync(), Flush(), Close(), Open()), contract=9)


def test_a2_new_file_does_not_vanish(attempt: Attempt) -> None:
    """The first message of a file is flushed, and then the power fails."""
    breaks_only_with("A2", attempt, (Put(), Flush(), Crash()), contract=2)


def test_a3_record_larger_than_a_file_is_refused(attempt: Attempt) -> None:
    """A message of 1,050 bytes for files of 1,024."""
    breaks_only_with("A3", attempt, (Put(body_bytes=1050),), A_FILE_EACH, contract=8)


def test_a5_saved_progress_speaks_of_durable_copies(attempt: Attempt) -> None:
    """Power fails at each moment of a save.

    At one of them the file is durable, and the copy that it counts is not.
    """
    delayed = Put(properties="DELAY\x011")
    seen = set()
    for back in range(30):
        operations = (delayed, Flush(), REPUT, DELIVER, SAVE, Crash(back=back))
        broken = attempt(operations, Settings(), parts_of(HOLES["A5"].bug))
        seen.add(None if broken is None else broken.contract)
        assert attempt(operations, Settings()) is None
    assert seen == {None, 12}


def test_a6_nobody_is_led_past_new_messages(attempt: Attempt) -> None:
    """A group has durably committed an offset, and the power loss takes that message."""
    breaks_only_with("A6", attempt, (Put(), REPUT, CommitOffset(), SAVE, Crash()), contract=17)


def test_a7_progress_file_is_old_or_new(attempt: Attempt) -> None:
    """Power fails after the first save."""
    breaks_only_with("A7", attempt, (Put(), REPUT, Flush(), CommitOffset(), SAVE, Crash()), contract=13)

"""Test stores on Raft logs: puts, reads, statuses, counters, restarts, refusals."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig, StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, GetStatus, Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.messages import Envelope
from tornpage.impl.raft.raft_store import Membership, NotReplicated, RaftStore
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven

FILE_BYTES = 2048
CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=FILE_BYTES,
    mapped_file_size_consume_queue=400,
    max_hash_slot_num=16,
    max_index_num=64,
)


class Group:
    """Stores of a group in one thread. Messages between members that are `apart` are lost."""

    def __init__(self, members: int, tracker: DirtyTracker) -> None:
        self.members = members
        self.now_ms = 1_700_000_000_000
        self.apart: set[int] = set()
        self.files = [RecordingFiles(EMPTY_DISK, tracker=tracker) for _ in range(members)]
        self.services: list[list[HandDriven]] = [[] for _ in range(members)]
        self.under_way: list[tuple[int, Envelope]] = []
        self.stores = [self.open(number) for number in range(members)]

    def open(self, number: int, config: MessageStoreConfig = CONFIG) -> RaftStore:
        self.services[number] = []

        def runner_of(service: Service) -> HandDriven:
            driven = HandDriven(service, lambda: self.now_ms)
            self.services[number].append(driven)
            return driven

        return RaftStore.open(
            "/member",
            config,
            Membership(number, self.members, index_file_bytes=4096),
            files=self.files[number],
            clock=lambda: self.now_ms,
            send=lambda sent: self.under_way.extend((number, each) for each in sent),
            parts=Parts({ThreadRunner: runner_of}),
        )

    def reopen(self, number: int) -> RaftStore:
        self.stores[number].close()
        self.stores[number] = self.open(number)
        return self.stores[number]

    def elect(self, number: int) -> RaftStore:
        self.send(number, self.stores[number].election_timeout())
        self.settle()
        return self.stores[number]

    def beat(self, number: int) -> None:
        self.send(number, self.stores[number].heartbeat())
        self.settle()

    def send(self, source: int, sent: list[Envelope]) -> None:
        self.under_way += [(source, each) for each in sent]

    def settle(self) -> None:
        """Deliver all messages, sync all logs and dispatch, until nothing is left to do."""
        while True:
            while self.under_way:
                source, envelope = self.under_way.pop(0)
                if not self.apart & {source, envelope.to}:
                    self.send(envelope.to, self.stores[envelope.to].receive(source, envelope.message))
            for number, store in enumerate(self.stores):
                self.send(number, store.sync())
            if not self.under_way:
                break
        for services in self.services:
            for each in services:
                if each.will_step(self.now_ms):
                    each.step()


def message(text: str, queue_id: int = 0) -> Message:
    return Message("T", text.encode(), queue_id=queue_id, properties=f"KEYS\x01{text}\x02")


def bodies(store: RaftStore, queue_id: int = 0) -> list[bytes]:
    with store.store.get_message("T", queue_id, 0, max_msg_nums=64) as found:
        return [each.message().body for each in found.messages]


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


@pytest.fixture
def group(tracker: DirtyTracker) -> Iterator[Group]:
    made = Group(3, tracker)
    yield made
    for each in made.stores:
        each.close()


def put(store: RaftStore, text: str, queue_id: int = 0) -> "Future[PutResult]":
    return store.store.put_async(message(text, queue_id))


def test_a_put_is_answered_once_a_majority_has_it(group: Group) -> None:
    leader = group.elect(0)
    answer = put(leader, "a")
    leader.sync()
    assert not answer.done()
    group.settle()
    assert answer.result(0).status is PutStatus.PUT_OK
    assert (answer.result(0).offset, answer.result(0).queue_offset) == (96, 0)  # after the entry that begins the term
    assert bodies(leader) == [b"a"]


def test_all_members_serve_committed_messages(group: Group) -> None:
    leader = group.elect(0)
    answers = [put(leader, f"{number}", number % 2) for number in range(12)]
    group.settle()
    group.beat(0)
    assert {answer.result(0).status for answer in answers} == {PutStatus.PUT_OK}
    for each in group.stores:
        assert each.store.max_offset > FILE_BYTES  # more than one data file
        assert bodies(each) == [b"%d" % number for number in range(0, 12, 2)]
        assert bodies(each, 1) == [b"%d" % number for number in range(1, 12, 2)]
        with each.store.query_message("T", "7") as found:
            assert [one.message().body for one in found.messages] == [b"7"]
        assert [one.body for one in each.store.messages()] == [b"%d" % number for number in range(12)]
        assert all(each.store.get(answer.result(0).offset).status is GetStatus.FOUND for answer in answers)


def test_an_uncommitted_message_is_not_visible(group: Group) -> None:
    leader = group.elect(0)
    group.apart = {0}
    answer = put(leader, "a")
    group.settle()
    assert leader.member.log.synced == leader.member.log.end == 2
    assert bodies(leader) == []
    assert leader.store.max_offset_in_queue("T", 0) == 0
    assert leader.store.get(96).status is not GetStatus.FOUND
    assert not answer.done()


def test_a_follower_refuses_puts(group: Group) -> None:
    group.elect(0)
    assert put(group.stores[1], "a").result(0).status is PutStatus.NOT_LEADER


def test_a_put_without_a_majority_has_an_unknown_outcome_after_its_time(group: Group) -> None:
    leader = group.elect(0)
    group.apart = {0}
    late = put(leader, "late")
    group.now_ms += CONFIG.slave_timeout
    group.settle()
    assert late.result(0).status is PutStatus.OUTCOME_UNKNOWN
    retry = put(leader, "late")
    group.apart = set()
    group.beat(0)
    assert (retry.result(0).status, retry.result(0).queue_offset) == (PutStatus.PUT_OK, 1)
    assert bodies(leader) == [b"late", b"late"]


def test_a_deposed_leader_answers_unknown_and_gives_the_numbers_back(group: Group) -> None:
    old = group.elect(0)
    kept = put(old, "kept")
    group.settle()
    group.apart = {0}
    lost = put(old, "lost")
    new = group.elect(1)
    first = put(new, "first")
    group.apart = set()
    assert not lost.done()
    group.beat(1)
    group.beat(1)  # the commit end follows the entries
    assert lost.result(0).status is PutStatus.OUTCOME_UNKNOWN
    assert (kept.result(0).queue_offset, first.result(0).queue_offset) == (0, 1)
    assert bodies(old) == bodies(new) == [b"kept", b"first"]
    again = group.elect(0)
    second = put(again, "second")
    group.settle()
    assert (second.result(0).status, second.result(0).queue_offset) == (PutStatus.PUT_OK, 2)
    with again.store.query_message("T", "lost") as found:
        assert not found.messages


def test_a_new_leader_numbers_after_the_uncommitted_entries_that_it_keeps(group: Group) -> None:
    old = group.elect(0)
    put(old, "a")
    for source, envelope in group.under_way[:]:
        group.stores[envelope.to].receive(source, envelope.message)  # no answer arrives
    group.under_way.clear()
    group.apart = {0}
    new = group.elect(1)
    answer = put(new, "b")
    group.settle()
    assert answer.result(0).queue_offset == 1
    assert bodies(new) == [b"a", b"b"]


def test_a_read_of_the_leader_sees_what_was_acknowledged(group: Group) -> None:
    leader = group.elect(0)
    put(leader, "a")
    group.settle()
    begun = leader.begin_read()
    assert begun is not None
    answer, sent = begun
    assert not answer.done()
    group.send(0, sent)
    group.settle()
    assert answer.result(0) == 2
    assert group.stores[1].begin_read() is None


def test_a_read_of_a_deposed_leader_is_not_answered_with_an_end(group: Group) -> None:
    old = group.elect(0)
    group.apart = {0}
    begun = old.begin_read()
    assert begun is not None
    group.elect(1)
    group.apart = set()
    group.beat(1)
    assert begun[0].result(0) is None


def test_a_restarted_member_serves_what_it_showed(group: Group) -> None:
    leader = group.elect(0)
    put(leader, "a")
    group.settle()
    again = group.reopen(0)
    assert again.member.commit == again.member.log.end
    assert bodies(again) == [b"a"]


def test_a_member_without_its_checkpoint_shows_nothing_before_a_leader_confirms(group: Group) -> None:
    leader = group.elect(0)
    put(leader, "a")
    group.settle()
    leader.close()
    group.files[0].unlink("/member/dledger-n0/checkpoint")
    again = group.stores[0] = group.open(0)
    assert again.store.max_offset_in_queue("T", 0) == 0
    group.elect(1)
    group.beat(1)
    assert bodies(again) == [b"a"]


def test_a_data_file_whose_predecessor_was_lost_is_no_part_of_the_log(group: Group) -> None:
    group.stores[0].close()
    data = "/member/dledger-n0/data"
    file = group.files[0].create(f"{data}/{FILE_BYTES:020d}")
    group.files[0].allocate(file, FILE_BYTES)
    group.files[0].close(file)
    member = group.stores[0] = group.open(0)
    assert member.store.min_offset == 0
    leader = group.elect(0)
    put(leader, "a")
    group.settle()
    assert bodies(leader) == [b"a"]


def test_a_batch_is_committed_message_by_message(group: Group) -> None:
    leader = group.elect(0)
    put(leader, "a")
    members = [BatchMember(b"%d" % number) for number in range(14)]
    answer = leader.store.put_async(MessageBatch("T", encode_batch_body(members), queue_id=0))
    group.settle()
    result = answer.result(0)
    assert (result.status, result.queue_offset, result.message_count) == (PutStatus.PUT_OK, 1, 14)
    found = [leader.store.get(offset).message for offset in result.record_offsets]
    assert [each and each.body for each in found] == [b"%d" % number for number in range(14)]
    assert bodies(leader) == [b"a", *(each.body for each in members)]


def test_a_record_that_fits_no_file_is_refused(group: Group) -> None:
    leader = group.elect(0)
    big = Message("T", bytes(FILE_BYTES - 140), queue_id=0)
    assert leader.store.put_async(big).result(0).status is PutStatus.MESSAGE_ILLEGAL
    assert leader.store.put_async(message("a")).done() is False


def test_a_failed_sync_stops_the_member(group: Group) -> None:
    leader = group.elect(0)
    answer = put(leader, "a")
    group.files[0].failing_syncs = 1
    with pytest.raises(OSError, match="Input/output"):
        leader.sync()
    assert answer.result(0).status is PutStatus.OUTCOME_UNKNOWN
    assert put(leader, "b").result(0).status is PutStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(OSError, match="takes no events"):
        leader.heartbeat()


def test_a_failed_write_of_a_record_costs_the_put_only(group: Group) -> None:
    leader = group.elect(0)
    put(leader, "a")
    group.settle()
    group.files[0].failing_writes = 1
    assert put(leader, "b").result(0).status is PutStatus.UNKNOWN_ERROR
    answer = put(leader, "c")
    group.settle()
    assert (answer.result(0).status, answer.result(0).queue_offset) == (PutStatus.PUT_OK, 1)


def test_a_failed_write_inside_a_batch_stops_the_member(group: Group) -> None:
    leader = group.elect(0)
    for number in range(3):
        put(leader, f"{number}")
    group.settle()
    group.files[0].failing_allocations = 1  # of the second data file
    batch = MessageBatch("T", encode_batch_body([BatchMember(b"m")] * 14), queue_id=0)
    assert leader.store.put_async(batch).result(0).status is PutStatus.OUTCOME_UNKNOWN
    assert put(leader, "late").result(0).status is PutStatus.SERVICE_NOT_AVAILABLE
    group.reopen(0)
    leader = group.elect(0)
    kept = len(bodies(leader)) - 3
    assert 0 < kept < 14
    answer = put(leader, "next")
    group.settle()
    assert answer.result(0).queue_offset == 3 + kept


def test_closing_answers_waiting_puts(group: Group) -> None:
    leader = group.elect(0)
    answer = put(leader, "a")
    leader.close()
    leader.close()
    assert answer.result(0).status is PutStatus.OUTCOME_UNKNOWN


def test_delayed_messages_and_deletions_of_topics_are_refused(group: Group) -> None:
    leader = group.elect(0)
    delayed = Message("T", b"a", queue_id=0, properties="DELAY\x013\x02")
    assert leader.store.put_async(delayed).result(0).status is PutStatus.MESSAGE_ILLEGAL
    with pytest.raises(NotReplicated):
        leader.store.clean_unused_topics(())
    with pytest.raises(NotReplicated):
        leader.store.clean_expired_consume_queues()


def test_threads_put_while_another_one_syncs(tmp_path: Path) -> None:
    member = RaftStore.open(
        str(tmp_path / "member"),
        replace(CONFIG, mapped_file_size_commit_log=1 << 16),
        Membership(0, 1, index_file_bytes=4096),
        files=OsFiles(),
        clock=lambda: 1_700_000_000_000,
        send=lambda sent: None,
    )
    member.election_timeout()
    member.sync()
    results: list[PutResult] = []

    def put_some(name: int) -> None:
        answers = [member.store.put_async(message(f"{name}-{number}", number % 2)) for number in range(40)]
        results.extend(answer.result(20) for answer in answers)

    threads = [Thread(target=put_some, args=(name,)) for name in range(3)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        member.sync()
    assert {each.status for each in results} == {PutStatus.PUT_OK}
    begun = member.begin_read()
    assert begun is not None
    assert begun[0].result(20) == 121
    assert sorted(each.queue_offset for each in results) == sorted([*range(60), *range(60)])
    assert member.store.max_offset_in_queue("T", 0) == member.store.max_offset_in_queue("T", 1) == 60
    member.close()


def test_a_directory_is_opened_once(group: Group) -> None:
    with pytest.raises(StoreInUse):
        group.open(0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("broker_role", BrokerRole.SLAVE),
        ("file_reserved_time", 1),
        ("transient_store_pool_enable", True),
        ("enable_multi_dispatch", True),
    ],
)
def test_settings_that_a_raft_log_does_not_have(group: Group, name: str, value: object) -> None:
    with pytest.raises(BadConfig, match=name):
        group.open(0, replace(CONFIG, **{name: value}))  # type: ignore[arg-type]


def test_a_member_has_to_be_in_its_group() -> None:
    with pytest.raises(BadConfig, match="me=3"):
        Membership(3, 3)

"""Test that programs of a part find a wrong part, and have nothing against the right one."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tornpage.impl.config.policy import CommitPolicy, FlushPolicy
from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.delay.schedule import DeliveryRounds
from tornpage.impl.delay.schedule_async import DeliverDelayedMessagesAsync
from tornpage.impl.dispatch import derived, dispatch_records
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived_floor import DerivedFloor
from tornpage.impl.dispatch.queue_flush import FlushConsumeQueues
from tornpage.impl.dispatch.queue_numbers import QueueNumbers, Rulings
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.groups.broker_tables import BrokerTables
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.group_offsets import GroupOffsets
from tornpage.impl.groups.persist_progress import PersistProgress
from tornpage.impl.groups.progress import Progress
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_reconcile import IndexReconcile
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io import store_lock
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.memory import LockedMemory
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.io.store_lock import StoreLock
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.log import loading
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import SpinLock
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.message import PutStatus
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_answers import LightFuture
from tornpage.impl.put.put_path import PutEntry
from tornpage.impl.put.receiving import ReceivedRecords
from tornpage.impl.put.replication import ReplicaGate
from tornpage.impl.put.time_outs import TimeOuts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.impl.queue.consume_queue_ext import ConsumeQueueExt
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.read.confirming import confirm_units
from tornpage.impl.read.held_pulls import HeldPulls
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.queue_pull import Pull
from tornpage.impl.read.queued_records import QueuedRecords
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.recovery import derived_floor_raising, evidence, opening, recovery
from tornpage.impl.recovery.derived_floor_raising import RaiseDerivedFloor
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.recovery.recovery import Recovery
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_consume_queues import CleanConsumeQueues
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.impl.service import lifecycle
from tornpage.impl.service.runner import ThreadRunner
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.parts import (
    appends,
    clean_up,
    closes,
    delays,
    derived_floors,
    dispatch_services,
    dispatches,
    groups,
    held_pulls,
    index,
    log_files,
    mapped_files,
    numbers,
    pulls,
    queues,
    real_files,
    received,
    recovered_logs,
    services,
    small_files,
    waiting_puts,
)
from tornpage.properties.lockstep.parts.part_disk import PartDisk, carried_out

PARTS = (
    clean_up, delays, dispatch_services, dispatches, index, log_files, mapped_files, numbers, pulls, queues, real_files,
    received, recovered_logs, services, small_files, appends, waiting_puts, held_pulls, derived_floors, closes,
    groups,
)  # fmt: skip


def ask(part: Any, seeds: int) -> None:
    for seed in range(seeds):
        part.check(random.Random(seed))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__.rpartition(".")[2])
def test_right_part_has_no_finding(part: Any) -> None:
    ask(part, 20)


run_without_key = ThreadRunner._run


def noted_first(self: ThreadRunner) -> None:
    """Request a step of a runner that has a thread, and note the request too early."""
    if not self._has_work:
        with self._guard:
            self._has_work = self._stopped or self._thread_runs()
            self._state.notify_all()
        if not self._has_work:
            self._step()


def nothing(self: Any, *arguments: Any, **named: Any) -> None:
    """Do nothing."""


def without_last(self: IndexService, code: int, begin_ms: int, end_ms: int) -> list[int]:
    return [offset for each in reversed(self.index_files) for offset in each.offsets_of(code, begin_ms, end_ms)][:-1]


@pytest.mark.parametrize(
    ("part", "place", "name", "wrong"),
    [
        (delays, DelayOffsets, "correct", nothing),
        (delays, DeliveryRounds, "note_runs", nothing),
        (delays, DeliveryRounds, "_first_number", lambda self, queue, level: self._offsets.next_number(level) or 0),
        (delays, DeliveryRounds, "_due_ms", lambda self, queue, number, offset, code: code),
        (delays, DeliverDelayedMessagesAsync, "_is_full", lambda self, level: False),
        (dispatches, dispatch_records, "_add_entries", nothing),
        (dispatches, dispatch_records, "named_queues", lambda record, rules: {}),
        (dispatches, dispatch_records, "bit_map_of_record", lambda record, pairs, bit_map_of: b""),
        (dispatches, MultiDispatch, "_key", lambda self, name, queue_id: (name.encode(), queue_id)),
        (dispatch_services, ReputMessages, "_tell_of_error", nothing),
        (dispatch_services, FlushConsumeQueues, "_least_pages", lambda self, now_ms: 0),
        (dispatch_services, derived, "_has_own_position", lambda view, position, offset: True),
        (dispatch_services, derived, "tell", nothing),
        (received, ReceivedRecords, "_refusal", lambda self, offset: None),
        (received, ReceivedRecords, "_next_unit", lambda self, offset, data: (0, False, None)),
        (queues, ConsumeQueue, "correct_min_offset", nothing),
        (queues, ConsumeQueue, "_settle_ext", nothing),
        (queues, ConsumeQueue, "end_reconcile", lambda self, log_min: False),
        (queues, ConsumeQueue, "rewrite_from", nothing),
        (queues, ConsumeQueue, "_note_rewritten", nothing),
        (queues, ConsumeQueue, "_map_before_gap", lambda self: False),
        (queues, QueueFiles, "_alone", lambda self, base: Finding("note", "none", "", base, "")),
        (queues, QueueFiles, "_remove", lambda self, base, size_bytes: []),
        (queues, ConsumeQueueExt, "get", nothing),
        (queues, ConsumeQueues, "_destroy", lambda self, queue: self._leftovers.pop(queue.key)),
        (queues, QueueFiles, "_sync_names", nothing),
        (queues, QueueFiles, "check", nothing),
        (queues, QueueFiles, "end_file", nothing),
        (index, IndexService, "candidates", without_last),
        (index, IndexService, "_sync_names", nothing),
        (index, IndexService, "_present", lambda self, puts: 0),
        (index, IndexFile, "rewrite_from", nothing),
        (index, IndexFile, "_erase_after", nothing),
        (small_files, DurableFloor, "raise_to", nothing),
        (small_files, DeletedTopics, "write_if_doubtful", nothing),
        (small_files, DeletedTopics, "settle", nothing),
        (small_files, DerivedFloor, "forget", nothing),
        (groups, ConfigFile, "make_durable", nothing),
        (groups, ConfigTable, "_change", nothing),
        (groups, ConsumerOffsets, "clone", nothing),
        (groups, ConsumerOffsets, "_forget", nothing),
        (groups, GroupOffsets, "query_min_offset_in_all_group", lambda self, topic, without=(): {}),
        (groups, BrokerTables, "_change", nothing),
        (groups, BrokerTables, "put_consumer_filter", nothing),
        (groups, PersistProgress, "_save", lambda self, owner: True),
        (groups, Progress, "save_all", nothing),
        (groups, Progress, "stop", nothing),
        (small_files, evidence, "_fits", lambda unit, log_file_bytes: True),
        (numbers, QueueNumbers, "_strangers", lambda self, found, placed: []),
        (numbers, QueueNumbers, "_ask_units", nothing),
        (numbers, QueueNumbers, "_finding", lambda self, ruling: Finding("note", "none", "", 0, "")),
        (numbers, Rulings, "applied", lambda self, runs: runs),
        (pulls, Pull, "_wants_unit", lambda self, code: True),
        (pulls, Pull, "_confirmed", lambda self, confirm, wanted: True),
        (pulls, QueuedRecords, "_belongs", lambda self, session, key, number: True),
        (pulls, ReadBuffers, "settle", nothing),
        (log_files, loading, "_is_zeros", lambda files, path: True),
        (log_files, loading, "_end_of_use", lambda files, found, **named: len(found)),
        (log_files, LogDirectories, "_is_full", lambda self, usage: False),
        (log_files, AllocateMappedFiles, "prepare", nothing),
        (log_files, AllocateMappedFiles, "give_back", nothing),
        (mapped_files, MappedFileQueue, "_return", nothing),
        (mapped_files, MappedFileQueue, "_borrow", lambda self, base_offset: None),
        (mapped_files, MappedFileQueue, "populate_last", nothing),
        (mapped_files, MappedFileQueue, "end_at", nothing),
        (mapped_files, MappedFileQueue, "remove", nothing),
        (mapped_files, MappedFileQueue, "check", nothing),
        (mapped_files, MappedFileQueue, "readable_end", property(lambda self: self.committed_where)),
        (mapped_files, VerifiedRecords, "note_failure", nothing),
        (mapped_files, TransientStorePool, "close", lambda self: len(self._lent)),
        (mapped_files, CommitPolicy, "is_due", staticmethod(lambda **named: True)),
        (mapped_files, FlushPolicy, "is_due", staticmethod(lambda **named: True)),
        (index, IndexReconcile, "_header", lambda self: self._file.header),
        (recovered_logs, Recovery, "_is_left_over", lambda self, scan: False),
        (recovered_logs, Recovery, "_make_durable", nothing),
        (recovered_logs, Recovery, "_missing", nothing),
        (recovered_logs, Recovery, "_proved_by_time", nothing),
        (recovered_logs, recovery, "quarantine", nothing),
        (recovered_logs, recovery, "_copy", lambda files, directory, data, offset: ""),
        (recovered_logs, opening, "rewrite_unproved", nothing),
        (small_files, store_lock, "make_directories", nothing),
        (small_files, Checkpoint, "flush", nothing),
        (clean_up, CleanCommitLog, "retry_hanging", nothing),
        (clean_up, CleanCommitLog, "_is_expired", lambda self, first, following, clock_ms: True),
        (clean_up, CleanFiles, "_take_manual_run", lambda self: False),
        (clean_up, CleanConsumeQueues, "follow", lambda self: iter(())),
        (services, ThreadRunner, "stop", nothing),
        (services, ThreadRunner, "_sleep", lambda self: False),
        (services, ThreadRunner, "wake", noted_first),
        (services, ThreadRunner, "_run", lambda self, key: run_without_key(self, self._thread_key)),
        (services, lifecycle, "note_open", nothing),
        (services, SpinLock, "acquire", lambda self, blocking=True: True),
        (real_files, OsFiles, "sync", nothing),
        (real_files, OsFiles, "sync_directory", nothing),
        (real_files, OsFiles, "advise_will_need", nothing),
        (real_files, OsFiles, "lock", lambda self, file: True),
        (real_files, OsFiles, "pwrite", nothing),
        (real_files, LockedMemory, "release", nothing),
        (appends, MappedFile, "erase_failed_append", nothing),
        (appends, BatchEncoder, "encode", lambda self, batch, now_ms: PutStatus.MESSAGE_ILLEGAL),
        (appends, QueueOffsetTable, "advance", nothing),
        (appends, RecordEncoder, "_properties", lambda self, message, text: self._no_properties),
        (appends, MultiDispatch, "is_light", lambda self, key: False),
        (waiting_puts, TimeOuts, "step", nothing),
        (waiting_puts, LightFuture, "_call_back", nothing),
        (waiting_puts, ReplicaGate, "status", lambda self, end_offset, waits: PutStatus.PUT_OK),
        (waiting_puts, PutEntry, "refusal", nothing),
        (held_pulls, PullHold, "_woken", lambda self: []),
        (held_pulls, PullHold, "_forget", nothing),
        (held_pulls, HeldPulls, "late", lambda self, now_ms: iter(())),
        (derived_floors, RaiseDerivedFloor, "_count_files", lambda self: 0),
        (derived_floors, RaiseDerivedFloor, "_index_files", lambda self, progress, sums: ()),
        (derived_floors, derived_floor_raising, "_end_of", lambda queue, offset: queue.max_offset),
        (closes, Progress, "save_all", nothing),
        (closes, StoreLock, "release", nothing),
        (closes, OpenDirectory, "note_clean_exit", nothing),
    ],
)
def test_wrong_part_is_found(
    monkeypatch: pytest.MonkeyPatch, part: Any, place: Any, name: str, wrong: Callable[..., Any]
) -> None:
    monkeypatch.setattr(place, name, wrong)
    with pytest.raises(GuaranteeBroken):
        ask(part, 40)


def test_failing_call_is_tried_again() -> None:
    disk, rng, made = PartDisk(), random.Random(1), list[int]()
    for number in range(40):
        path = f"/part/{number}"

        def create(path: str = path) -> None:
            made.append(len(made))
            if disk.stat(path) is None:
                disk.close(disk.create(path))
            disk.sync_directory("/part")

        carried_out(disk, rng, "a part", create)
    assert len(made) > 40
    assert len(disk.durable.files) == 40


def test_error_without_a_failing_call_is_found() -> None:
    def fail() -> None:
        raise OSError

    with pytest.raises(GuaranteeBroken, match="although no call failed"):
        carried_out(PartDisk(), random.Random(1), "a part", fail)


def test_other_exception_is_found() -> None:
    with pytest.raises(GuaranteeBroken, match="a part raises ZeroDivisionError"):
        carried_out(PartDisk(), random.Random(1), "a part", lambda: 1 // 0)


def test_open_and_mapped_files_are_counted() -> None:
    disk = PartDisk()
    file = disk.create("/part/x")
    disk.allocate(file, 4096)
    mapping = disk.map(file)
    disk.unlink("/part/x")
    assert disk.held == (1, 1)
    disk.close(file)
    disk.unmap(mapping)
    assert disk.held == (0, 0)


@pytest.mark.slow
def test_compiled_pulls_answer_like_a_plain_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: compiled pulls took pre-fill for a record at offset 0.

    They ended before it, and told its distance to the end of the log.
    """
    compiled = CompiledParts(records_worth_loading=0)
    monkeypatch.setattr(pulls, "confirming", lambda parts: Parts({confirm_units: compiled.confirm_units}))
    ask(pulls, 60)

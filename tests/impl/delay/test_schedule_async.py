"""Test asynchronous delivery: pending answers, their effects and refusals."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.impl.delay.test_schedule import LONG, SHORT, Scheduled
from tests.support.impl.stores import Arrivals, ScriptedReplicas, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.parts import Parts
from tornpage.impl.put.replication import make_replicas
from tornpage.impl.service.running_flags import RunningFlag


def awaiting(directory: Path, *, pending_max: int = 2_000, parts: Parts | None = None, **settings: Any) -> Scheduled:
    """Return a store that delivers asynchronously and syncs before it answers."""
    return Scheduled(
        directory,
        parts=parts,
        **{"flush_disk_type": FlushDiskType.SYNC_FLUSH} | settings,
        enable_schedule_async_deliver=True,
        schedule_async_deliver_max_pending_limit=pending_max,
    )


def test_a_level_goes_on_behind_a_copy_once_it_is_answered(tmp_path: Path) -> None:
    here = awaiting(tmp_path)
    here.put(SHORT, SHORT)
    assert here.step(1000) is None  # an answer wakes the service
    wakes = here.runner["schedule"].wakes
    assert (len(here.copies), here.store.delay_offsets()) == (2, {})
    here.runner.step("group-commit")
    assert (here.runner["schedule"].wakes, here.store.delay_offsets()) == (wakes + 2, {})
    assert here.step() is None
    assert here.store.delay_offsets() == {1: 2}
    assert here.store.flushed_offset == here.store.max_offset
    here.store.close()


def test_a_store_whose_answers_come_at_once_delivers_as_ever(tmp_path: Path) -> None:
    here = awaiting(tmp_path, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    here.put(SHORT, SHORT)
    wakes = here.runner["schedule"].wakes
    assert here.step(1000) is None
    assert (here.store.delay_offsets(), here.runner["schedule"].wakes) == ({1: 2}, wakes)
    here.store.close()


def test_a_full_line_puts_no_more_until_its_first_is_answered(tmp_path: Path) -> None:
    here = awaiting(tmp_path, pending_max=2)
    here.put(SHORT, SHORT, SHORT, LONG)
    assert here.step(5000) is None
    assert [copy.topic for copy in here.copies] == ["T", "T", "U"]  # levels do not wait for each other
    here.runner.step("group-commit")
    assert here.step() is None
    assert [copy.topic for copy in here.copies] == ["T", "T", "U", "T"]
    here.store.close()


def test_what_is_not_confirmed_is_counted_and_never_put_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    replicas = ScriptedReplicas(confirms=None)
    here = awaiting(
        tmp_path, parts=Parts({make_replicas: lambda: replicas}), broker_role=BrokerRole.SYNC_MASTER,
        flush_disk_type=FlushDiskType.ASYNC_FLUSH,
    )  # fmt: skip
    replicas.confirms = True
    here.put(SHORT, SHORT)
    replicas.confirms = None
    assert here.step(1000) is None
    replicas.answer(3, confirms=False)
    here.step()
    assert here.store.delay_offsets() == {}  # the first copy has no answer yet
    with caplog.at_level(logging.WARNING, "tornpage.store"):
        replicas.answer(2, confirms=False)
        here.step()
    assert (here.store.delay_offsets(), len(here.copies)) == ({1: 2}, 2)
    assert [line for line in caplog.messages if "unconfirmed" in line] == [
        "delayed_copy_unconfirmed level=1 queue_offset=0 status=FLUSH_SLAVE_TIMEOUT"
    ]
    assert here.store.runtime_info()["scheduleMessageUnconfirmed"] == "2"
    here.store.close()


def test_a_refused_copy_is_put_again_with_more_and_more_patience(tmp_path: Path) -> None:
    here = awaiting(tmp_path)
    here.put(SHORT, SHORT)
    here.store.running_flags.set(RunningFlag.NOT_WRITEABLE)
    assert here.step(1000) == 100
    assert [here.step(100) for _ in range(2)] == [200, 300]
    for _ in range(600):
        pause_ms = here.step(100)
    assert pause_ms == 60_000
    here.store.running_flags.clear(RunningFlag.NOT_WRITEABLE)
    assert here.step() is None
    assert [copy.queue_offset for copy in here.copies] == [0, 1]
    here.put(SHORT)
    here.store.running_flags.set(RunningFlag.NOT_WRITEABLE)
    assert here.step(1000) == 100  # the time-out starts again
    here.store.close()


def test_a_close_notes_what_it_is_answered(tmp_path: Path) -> None:
    here = awaiting(tmp_path)
    here.put(SHORT)
    here.step(1000)
    here.store.close()
    there = awaiting(tmp_path)
    assert there.store.delay_offsets() == {1: 1}
    there.step(1000)
    assert len(there.copies) == 1
    there.store.close()


def test_a_line_whose_messages_have_expired_does_not_lead_back(tmp_path: Path) -> None:
    here = awaiting(tmp_path)
    here.put(SHORT)
    here.step(1000)
    offsets = here.store._delivery.owners[0]
    offsets.advance(1, 7)  # as does a level whose queue begins there
    here.runner.step("group-commit")
    here.step()
    assert here.store.delay_offsets() == {1: 7}
    here.store.close()


def test_threads_deliver_everything_in_order_and_answer_for_it(tmp_path: Path) -> None:
    config = MessageStoreConfig(mapped_file_size_commit_log=1 << 16, message_delay_level="0s", max_hash_slot_num=16,
                                max_index_num=64, mapped_file_size_consume_queue=400, mapped_files_ahead=0,
                                flush_disk_type=FlushDiskType.SYNC_FLUSH, enable_schedule_async_deliver=True,
                                schedule_async_deliver_max_pending_limit=3)  # fmt: skip
    arrivals = Arrivals()
    store = open_store(tmp_path, config=config, clock=lambda: time.time_ns() // 1_000_000, arriving=[arrivals])
    with store:
        for number in range(40):
            assert store.put(replace(SHORT, body=str(number).encode())).stored
        arrivals.wait_for(40, "T")
        bodies = [each.body for each in store.messages() if each.topic == "T"]
    assert "{1:40\n" in (tmp_path / "config" / "delayOffset.json").read_text()  # a close takes the answers into account
    assert bodies == [str(number).encode() for number in range(40)]

"""Test delivery of delayed messages: wanted rounds, copies, skipped messages and findings."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import Arrivals, HandRunner, SetClock, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.delay_levels import HALF_TOPIC
from tornpage.impl.message.message import Message, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore
from tornpage.properties.lockstep.environment import taking_delays_as_java

NOW_MS = 1_700_000_000_000
SHORT = Message("T", b"short", properties={"DELAY": "1"})
LONG = Message("U", b"long", properties={"DELAY": "2"})


class Scheduled:
    """A store with services that the test steps by hand, and with a settable clock."""

    def __init__(self, directory: Path, *, parts: Parts | None = None, **settings: Any) -> None:
        self.clock, self.runner = SetClock(NOW_MS), HandRunner()
        config = replace(config_of(file_bytes=1 << 16), **({"message_delay_level": "1s 5s 2s"} | settings))
        parts = (parts or Parts()).replacing({ThreadRunner: self.runner})
        self.store: MessageStore = open_store(directory, config=config, clock=self.clock, parts=parts)

    def put(self, *messages: Message) -> None:
        for message in messages:
            assert self.store.put(message).stored
        self.runner.step("reput")

    def step(self, after_ms: int = 0) -> int | None:
        """Advance the clock and run a round; return the delay in ms until the next wanted round."""
        self.clock.now_ms += after_ms
        due_ms = self.runner.step("schedule", after_ms=after_ms)
        return None if due_ms is None else due_ms - self.runner.now_ms

    @property
    def copies(self) -> list[StoredMessage]:
        """Return the delivered copies."""
        return [each for each in self.store.messages() if each.properties.get("REAL_TOPIC") == each.topic]


def test_a_message_comes_when_it_is_due_under_its_own_name(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    given = replace(SHORT, queue_id=3, flag=7, born_timestamp=5, born_host=("::1", 9), reconsume_times=2)
    here.put(replace(given, properties={"DELAY": "1", "WAIT": "true", "KEYS": "k"}))
    assert here.step(999) == 1
    assert here.copies == []
    assert here.step(1) is None
    copy = here.copies[0]
    assert (copy.topic, copy.queue_id, copy.queue_offset, copy.body) == ("T", 3, 0, b"short")
    assert copy.properties == {"KEYS": "k", "REAL_TOPIC": "T", "REAL_QID": "3"}
    assert (copy.flag, copy.born_timestamp, copy.born_host, copy.reconsume_times) == (7, 5, ("::1", 9), 2)
    assert copy.store_timestamp == NOW_MS + 1000
    here.runner.step("reput")
    with here.store.get_message("T", 3, 0) as found:
        assert [bytes(each.message().body) for each in found.messages] == [b"short"]
    here.store.close()


def test_the_first_round_comes_after_a_second_and_the_next_ones_when_they_are_wanted(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    assert here.runner["schedule"].due_ms == 1000
    assert here.step() is None
    here.put(LONG)
    assert here.runner["schedule"].wakes == 1
    assert here.step() == 1000  # five seconds are left: an operator may set the clock
    here.put(LONG)
    assert here.runner["schedule"].wakes == 1
    here.put(SHORT)
    assert here.runner["schedule"].wakes == 1  # the service still looks after a second
    here.clock.now_ms -= 500
    here.put(SHORT)
    assert here.runner["schedule"].wakes == 2
    here.store.close()


def test_a_clock_that_is_set_makes_nothing_early(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    here.put(SHORT)
    here.clock.now_ms -= 3_600_000
    assert here.step() == 1000
    assert here.copies == []
    here.clock.now_ms += 3_601_000
    assert here.step() is None
    assert len(here.copies) == 1
    here.store.close()


def test_a_level_that_is_refused_is_tried_again_after_a_while(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    here.put(SHORT)
    here.store.running_flags.set(RunningFlag.NOT_WRITEABLE)
    assert here.step(1000) == 100
    assert here.store.delay_offsets() == {}
    here.store.running_flags.clear(RunningFlag.NOT_WRITEABLE)
    assert here.step(100) is None
    assert (here.store.delay_offsets(), len(here.copies)) == ({1: 1}, 1)
    here.store.close()


def test_a_round_that_fails_is_named_and_holds_up_no_other_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Scheduled(tmp_path)
    here.put(SHORT, LONG)
    queue = here.store._held.derived.queues.find("SCHEDULE_TOPIC_XXXX", 0)
    assert queue is not None
    monkeypatch.setattr(queue, "unit", lambda number: 1 // 0)
    assert here.step(5000) == 10_000
    assert [copy.topic for copy in here.copies] == ["U"]
    assert "delivery_failed level=1" in caplog.text
    here.store.close()


def test_what_can_never_be_delivered_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here = Scheduled(tmp_path, parts=taking_delays_as_java(Parts()), max_message_size=350)
    long = Message("t" * 127, bytes(30), properties={"DELAY": "1"})
    here.put(replace(SHORT, topic=HALF_TOPIC), Message("SCHEDULE_TOPIC_XXXX", b"", 0), long, SHORT)
    with caplog.at_level(logging.WARNING, "tornpage.store"):
        assert here.step(1000) is None
        assert here.step(1000) is None
    assert [copy.topic for copy in here.copies] == ["T"]
    named = [record.getMessage() for record in caplog.records if "delayed_message_skipped" in record.getMessage()]
    whys = ("'it belongs to a transaction'", "'it has no delay level'", "'its copy is MESSAGE_ILLEGAL'")
    assert [line.partition("why=")[2].strip('"') for line in named] == [why.strip('"') for why in whys]
    assert "level=1 queue_offset=0 offset=0" in named[0]
    info = here.store.runtime_info()
    assert (info["scheduleMessageOffset_1"], info["scheduleMessageSkipped"]) == ("4,4", "3")
    here.store.close()


def test_a_copy_waits_for_no_disk_and_no_replica(tmp_path: Path) -> None:
    config = replace(config_of(file_bytes=1 << 16, sync=True), broker_role=BrokerRole.SYNC_MASTER)
    clock, runner = SetClock(NOW_MS), HandRunner()
    store = open_store(tmp_path, config=config, clock=clock, parts=Parts({ThreadRunner: runner}))
    assert store.put(SHORT).stored
    runner.step("reput")
    flushed = store.flushed_offset
    clock.now_ms += 1000
    runner.step("schedule")
    assert store.delay_offsets() == {1: 1}
    assert store.flushed_offset == flushed < store.max_offset
    store.close()


def test_an_extension_of_the_queue_knows_when_a_message_is_due(tmp_path: Path) -> None:
    here = Scheduled(tmp_path, enable_consume_queue_ext=True)
    here.put(SHORT)
    assert here.step(999) == 1
    assert here.step(1) is None
    assert len(here.copies) == 1
    here.store.close()


def test_a_message_whose_extension_is_lost_is_due_by_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Scheduled(tmp_path, enable_consume_queue_ext=True)
    here.put(SHORT)
    queue = here.store._held.derived.queues.find("SCHEDULE_TOPIC_XXXX", 0)
    assert queue is not None
    monkeypatch.setattr(queue.ext, "get", lambda address: None)
    assert here.step(999) == 1
    assert here.step(1) is None
    assert len(here.copies) == 1
    here.store.close()


def test_levels_that_are_not_configured_any_more_are_delivered(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    here.put(replace(SHORT, properties={"DELAY": "3"}))
    here.store.close()
    there = Scheduled(tmp_path, message_delay_level="1s")
    assert there.step(2000) is None
    assert [copy.body for copy in there.copies] == [b"short"]
    assert there.store.delay_offsets() == {3: 1}
    there.store.close()


@pytest.mark.parametrize("settings", [{"broker_role": BrokerRole.SLAVE}, {"deliver_delayed_messages": False}])
def test_who_does_not_deliver_has_no_service(tmp_path: Path, settings: dict[str, Any]) -> None:
    here = Scheduled(tmp_path)
    here.put(SHORT)
    here.step(1000)
    here.store.close()
    file = tmp_path / "config" / "delayOffset.json"
    file.write_text('{"offsetTable":{1:9}}')
    there = Scheduled(tmp_path, **settings)
    assert "schedule" not in there.runner.services
    there.store.close()
    is_slave = "broker_role" in settings
    assert ("9" in file.read_text()) is is_slave  # a slave leaves it to its master; every other role corrects it


def test_the_next_master_goes_on_where_the_file_says(tmp_path: Path) -> None:
    here = Scheduled(tmp_path)
    here.put(SHORT, SHORT)
    here.step(1000)
    here.store.close()
    slave = Scheduled(tmp_path, broker_role=BrokerRole.SLAVE)
    assert slave.store.delay_offsets() == {}
    (tmp_path / "config" / "delayOffset.json").write_text('{"offsetTable":{1:1}}')
    slave.store.close()
    master = Scheduled(tmp_path)
    assert master.store.delay_offsets() == {1: 1}
    master.step(1000)
    assert len(master.copies) == 3
    master.store.close()


def test_threads_deliver_what_is_due_at_once(tmp_path: Path) -> None:
    config = MessageStoreConfig(mapped_file_size_commit_log=1 << 16, message_delay_level="0s", max_hash_slot_num=16,
                                max_index_num=64, mapped_file_size_consume_queue=400, mapped_files_ahead=0)  # fmt: skip
    arrivals = Arrivals()
    store = open_store(tmp_path, config=config, clock=lambda: time.time_ns() // 1_000_000, arriving=[arrivals])
    with store:
        for number in range(100):
            assert store.put(Message("T", str(number).encode(), properties={"DELAY": "1"})).stored
        arrivals.wait_for(100, "T")
        assert store.max_offset_in_queue("T", 0) == 100
        bodies = [each.body for each in store.messages() if each.topic == "T"]
    assert bodies == [str(number).encode() for number in range(100)]

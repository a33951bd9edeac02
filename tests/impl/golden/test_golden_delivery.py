"""Test that the store delivers the same copies as RocketMQ 4.9.3, in the same order."""

import shutil
from dataclasses import replace
from pathlib import Path

from tests.impl.golden.test_golden_puts import DELIVERED, history
from tests.support.impl.golden import config_of, golden, opened
from tests.support.impl.stores import HandRunner, SetClock, put
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

CASE = "05-transactions-delays-light-queues"
GONE = ("DELAY",)
"""Properties that RocketMQ leaves in the string of a copy and removes from its map."""


def visible(message: StoredMessage) -> StoredMessage:
    """Return a copy in a form that is comparable with RocketMQ's.

    Fields that depend on other lengths are left out, and so are those that only RocketMQ's string has.
    """
    properties = {name: value for name, value in message.properties.items() if name not in GONE}
    return replace(message, offset=0, size_bytes=0, message_id="", properties=properties)


def copies_in(store: MessageStore) -> list[StoredMessage]:
    """Return the copies of a store in the order of the log."""
    return [
        visible(message)
        for message in store.messages()
        if "REAL_TOPIC" in message.properties and message.topic == message.properties["REAL_TOPIC"]
    ]


def test_the_same_copies_come_at_the_same_times(tmp_path: Path) -> None:
    folder, clock, runner = golden(CASE, "truth.json"), SetClock(), HandRunner()
    shutil.copytree(folder / "store", tmp_path / "theirs")
    with opened(tmp_path / "ours", folder, clock, Parts({ThreadRunner: runner})) as store:
        for who, message, _, append in history(folder):
            clock.now_ms = append["storeTimestamp"] if append else clock.now_ms
            if who == DELIVERED:
                runner.step("reput")
                runner.step("schedule")
            else:
                put(store, message)
        ours, offsets, info = copies_in(store), store.delay_offsets(), store.runtime_info()
    theirs_store = MessageStore.open(tmp_path / "theirs", config_of(folder), files=OsFiles(), clock=clock)
    with theirs_store:
        theirs, loaded = copies_in(theirs_store), theirs_store.delay_offsets()
        progress = theirs_store.runtime_info()["scheduleMessageOffset_1"]
    assert len(theirs) == 4
    assert ours == theirs
    assert offsets == loaded == {1: 4}
    assert info["scheduleMessageOffset_1"] == progress == "4,4"


def test_the_saved_progress_has_the_bytes_of_rocketmq(tmp_path: Path) -> None:
    folder, clock, runner = golden(CASE, "truth.json"), SetClock(), HandRunner()
    with opened(tmp_path, folder, clock, Parts({ThreadRunner: runner})) as store:
        for who, message, _, append in history(folder):
            clock.now_ms = append["storeTimestamp"] if append else clock.now_ms
            if who == DELIVERED:
                runner.step("reput")
                runner.step("schedule")
            else:
                put(store, message)
    saved, theirs = (path / "config" / "delayOffset.json" for path in (tmp_path, folder / "store"))
    assert saved.read_bytes() == theirs.read_bytes()

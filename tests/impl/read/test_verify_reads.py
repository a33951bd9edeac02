"""Test the setting `verify_reads`: which reads return a record that changed meanwhile."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.impl.stores import caught_up, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig, VerifyReads
from tornpage.impl.errors import BadConfig
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.read_marks import ReadMarks
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.message.message import GetStatus, Message
from tornpage.impl.parts import Parts
from tornpage.impl.read.confirming import confirm_units
from tornpage.impl.store import MessageStore

SETTINGS: tuple[VerifyReads, ...] = get_args(VerifyReads)
BODY = b"a body of some bytes"
BODY_AT = 88
WAYS = {"plain": Parts(), "compiled": Parts({confirm_units: CompiledParts(records_worth_loading=0).confirm_units})}


def settings_of(setting: VerifyReads, **changes: Any) -> MessageStoreConfig:
    return replace(config_of(file_bytes=4096), verify_reads=setting, **changes)


@contextmanager
def filled(
    directory: Path, setting: VerifyReads, way: str = "plain", *, fresh: bool = False, **changes: Any
) -> Iterator[tuple[MessageStore, list[int]]]:
    """Yield a store with four messages, opened again if it is not `fresh`, and their offsets."""
    config = settings_of(setting, **changes)
    with open_store(directory, config=config, parts=WAYS[way]) as store:
        offsets = [store.put(Message("T", BODY, properties=f"KEYS\x01k{number}")).offset for number in range(4)]
        store.flush()
        if fresh:
            yield caught_up(store), offsets
            return
    with open_store(directory, config=config, parts=WAYS[way]) as store:
        yield caught_up(store), offsets


def change(store: MessageStore, offset: int) -> None:
    """Invert a byte of a body in the mapping; a second call puts it back."""
    file = store._log.find(offset)
    assert file is not None
    file.view[offset - file.base_offset + BODY_AT] ^= 0xFF


def pulled(store: MessageStore, number: int = 0, count: int = 32) -> list[int]:
    """Return the offsets that a pull returns; each message is decoded."""
    with store.get_message("T", 0, number, max_msg_nums=count) as found:
        assert [message.message().offset for message in found.messages] == [each.offset for each in found.messages]
        return [message.offset for message in found.messages]


def queried(store: MessageStore, key: str) -> list[int]:
    with store.query_message("T", key) as found:
        return [message.offset for message in found.messages]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_verified_record_that_changes(tmp_path: Path, setting: VerifyReads, way: str) -> None:
    with filled(tmp_path, setting, way) as (store, offsets):
        assert pulled(store) == offsets
        change(store, offsets[1])
        returned = offsets if setting != "always" else [offsets[0], *offsets[2:]]
        assert pulled(store) == returned
        assert queried(store, "k1") == ([] if setting == "always" else [offsets[1]])
        assert store.get(offsets[1]).status is GetStatus.OFFSET_FOUND_NULL, "a get by offset always verifies"
        assert (offsets[1] in pulled(store)) == (setting == "never"), "the failed check took the marks back"
        change(store, offsets[1])
        assert pulled(store) == offsets


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fresh", [True, False])
def test_appended_record_counts_as_verified(tmp_path: Path, way: str, fresh: bool) -> None:
    with filled(tmp_path, "once", way, fresh=fresh) as (store, offsets):
        change(store, offsets[3])
        assert (offsets[3] in pulled(store)) == fresh, "what an earlier process appended has to be verified"
        change(store, offsets[3])
        assert pulled(store) == offsets


@pytest.mark.parametrize("way", WAYS)
def test_mark_of_a_record_says_nothing_about_others(tmp_path: Path, way: str) -> None:
    with filled(tmp_path, "once", way) as (store, offsets):
        assert pulled(store, 1, 1) == offsets[1:2]
        for other in (offsets[0], offsets[2]):
            change(store, other)
        assert pulled(store) == [offsets[1], offsets[3]]


def refused(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, "refused")


def failing_sync(store: MessageStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MappedFile, "flush", refused)
    store.put(Message("T", BODY))
    with pytest.raises(OSError, match="refused"):
        store._log.flush()


def failing_file(store: MessageStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(type(store._log._allocation), "take", refused)
    with pytest.raises(OSError, match="refused"):
        store._log.next_file()


def failing_append(store: MessageStore, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MappedFile, "append", refused)
    assert not store.put(Message("T", BODY)).stored


@pytest.mark.parametrize("fail", [failing_sync, failing_file, failing_append])
def test_failed_operation_on_log_file_takes_marks_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Any
) -> None:
    with filled(tmp_path, "once", fresh=True) as (store, offsets):
        assert pulled(store) == offsets
        fail(store, monkeypatch)
        monkeypatch.undo()
        change(store, offsets[0])
        assert pulled(store) == offsets[1:]
        change(store, offsets[0])


def test_failed_commit_takes_marks_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool: dict[str, Any] = {"transient_store_pool_enable": True, "transient_store_pool_size": 2}
    with filled(tmp_path, "once", fresh=True, **pool) as (store, offsets):
        assert pulled(store) == offsets
        monkeypatch.setattr(MappedFile, "commit", refused)
        store.put(Message("T", BODY))
        with pytest.raises(OSError, match="refused"):
            store._log.commit()
        monkeypatch.undo()
        change(store, offsets[0])
        assert pulled(store) == offsets[1:]
        change(store, offsets[0])


@pytest.mark.parametrize("setting", SETTINGS)
def test_delivery_of_a_delayed_message_verifies(tmp_path: Path, setting: VerifyReads) -> None:
    with filled(tmp_path, setting, fresh=True) as (store, offsets), store._reads.reader.session(verifies=True) as log:
        change(store, offsets[0])
        assert not log.find(offsets[0])
        assert log.find(offsets[1])


def test_other_settings_are_refused() -> None:
    with pytest.raises(BadConfig, match="verify_reads"):
        MessageStoreConfig(verify_reads="sometimes")  # type: ignore[arg-type]


def test_marks_of_neighbours_differ() -> None:
    marks = ReadMarks(1 << 20, appended_from=1 << 19, generation=0)
    begins = range(0, 1 << 14, 92)
    for position in begins[::2]:
        marks.add(position)
    assert [marks.trusts(position) for position in begins] == [not number % 2 for number in range(len(begins))]
    assert marks.trusts(1 << 19)
    assert not marks.trusts((1 << 19) - 92)

"""Write, read and judge stores for all faults: numbered messages and their directory.

A body is a function of its message's number and its own length, so parent and children agree on every byte without
communication. The log is read with the judge's own decoder.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from time import monotonic, time_ns
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.io.files import Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.message.message import GetStatus, Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP, body_of
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode import Blank, Record, iter_items, look
from tornpage.properties.explore.real_faults.children import Page, Stored

__all__ = ["Writer", "config_of", "judge_log", "knows"]

TOPIC = "Faults"
BODY_BYTES_MIN, BODY_BYTES_MAX = 200, 8000
QUEUE_UNITS = 20_000

PATIENCE_S = 15.0
"""Seconds that a store may take to notice that a disk has space again."""


def knows(name: str) -> bool:
    """Return whether a store has a setting of this name."""
    return name in {field.name for field in fields(MessageStoreConfig)}


def config_of(*, file_bytes: int, sync: bool, **settings: Any) -> MessageStoreConfig:
    """Return the configuration of a store under a fault.

    The only queue has one file for everything that is ever put, so that a full disk can lack nothing but log files.
    """
    return MessageStoreConfig(
        mapped_file_size_commit_log=file_bytes,
        mapped_file_size_consume_queue=QUEUE_UNITS * UNIT_BYTES,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
        **settings,
    )


def _now_ms() -> int:
    return time_ns() // 1_000_000


def body_of_message(number: int, size_bytes: int) -> bytes:
    """Return the body of message `number`."""
    return body_of("random", size_bytes, number)


class Writer:
    """Hold one open store in this process.

    Message numbers continue where the page says that earlier processes stopped. `rng` draws the sizes.
    """

    def __init__(
        self,
        page: Page,
        directory: str,
        config: MessageStoreConfig,
        *,
        rng: random.Random,
        files: Files | None = None,
        components: Parts | None = None,
    ) -> None:
        """Open the store, which must open for writing (contract 7)."""
        self.page = page
        self._rng = rng
        self._last = max((stored.number for stored in page.stored), default=0) + bool(page.putting)
        with page.asking("open"):
            self.store = MessageStore.open(directory, config, files=files or OsFiles(), clock=_now_ms, parts=components)
        if self.store.read_only_reason is not None:
            raise GuaranteeBroken(7, "the store opens read-only", "read-write", self.store.read_only_reason)
        _require_promised(page, self.store.max_offset)
        page.forget_after(self.store.max_offset)

    def put(self, body_bytes: int | None = None) -> PutResult:
        """Put the next message, of a drawn size unless one is given; record the answer."""
        number = self._last + 1
        size_bytes = body_bytes or self._rng.randrange(BODY_BYTES_MIN, BODY_BYTES_MAX)
        message = Message(TOPIC, body_of_message(number, size_bytes), born_timestamp=BORN_TIMESTAMP)
        before = self.store.max_offset
        with self.page.asking(f"put {number}", putting=number):
            result = self.store.put(message)
        if result.stored:
            self._last = number
            end = result.offset + result.size_bytes
            self.page.store(Stored(number, result.offset, end, result.status is PutStatus.PUT_OK))
        else:
            self.page.answered()
            if self.store.max_offset != before:
                raise GuaranteeBroken(
                    8, "a refused put moves the end of the log", str(before), str(self.store.max_offset)
                )
        return result

    def put_until(self, ended: Callable[[PutResult], bool], *, tries: int) -> PutResult:
        """Put until an answer matches, or `tries` times; return the last answer."""
        result = self.put()
        while not ended(result) and (tries := tries - 1):
            result = self.put()
        return result

    def put_until_stored(self) -> PutResult:
        """Put until a message is stored.

        The store may check the cause of a refusal only from time to time.
        """
        given_up_s = monotonic() + PATIENCE_S
        result = self.put()
        while not result.stored and monotonic() < given_up_s:
            result = self.put()
        return result

    def check_promised_messages(self, when: str) -> None:
        """Get every promised message and compare its body (contracts 1 and 2)."""
        for stored in self.page.promised:
            with self.page.asking(f"get of message {stored.number} {when}"):
                found = self.store.get(stored.offset)
            if found.status is not GetStatus.FOUND or found.message is None:
                raise GuaranteeBroken(
                    2, f"message {stored.number}, answered PUT_OK, is not served {when}", "FOUND", found.status.name
                )
            if found.message.body != body_of_message(stored.number, len(found.message.body)):
                raise GuaranteeBroken(1, f"message {stored.number} comes back with other bytes {when}")

    def flush(self) -> bool:
        """Flush; return whether the store reports everything as durable."""
        with self.page.asking("flush"):
            return self.store.flush().durable

    def close(self) -> str | None:
        """Close; return why the exit was not clean, or None. The marker must agree (contract 8)."""
        with self.page.asking("close"):
            self.store.close()
        reason = self.store.read_only_reason
        marked = Path(self.store.directory, "abort").exists()
        if marked != (reason is not None):
            raise GuaranteeBroken(
                8, "the abort marker and the reason of the store disagree after close", str(reason), f"marker: {marked}"
            )
        return reason


def judge_log(directory: str, page: Page) -> int:
    """Judge the log of a closed store or copied disk; return the end of its last record.

    Every record must be one that was put, in that order and without a gap (contract 1). The last one may be a put that
    was never answered. Everything promised must be there (contract 2).
    """
    stored = page.stored
    found = _records(directory)
    for index, record in enumerate(found):
        expected = stored[index] if index < len(stored) else None
        unanswered = page.putting if index == len(stored) else 0
        number = unanswered if expected is None else expected.number
        right_place = expected is None or (record.offset, record.end_offset) == (expected.offset, expected.end)
        if not number or not right_place or record.body != body_of_message(number, len(record.body)):
            raise GuaranteeBroken(1, f"the record at offset {record.offset} is not the one that was put there")
    end = found[-1].end_offset if found else 0
    _require_promised(page, end)
    return end


def _require_promised(page: Page, end: int) -> None:
    missing = [stored.number for stored in page.promised if stored.end > end]
    if missing:
        raise GuaranteeBroken(2, f"{len(missing)} messages answered PUT_OK are gone, message {missing[0]} first")


def _records(directory: str) -> Sequence[Record]:
    """Return the valid records up to the first place without record or blank."""
    records: list[Record] = []
    for located in iter_items(look(Path(directory))):
        if isinstance(located.item, Record):
            records.append(located.item)
        elif not isinstance(located.item, Blank):
            break
    return records

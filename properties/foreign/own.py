"""Offer tornpage's own store as a target.

It shows that this path finds what the crash lab finds. Its services take their steps after each operation, in the
single thread, by a clock that counts operations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.translation import store_config

__all__ = ["OwnStore", "open_store", "open_store_async"]

_START_MS = 1_700_000_000_000


class OwnStore:
    """Wrap the store with the operations of a target."""

    name = "tornpage"

    def __init__(self, directory: Path, *, bug: str, sync_flush: bool) -> None:
        self._now_ms = _START_MS
        self._services: dict[str, HandDriven] = {}
        self._sync_flush = sync_flush
        parts = parts_of(bug).replacing({ThreadRunner: self._take_service})
        self._store = MessageStore.open(directory, _config(sync_flush), files=OsFiles(), clock=self._clock, parts=parts)

    def _clock(self) -> int:
        return self._now_ms

    def _take_service(self, service: Service) -> HandDriven:
        driven = self._services[service.name] = HandDriven(service, self._clock)
        return driven

    @property
    def promises(self) -> Mapping[str, Any]:
        """Return its promises, which are all of them.

        Messages are durable with the put, or with a flush without synchronous flush.
        """
        return {
            "durable": "put" if self._sync_flush else "flush",
            "kill": "put",
            "recovered": True,
            "index": True,
            "body_bytes_max": 3000,
        }

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        """Put a message, then dispatch it. Raises ValueError for a status other than PUT_OK."""
        self._now_ms += 1
        properties = {"KEYS": " ".join(keys)} if keys else ""
        result = self._store.put(Message(topic, body, queue, properties=properties))
        if not result.status.name == "PUT_OK":
            raise ValueError(result.status.name)
        self._services["reput"].step()
        return result.offset, result.queue_offset

    def get(self, offset: int) -> bytes | None:
        """Return the body at a physical offset."""
        found = self._store.get(offset).message
        return None if found is None else found.body

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Return the body of a message of a queue."""
        with self._store.get_message(topic, queue, number, max_msg_nums=1) as result:
            bodies = [message.message().body for message in result.messages]
        return bodies[0] if bodies else None

    def find(self, topic: str, key: str) -> list[bytes]:
        """Return the bodies of the messages with a key."""
        with self._store.query_message(topic, key, max_num=64) as result:
            return [message.message().body for message in result.messages]

    def flush(self) -> None:
        """Flush. Raises ValueError if the flush failed."""
        if not self._store.flush().durable:
            raise ValueError("not durable")

    def close(self) -> None:
        """Close cleanly."""
        self._store.close()


def _config(sync_flush: bool) -> MessageStoreConfig:
    kind = FlushDiskType.SYNC_FLUSH if sync_flush else FlushDiskType.ASYNC_FLUSH
    return replace(store_config(Settings()), flush_disk_type=kind)


def open_store(directory: Path, bug: str = "") -> OwnStore:
    """Open the store with synchronous flush, and with a planted bug if one is given."""
    return OwnStore(directory, bug=bug, sync_flush=True)


def open_store_async(directory: Path, bug: str = "") -> OwnStore:
    """Open the store with asynchronous flush, and with a planted bug if one is given."""
    return OwnStore(directory, bug=bug, sync_flush=False)

"""The progress of one client: the smallest offset that is not finished, by queue.

`RemoteOffsets` keeps it at the brokers. Every 5 seconds it is sent one-way for all owned queues; a hand-over sends it
with an answer. `LocalOffsets` keeps it in a file of the client, for broadcasting. The file has the bytes of RocketMQ's
`offsets.json`, and is replaced as a whole (impl/groups/config_file.py).

`note_progress` is the commit rule: progress of a dropped queue is not noted.

Source: `RemoteBrokerOffsetStore`, `LocalFileOffsetStore`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.process_queue import NOTHING
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    QueryOffset,
    Refusal,
    Refused,
    UpdateOffset,
    UpdateStatus,
)
from tornpage.impl.errors import BadConfig
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.io.files import Files
from tornpage.impl.log.log_directories import directory_of

__all__ = ["LocalOffsets", "OffsetStore", "RemoteOffsets", "note_progress"]

_LIKE_A_SLASH = re.compile("%(?=(?:25)*2F)")


class OffsetStore(Protocol):
    """The progress of one client. Offsets are queue offsets."""

    def get(self, queue: MessageQueue) -> int | None:
        """Return the progress in memory, None if there is none."""

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Set the progress in memory."""

    def forget(self, queue: MessageQueue) -> None:
        """Forget the progress in memory of a queue that this client owns no longer."""

    def restart(self, queue: MessageQueue) -> None:
        """Forget the progress of a queue whose numbers have restarted."""

    def query(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask for the stored progress; the answer is an `OffsetFound`."""

    def keep_first(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        """Store the first offset of the group unless there is progress.

        The answer is an `OffsetUpdated`.
        """

    def persist_all(self, holdings: Iterable[Holding], now_ms: int) -> None:
        """Store the progress of all held queues, without waiting for an answer. Raises OSError."""


def note_progress(offsets: OffsetStore, holding: Holding, progress: int, *, increase_only: bool) -> None:
    """Note the smallest offset of a queue that is not finished, unless the queue was dropped."""
    if progress != NOTHING and not holding.process_queue.dropped:
        offsets.update(holding.queue, progress, increase_only=increase_only)


class _Table:
    """Progress in memory."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}

    def get(self, queue: MessageQueue) -> int | None:
        """Return the progress of a queue."""
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Set the progress of a queue."""
        if not increase_only or offset > self._offsets.get(queue, NOTHING):
            self._offsets[queue] = offset

    def restart(self, queue: MessageQueue) -> None:
        """Forget the progress of a queue."""
        self._offsets.pop(queue, None)


class RemoteOffsets(_Table):
    """Progress at the brokers."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    def forget(self, queue: MessageQueue) -> None:
        """Forget the progress of a queue: the next owner has it from the broker."""
        self._offsets.pop(queue, None)

    def query(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask the broker."""
        return self._client.call(queue.broker_name, QueryOffset(self._client.group, queue), now_ms)

    def keep_first(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        """Store a first offset at the broker. No lease is needed, since present progress stays."""
        request = UpdateOffset(self._client.group, queue, offset, only_if_absent=True)
        return self._client.call(queue.broker_name, request, now_ms)

    def persist_all(self, holdings: Iterable[Holding], now_ms: int) -> None:
        """Send the progress of each owned queue one-way."""
        for holding in holdings:
            offset = self.get(holding.queue)
            if offset is not None and holding.lease is not None and holding.state in _OWNED:
                request = UpdateOffset(self._client.group, holding.queue, offset, holding.lease)
                self._client.notify(holding.queue.broker_name, request, now_ms)


_OWNED = frozenset((HoldingState.ACTIVE, HoldingState.DRAINING))


class LocalOffsets(_Table):
    """Progress in DIRECTORY/CLIENT_ID/GROUP/offsets.json.

    A slash in a name becomes `%2F` (`_folder_of`). Raises BadConfig for a name that cannot be a folder. Raises OSError
    if a directory cannot be made or the file cannot be read.
    """

    def __init__(self, client: Client, files: Files, directory: str) -> None:
        super().__init__()
        for setting in ("client_id", "consumer_group"):
            name = getattr(client.settings, setting)
            if name in (".", "..") or "\0" in name:
                raise BadConfig(setting, name, "use a name that a folder can have")
        folder = directory
        for name in ("", _folder_of(client.settings.client_id), _folder_of(client.group)):
            parent, folder = (folder, f"{folder}/{name}") if name else (directory_of(folder) or "/", folder)
            is_new = files.stat(folder) is None
            if is_new:
                files.make_directory(folder)
            if is_new or name:  # an earlier process may have made it, and died before the sync
                files.sync_directory(parent)
        self._file = client.parts.of(ConfigFile)(files, f"{folder}/offsets.json")
        self._offsets = self._file.load(_read) or {}
        self._file.make_durable()
        self._saved = dict(self._offsets)
        for finding in self._file.findings:
            client.findings.add(finding.message)

    def forget(self, queue: MessageQueue) -> None:
        """Keep the progress: the file is its only place."""

    def query(self, queue: MessageQueue, now_ms: int) -> Call:
        """Answer from memory."""
        call = Call(QueryOffset("", queue), deadline_ms=now_ms)
        offset = self.get(queue)
        is_known = any(other.topic == queue.topic and other != queue for other in self._offsets)
        if offset is None:
            call.settle(OffsetFound(OffsetStatus.NOT_FOUND, NOTHING, is_known))
        else:
            call.settle(OffsetFound(OffsetStatus.FOUND, offset, is_known))
        return call

    def keep_first(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        """Save a first offset.

        Without that the next process would decide it again, past messages that came meanwhile. The answer is `Refused`
        if it cannot be saved, and the offset is not kept then.
        """
        is_new = queue not in self._offsets
        offset = self._offsets.setdefault(queue, offset)
        call = Call(UpdateOffset("", queue, offset), deadline_ms=now_ms)
        try:
            self.persist_all((), now_ms)
        except OSError as error:
            if is_new:
                del self._offsets[queue]
            call.settle(Refused(Refusal.SYSTEM_ERROR, f"the first offset was not saved: {error}"))
            return call
        call.settle(OffsetUpdated(UpdateStatus.STORED, offset))
        return call

    def persist_all(self, holdings: Iterable[Holding], now_ms: int) -> None:
        """Replace the file if something has changed.

        Raises OSError; the file has its old or its new content then.
        """
        if self._offsets != self._saved:
            self._file.save(_document(self._offsets))
            self._saved = dict(self._offsets)


def _folder_of(name: str) -> str:
    """Return the folder of a client or a group; different names have different folders.

    A slash becomes `%2F`. In a name that has this text already, its `%` becomes `%25`. Other names stay as they are.
    """
    return _LIKE_A_SLASH.sub("%25", name).replace("/", "%2F")


def _document(offsets: Mapping[MessageQueue, int]) -> dict[str, object]:
    """Return the document of `OffsetSerializeWrapper`; its keys are objects."""
    table = {
        (("brokerName", queue.broker_name), ("queueId", queue.queue_id), ("topic", queue.topic)): offset
        for queue, offset in sorted(offsets.items())
    }
    return {"offsetTable": table}


def _read(document: object) -> dict[MessageQueue, int]:
    """Return the offsets in a document. Raises ValueError."""
    match document:
        case {"offsetTable": dict() as table}:
            return {_queue_of(key): _offset_of(value) for key, value in table.items()}
    raise ValueError("no table of offsets")


def _queue_of(key: object) -> MessageQueue:
    fields = dict(key) if isinstance(key, tuple) else {}
    match fields:
        case {"topic": str() as topic, "brokerName": str() as broker_name, "queueId": int() as queue_id}:
            return MessageQueue(topic, broker_name, queue_id)
    raise ValueError(f"no queue: {key!r}")


def _offset_of(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"no offset: {value!r}")

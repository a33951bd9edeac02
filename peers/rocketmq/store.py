"""Open a RocketMQ store on a directory and read it through the driver.

Readable are the bounds of the log, the queues, their messages, and records by key.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.peers.errors import PeerError, PeerUnavailable
from tornpage.peers.rocketmq.process import Process

__all__ = [
    "MODES",
    "Everything",
    "Found",
    "LogBounds",
    "Mode",
    "PeerMessage",
    "PeerQueue",
    "PeerStore",
    "Recovery",
    "begin_recoveries",
    "java_settings",
    "opened",
    "recoveries",
]

Mode = Literal["stock", "quick", "light"]
"""`stock` starts and stops the store as a broker does. `quick` makes the same calls without their sleeps. `light` loads
and dispatches without start and stop."""
_NOT_OURS = ("java.lang.NoSuchMethodException", "java.lang.NoSuchFieldException", "java.lang.NoClassDefFoundError")
"""Errors of the driver that are no answers of the store."""

MODES: tuple[Mode, ...] = get_args(Mode)

_DISPATCHES_FROM_THE_QUEUES = (4, 5, 0)
"""The first version whose `start()` dispatches from where the queues end; earlier ones begin at the end of the log."""

_READ_MAX = 10_000
"""Places of a queue that one request reads."""

_ENCODER_BYTES = 1 << 16
"""Size of the largest message that a peer could put. Its buffer is allocated at each open."""


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Physical offsets at which the log begins and ends, and bytes that are not dispatched."""

    begin: int
    end: int
    behind: int


@dataclass(frozen=True, slots=True)
class PeerQueue:
    """A consume queue and its bounds."""

    topic: str
    queue_id: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """A message served at a place of a queue.

    `record_sha256` is the hash of the whole stored record. `body_sha256`, `tags` and `queue_offset` are those of the
    decoded message; they are None if the store's own decoder cannot decode the record, or was not asked to.
    """

    place: int
    offset: int
    size_bytes: int
    record_sha256: str
    body_sha256: str | None = None
    tags: str | None = None
    queue_offset: int | None = None


Found = tuple[int, int, str]
"""A record found by key: physical offset, size in bytes, SHA-256 of the record."""


class PeerStore:
    """An open store.

    `loaded` is false if the store refuses the directory. `dispatched` is false if dispatch makes no progress. `reason`
    says why.
    """

    def __init__(self, process: Process, answer: Mapping[str, Any]) -> None:
        self._process = process
        self.loaded = bool(answer["loaded"])
        self.dispatched = bool(answer["dispatched"])
        self.reason = str(answer["reason"])
        self.is_abandoned = False

    def abandon(self) -> None:
        """Send no more requests, not even that for a close. The JVM was killed."""
        self.is_abandoned = True
        self._process.close()

    def log(self) -> LogBounds:
        """Return the bounds of the log."""
        return _bounds_in(self._process.ask("log"))

    def queues(self) -> list[PeerQueue]:
        """Return all queues, by topic and id."""
        return [_queue_in(row) for row in self._process.ask("queues")["queues"]]

    def everything(self, keys: Sequence[tuple[str, str]], *, count: int = 64) -> "Everything":
        """Return the answers to all reads, by one request.

        The answers are those of `log`, `queues`, `messages` of each queue, and `query`. A store with many messages
        needs the single requests.
        """
        answer = self._process.ask("everything", keys=[list(key) for key in keys], count=count)
        queues = [
            (_queue_in(row), *_places_in(read)) for row, read in zip(answer["queues"], answer["read"], strict=True)
        ]
        return Everything(_bounds_in(answer["log"]), queues, _found_in(answer["found"]))

    def messages(self, queue: PeerQueue) -> tuple[list[PeerMessage], list[tuple[int, str]]]:
        """Return the messages of a queue and the places without one.

        Such a place comes with the status of its pull.
        """
        messages: list[PeerMessage] = []
        gaps: list[tuple[int, str]] = []
        for first in range(queue.begin, queue.end, _READ_MAX):
            answer = self._process.ask(
                "read",
                topic=queue.topic,
                queue=queue.queue_id,
                **{"from": first, "count": min(_READ_MAX, queue.end - first)},
            )
            found, missing = _places_in(answer)
            messages, gaps = messages + found, gaps + missing
        return messages, gaps

    def records(self, known: Sequence[int], *, file_bytes: int) -> list[tuple[int, int, dict[str, Any]]]:
        """Return offset, size and fields of the records of the log.

        A walk that meets bytes that are no record goes on at the next of some known offsets.
        """
        answer = self._process.ask("records", known=list(known), fileBytes=file_bytes)
        return [(offset, size, fields) for offset, size, fields in answer["records"]]

    def units(self) -> list[tuple[str, int, int, int, int, int]]:
        """Return topic, queue id, place, physical offset, size, tags code of all units."""
        return [tuple(unit) for unit in self._process.ask("units")["units"]]

    def clean(self) -> int:
        """Delete expired files, their queues and index; return the begin of the log."""
        return int(self._process.ask("clean")["min"])

    def fields(self, offsets: Sequence[int]) -> list[dict[str, Any] | None]:
        """Return the decoded fields of the records at some offsets; None without a record."""
        return list(self._process.ask("fields", offsets=list(offsets))["fields"])

    def put(self, topic: str, queue_id: int, properties: str, body: bytes, *, is_batch: bool = False) -> dict[str, Any]:
        """Put a message, or a batch whose body holds its encoded members.

        Return status, physical offset, size, and queue offset. The store has to be open in mode `stock`.
        """
        return self._process.ask(
            "batch" if is_batch else "put",
            topic=topic,
            queue=queue_id,
            properties=properties,
            body=b64encode(body).decode(),
        )

    def query(self, keys: Sequence[tuple[str, str]], *, count: int = 64) -> list[list[Found]]:
        """Return up to `count` records for each key of a topic."""
        return _found_in(self._process.ask("query", keys=[list(key) for key in keys], count=count)["found"])


@dataclass(frozen=True, slots=True)
class Everything:
    """The answers to all reads of a store.

    `queues` has each queue with its messages and its places without one. `found` has the records of each key.
    """

    log: LogBounds
    queues: Sequence[tuple[PeerQueue, list[PeerMessage], list[tuple[int, str]]]]
    found: Sequence[list[Found]]


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery of a directory and the answers to all reads after it.

    `failed` is the request that failed: "open", "read" or "close", empty if none did. `log` is None if the store did
    not load. `everything` is None if it did not load or did not dispatch.
    """

    loaded: bool = False
    dispatched: bool = False
    reason: str = ""
    failed: str = ""
    log: LogBounds | None = None
    everything: Everything | None = None


def begin_recoveries(
    process: Process,
    directory: str,
    settings: Mapping[str, Any],
    keys: Sequence[tuple[str, str]],
    *,
    mode: Mode = "light",
    count: int = 64,
    times: int = 2,
) -> None:
    """Let the store recover a directory `times` times, with a close after each.

    `recoveries` returns the answers. The recoveries change the directory. The first one that fails is the last one.
    Raises PeerError.
    """
    process.begin(
        "recover", directory=directory, mode=mode, settings=dict(settings), keys=[list(key) for key in keys],
        count=count, times=times,
    )  # fmt: skip


def recoveries(process: Process) -> list[Recovery]:
    """Return the recoveries that were begun.

    Raises PeerError, and PeerUnavailable if the driver does not fit the release.
    """
    made: list[Recovery] = []
    for answer in process.finish()["recoveries"]:
        made.append(made[-1] if answer.get("same") else _recovery_in(answer))
    if made[-1].reason.startswith(_NOT_OURS):
        raise PeerUnavailable(f"the driver does not fit RocketMQ {process.release.version}: {made[-1].reason}")
    if made[-1].failed:
        process.close()  # no request may follow on a store in an unknown state
    return made


def _recovery_in(answer: Mapping[str, Any]) -> Recovery:
    if "failed" in answer:
        return Recovery(reason=answer["reason"], failed=answer["failed"])
    log = LogBounds(*answer["log"]) if "log" in answer else None
    everything = None
    if log is not None and answer["dispatched"]:
        queues = [
            (
                PeerQueue(topic, number, begin, end),
                [PeerMessage(*row) for row in messages],
                [(place, status) for place, status in gaps],
            )
            for topic, number, begin, end, messages, gaps in answer["queues"]
        ]
        everything = Everything(log, queues, _found_in(answer["found"]))
    return Recovery(answer["loaded"], answer["dispatched"], answer["reason"], "", log, everything)


def _bounds_in(answer: Mapping[str, Any]) -> LogBounds:
    return LogBounds(answer["min"], answer["max"], answer["behind"])


def _queue_in(row: Mapping[str, Any]) -> PeerQueue:
    return PeerQueue(row["topic"], row["queue"], row["min"], row["max"])


def _places_in(answer: Mapping[str, Any]) -> tuple[list[PeerMessage], list[tuple[int, str]]]:
    messages = [
        PeerMessage(row["place"], row["offset"], row["size"], row["record"], row["body"], row["tags"], row["number"])
        for row in answer["messages"]
    ]
    return messages, [(place, status) for place, status in answer["gaps"]]


def _found_in(answers: Sequence[Sequence[Sequence[Any]]]) -> list[list[Found]]:
    return [[(offset, size, sha256) for offset, size, sha256 in rows] for rows in answers]


@contextmanager
def opened(
    process: Process, directory: str, settings: Mapping[str, Any], *, mode: Mode = "light"
) -> Iterator[PeerStore]:
    """Open the store in a directory, which the open changes, and close it at the end.

    A store that does not load has nothing to close. Raises PeerError.
    """
    at_end = tuple(map(int, process.release.version.split("."))) < _DISPATCHES_FROM_THE_QUEUES
    answer = process.ask(
        "open", directory=directory, mode=mode, settings=dict(settings), dispatch="end" if at_end else "queues"
    )
    store = PeerStore(process, answer)
    try:
        yield store
    except PeerError:
        process.close()  # no request may follow on a store in an unknown state
        raise
    except BaseException:
        process.close()
        raise
    if store.loaded and not store.is_abandoned:
        process.ask("close")


def java_settings(config: MessageStoreConfig) -> dict[str, Any]:
    """Return the settings of RocketMQ for a store with our settings, under RocketMQ's names."""
    return {
        "mappedFileSizeCommitLog": config.mapped_file_size_commit_log,
        "mappedFileSizeConsumeQueue": config.mapped_file_size_consume_queue,
        "enableConsumeQueueExt": config.enable_consume_queue_ext,
        "mappedFileSizeConsumeQueueExt": config.mapped_file_size_consume_queue_ext,
        "messageIndexEnable": config.message_index_enable,
        "maxHashSlotNum": config.max_hash_slot_num,
        "maxIndexNum": config.max_index_num,
        "enableMultiDispatch": config.enable_multi_dispatch,
        "enableLmq": config.enable_lmq,
        "messageDelayLevel": config.message_delay_level,
        "maxMessageSize": min(config.max_message_size, _ENCODER_BYTES),
        "diskMaxUsedSpaceRatio": 95,
    }

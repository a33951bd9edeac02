"""The operations that every writer of the matrix carries out."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers_from

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember
from tornpage.peers.rocketmq.installing import REFERENCE

__all__ = ["SETTINGS", "Operation", "config_of", "fillers", "operations"]

SETTINGS = {
    "mappedFileSizeCommitLog": 65536,
    "mappedFileSizeConsumeQueue": 20 * 200,
    "maxHashSlotNum": 500,
    "maxIndexNum": 600,
    "fileReservedTime": 1,
    "deleteCommitLogFilesInterval": 10,
    "diskMaxUsedSpaceRatio": 95,
}
"""The settings of every release, under RocketMQ's names."""

_CLEAN_MS = 200
_LONE_NUMBER, _LONE_LEVEL = 3, 17
"""Number and delay level of a message that is alone in its queue. It expires in a store with deleted log files."""

_TOPICS = ("TopicA", "TopicB", "Täglich-日本", "%RETRY%g")
_QUEUES = 3
_FILLER_TOPIC, _FILLER_BYTES = "Filler", 20_000
_BATCHES, _DELAYED, _LARGE = 0.08, 0.06, 0.03


@dataclass(frozen=True, slots=True)
class Operation:
    """A put of a message, or of a batch whose body holds its encoded members."""

    topic: str
    queue_id: int
    properties: str
    body: bytes
    is_batch: bool = False


def config_of(*, version: str = "", record_checksum: str = "record") -> MessageStoreConfig:
    """Return our settings for a store of the matrix.

    `version` is the release that wrote the store, empty for our store.
    """
    return MessageStoreConfig(
        mapped_file_size_commit_log=SETTINGS["mappedFileSizeCommitLog"],
        mapped_file_size_consume_queue=SETTINGS["mappedFileSizeConsumeQueue"],
        max_hash_slot_num=SETTINGS["maxHashSlotNum"],
        max_index_num=SETTINGS["maxIndexNum"],
        file_reserved_time=SETTINGS["fileReservedTime"],
        delete_commit_log_files_interval=SETTINGS["deleteCommitLogFilesInterval"],
        clean_resource_interval=_CLEAN_MS,
        deliver_delayed_messages=True,
        rocketmq_version=version or REFERENCE,
        record_checksum="body" if record_checksum == "body" else "record",
    )


def operations(count: int, *, seed: int) -> Iterator[Operation]:
    """Yield puts with keys and tags, batches, delayed and large messages."""
    rng = random.Random(seed)
    for number in range(count):
        topic, queue_id = rng.choice(_TOPICS), rng.randrange(_QUEUES)
        properties = f"UNIQ_KEY\x01{seed:08X}{number:024X}"
        if rng.random() < 0.7:
            properties = f"KEYS\x01order-{number} c{rng.randrange(40)}\x02{properties}"
        if rng.random() < 0.5:
            properties += f"\x02TAGS\x01Tag{rng.choice('ABC')}"
        kind = rng.random()
        if number != _LONE_NUMBER and kind < _BATCHES:
            members = [
                BatchMember(
                    rng.randbytes(rng.randrange(1, 300)),
                    f"UNIQ_KEY\x01B{seed:07X}{number:022X}{member:02X}\x02KEYS\x01b{rng.randrange(30)}",
                )
                for member in range(rng.randrange(1, 9))
            ]
            yield Operation(topic, queue_id, "WAIT\x01true", bytes(encode_batch_body(members)), is_batch=True)
        elif number == _LONE_NUMBER:
            lone = f"{properties}\x02DELAY\x01{_LONE_LEVEL}"
            yield Operation(topic, queue_id, lone, rng.randbytes(100))
        elif kind < _BATCHES + _DELAYED:
            delayed = f"{properties}\x02DELAY\x01{rng.choice([1, 1, 18])}"
            yield Operation(topic, queue_id, delayed, rng.randbytes(rng.randrange(500)))
        elif kind < _BATCHES + _DELAYED + _LARGE:
            yield Operation(topic, queue_id, properties, rng.randbytes(rng.randrange(5000, 30000)))
        else:
            yield Operation(topic, queue_id, properties, rng.randbytes(rng.randrange(900)))


def fillers() -> Iterator[Operation]:
    """Yield large messages without end, all of one queue."""
    for number in numbers_from():
        yield Operation(_FILLER_TOPIC, 0, f"UNIQ_KEY\x01F{number:031X}", bytes(_FILLER_BYTES))

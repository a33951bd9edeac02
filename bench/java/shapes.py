"""The rows of the comparison: what one round of each does."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["FULL_WORK", "LOG_FILE_BYTES", "SHAPES", "Kind", "Shape", "Work"]

Kind = Literal["put", "batch", "sync", "pull", "query", "open"]

LOG_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Work:
    """The amount of work of one round; tests use less.

    `recover_bytes` of log in files of `recover_file_bytes` are opened.
    """

    puts: int = 20_000
    syncs: int = 200
    reads: int = 20_000
    recover_bytes: int = 256 << 20
    recover_file_bytes: int = 64 << 20


FULL_WORK = Work()


@dataclass(frozen=True, slots=True)
class Shape:
    """A row.

    `window` is the number of puts that wait for a sync at a time. `passes` are those of RocketMQ, whose reads are
    too short to time otherwise. `killed` says whether the opened store was killed.
    """

    name: str
    kind: Kind
    what: str
    body_bytes: int = 1024
    window: int = 1
    decoded: bool = False
    passes: int = 1
    killed: bool = False

    def count(self, work: Work) -> int:
        """Return the number of messages of a round."""
        match self.kind:
            case "put" | "batch":
                return work.puts
            case "sync":
                return work.syncs if self.window == 1 else 16 * work.syncs
            case _:
                return work.reads


SHAPES = (
    Shape("put_1024", "put", "put 1 KiB with two keys, until queues and index have it"),
    Shape("put_100", "put", "put 100 B with two keys, until queues and index have it", body_bytes=100),
    Shape("batch32_1024", "batch", "put batches of 32 of 1 KiB, until queues and index have them"),
    Shape("sync_1", "sync", "synchronous put of 1 KiB, one at a time"),
    Shape("sync_64", "sync", "synchronous put of 1 KiB, 64 outstanding", window=64),
    Shape("pull_1024", "pull", "pulls of 32, not decoded", passes=50),
    Shape("pull_decoded_1024", "pull", "pulls of 32, decoded", decoded=True, passes=5),
    Shape("query_key_1024", "query", "query by unique key", passes=3),
    Shape("open_killed", "open", "open of a killed store, until queues and index have it", killed=True),
    Shape("open_clean", "open", "open of a closed store"),
)

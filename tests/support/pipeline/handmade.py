"""Whole stores built by hand: records, their units, and damage to either."""

from __future__ import annotations

import shutil
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.properties.handmade import golden_dirs, record

__all__ = [
    "DUE_MS", "STORED_MS", "HandmadeStore", "copied", "damage_after_tears", "overwrite", "undamaged", "write_deleted",
]  # fmt: skip

STORED_MS = 1_700_000_000_001
DUE_MS = 10_000
LOG_BYTES = 8192
QUEUE_BYTES = 400


@dataclass
class HandmadeStore:
    """A clean store under construction.

    `put` appends a record and its unit, `write` makes the files.
    """

    root: Path
    log: bytearray = field(default_factory=bytearray)
    queues: dict[tuple[str, int], dict[int, bytes]] = field(default_factory=dict)
    base: int = 0

    def put(
        self,
        topic: str = "T",
        queue_id: int = 0,
        queue_offset: int = 0,
        *,
        properties: bytes = b"",
        tags_code: int = 0,
        sys_flag: int = 0,
        stored_ms: int = STORED_MS,
        dispatched: bool = True,
    ) -> tuple[int, int]:
        """Append; return (physical offset, size)."""
        offset = self.base + len(self.log)
        stored = record(
            offset,
            topic=topic.encode(),
            queue_id=queue_id,
            queue_offset=queue_offset,
            properties=properties,
            sys_flag=sys_flag,
            store_timestamp=stored_ms,
        )
        self.log += stored
        if dispatched:
            self.unit(topic, queue_id, queue_offset, offset, len(stored), tags_code)
        return offset, len(stored)

    def unit(self, topic: str, queue_id: int, queue_offset: int, offset: int, size: int, tags_code: int = 0) -> None:
        """Set one unit."""
        self.queues.setdefault((topic, queue_id), {})[queue_offset] = struct.pack(">qiq", offset, size, tags_code)

    def write(self) -> Path:
        """Write the store and return its directory."""
        log = self.root / "commitlog"
        log.mkdir(parents=True)
        (log / f"{self.base:020}").write_bytes(bytes(self.log).ljust(LOG_BYTES, b"\0"))
        for (topic, queue_id), units in self.queues.items():
            directory = self.root / "consumequeue" / topic / str(queue_id)
            directory.mkdir(parents=True)
            for base in sorted({number * 20 // QUEUE_BYTES * QUEUE_BYTES for number in units}):
                content = b"".join(units.get(base // 20 + n, bytes(20)) for n in range(QUEUE_BYTES // 20))
                (directory / f"{base:020}").write_bytes(content)
        return self.root


def damage_after_tears(root: Path, *, tears: int) -> Path:
    """Return a store after a crash, with torn queues and a damaged one.

    Topics A0, A1 and so on have a torn end. The first record of Z lost its unit before the crash, which is damage,
    since the checkpoint is later than the record. All codes are CQ_MISSING.
    """
    store = HandmadeStore(root)
    for number in range(3):
        store.put("Z", queue_offset=number, dispatched=number > 0)
    for number in range(tears):
        store.put(f"A{number}", dispatched=False, stored_ms=STORED_MS + 60_000)
    (store.write() / "abort").touch()
    (root / "checkpoint").write_bytes(struct.pack(">3q", *[STORED_MS + 30_000] * 3).ljust(4096, b"\0"))
    return root


def undamaged() -> list[Path]:
    """Return the available undamaged golden cases."""
    return [path for path in golden_dirs() if path.name < "09"]


def copied(name: str, target: Path) -> Path:
    """Copy the store of a golden case that is always available."""
    source = next(path for path in golden_dirs() if path.name == name)
    shutil.copytree(source / "store", target)
    return target


def overwrite(path: Path, position: int, content: bytes) -> None:
    """Damage a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def write_deleted(store: Path, topics: dict[str, int]) -> None:
    """Write the list of deleted topics, each with the offset below which it has no messages."""
    entries = b"".join(
        struct.pack(">qh", offset, len(name.encode())) + name.encode() for name, offset in sorted(topics.items())
    )
    body = struct.pack(">8si", b"TPDELTP1", len(topics)) + entries
    (store / "config").mkdir(exist_ok=True)
    (store / "config/deletedTopics").write_bytes(body + zlib.crc32(body).to_bytes(4, "big"))

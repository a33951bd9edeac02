"""Bugs of the small files of a store: both floors, which an open believes when it tells a tear from damage and how far
it need not look, and the checkpoint.
"""

import struct

from isal.isal_zlib import crc32

from impl.checkpoint import Checkpoint
from impl.derived_floor import DerivedFloor, DerivedProof
from impl.durable_floor import DurableFloor
from impl.files import Files
from impl.parts import Parts

__all__ = ["BUGS"]

_HEAD = struct.Struct(">8sqq")


class _InTwoWrites(DurableFloor):
    """A higher floor is written first, its checksum behind it."""

    def raise_to(self, offset: int) -> None:
        assert self._file is not None
        if offset > self._offset:
            head = _HEAD.pack(b"TPFLOOR1", offset, self._file_bytes)
            self._files.pwrite(self._file, head, 0)
            self._files.pwrite(self._file, struct.pack(">I", crc32(head)), _HEAD.size)
            self._offset = offset


class _NotSyncedAtOpen(DurableFloor):
    """An open that finds a floor writes its own there, and does not sync it."""

    def start(self, offset: int) -> None:
        if self._files.stat(self._path) is None:
            super().start(offset)
            return
        self._file, self._offset = self._files.open(self._path, writable=True), -1
        self.raise_to(offset)


class _RenamedFirst(DerivedFloor):
    """The new derived floor takes the place of the old one before it is synced."""

    def write(self, proof: DerivedProof) -> None:
        files = self._files
        self._files = _SyncsNoFile(files)  # type: ignore[assignment]
        try:
            super().write(proof)
        finally:
            self._files = files
        file = files.open(self._path, writable=True)
        try:
            files.sync(file)
        finally:
            files.close(file)


class _SyncsNoFile:
    """Files of which only the names become durable."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def sync(self, file: object) -> None:
        """Pass."""


class _AsLongAsItsTimes(Checkpoint):
    """A new checkpoint is not made as long as RocketMQ maps it."""

    def start(self) -> None:
        if self._files.stat(self._path) is None:
            self._file = self._files.create(self._path)
        else:
            super().start()


BUGS = (
    ("floor-in-two-writes", "the durable floor is written before its checksum", 13,
     Parts({DurableFloor: _InTwoWrites})),
    ("floor-not-synced", "an open does not sync the durable floor that it writes", 7,
     Parts({DurableFloor: _NotSyncedAtOpen})),
    ("derived-floor-renamed-first", "a new derived floor takes its place before it is synced", 13,
     Parts({DerivedFloor: _RenamedFirst})),
    ("checkpoint-of-its-times", "a new checkpoint is only as long as its three times", 13,
     Parts({Checkpoint: _AsLongAsItsTimes})),
)  # fmt: skip

"""The effects of I/O fault rules on the call that they hit, by name."""

import errno
from dataclasses import dataclass

__all__ = ["EFFECTS", "Effect"]


@dataclass(frozen=True, slots=True)
class Effect:
    """One way to fail: the error, the operations it can hit, and a sentence."""

    name: str
    code: int
    operations: tuple[str, ...]
    sentence: str


EFFECTS: dict[str, Effect] = {
    effect.name: effect
    for effect in (
        Effect("sync-error", errno.EIO, ("sync",), "EIO; every page stays dirty, and a later sync writes it"),
        Effect(
            "sync-lost",
            errno.EIO,
            ("sync",),
            "EIO; each dirty page counts as clean, on the disk or not: a later sync succeeds without writing it",
        ),
        Effect("short-write", errno.EIO, ("pwrite", "zero"), "EIO; the first half of the bytes has been written"),
        Effect(
            "no-space",
            errno.ENOSPC,
            ("create", "allocate", "pwrite", "make_directory"),
            "ENOSPC; nothing has happened",
        ),
        Effect("read-error", errno.EIO, ("open", "map", "read", "list_directory"), "EIO; nothing has been read"),
        Effect("directory-sync-error", errno.EIO, ("sync_directory",), "EIO; no name became durable by it"),
        Effect("rename-error", errno.EIO, ("rename",), "EIO; both names are what they were"),
        Effect("unlink-error", errno.EIO, ("unlink",), "EIO; the name is still there"),
    )
}

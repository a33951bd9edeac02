"""The durability mutants: what a store can get wrong between a write and the disk, kind by kind.

Each kind is one mistake that storage engines are tested for; the planted bugs that make it stand with the parts they
break. A tester that lets one of them live proves nothing about durability (tests/properties/scoring).
"""

__all__ = ["DURABILITY", "GROUP"]

GROUP = "durability"

DURABILITY: dict[str, tuple[str, ...]] = {
    "drop a flush": ("lying-flush", "last-file-only"),
    "reorder flushes": ("floor-before-flush", "saved-before-its-copies"),
    "round a flush": ("dropped-first-page", "whole-pages-only"),
    "swap flush and checkpoint": ("checkpoint-before-flush", "checkpoint-ahead"),
    "skip the checksum": ("no-crc", "RMQ-B13"),
    "skip the position check": ("position-not-checked",),
    "skip the erase": ("no-erase-after-cut", "erase-not-synced"),
    "skip a directory sync": (
        "directory-not-synced",
        "unlink-not-synced",
        "queue-names-not-synced",
        "index-names-not-synced",
        "progress-name-not-synced",
    ),
    "acknowledge early": ("early-acknowledgement", "floor-ahead"),
    "trust the checkpoint": ("checkpoint-believed", "derived-floor-believed"),
}
"""Planted bugs by kind of mistake."""

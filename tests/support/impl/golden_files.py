"""Queues, extensions and index of a directory as bytes, and bit maps given to RocketMQ."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.impl.golden import read

__all__ = ["WHOLE", "bit_maps_of", "derived_bytes", "index_bytes", "opening_arguments"]

WHOLE = (
    "01-plain-ascii",
    "02-topics-unicode-limits",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "05-transactions-delays-light-queues",
    "06-index-files-collisions",
    "07-queue-ext-bitmaps",
)
"""Clean stores, all in tests/data/golden."""
WITH_BIT_MAPS = "07-queue-ext-bitmaps"


def derived_bytes(directory: Path, *parts: str) -> dict[str, bytes]:
    """Return the files of queues and extensions, or of other parts of a directory, by path."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for part in parts or ("consumequeue", "consumequeue_ext")
        for path in sorted((directory / part).rglob("*"))
        if path.is_file()
    }


def index_bytes(directory: Path) -> list[bytes]:
    """Return the index files, oldest first; their names are times of a wall clock."""
    return list(derived_bytes(directory, "index").values())


def bit_maps_of(folder: Path) -> Callable[[bytes, Mapping[str, str]], bytes]:
    """Return the bit maps given to RocketMQ for a store, by the formula in `config.json`.

    The formula uses queue offsets, which the maker of bit maps does not receive: messages are identified by topic and
    keys, and those without keys by their order.
    """
    truth = read(folder / "truth.json")
    offsets: dict[tuple[str, str], int] = {}
    for each in truth["puts"]:
        for name, value in (pair.split("\x01") for pair in (each["properties"] or "").split("\x02") if pair):
            if name == "KEYS":
                offsets[each["topic"], value] = each["result"]["append"]["queueOffset"]
    without_keys: dict[str, Any] = defaultdict(count)

    def bit_map_of(topic: bytes, properties: Mapping[str, str]) -> bytes:
        name, keys = topic.decode(), properties.get("KEYS")
        number = next(without_keys[name]) if keys is None else offsets[name, keys]
        size = {0: 0, 4: 16}.get(number % 5, 8)
        return bytes((31 * number + 7 * place) % 256 for place in range(size))

    return bit_map_of


def opening_arguments(folder: Path) -> dict[str, Any]:
    """Return the arguments of an open besides the settings of a store."""
    return {"filter_bit_map": bit_maps_of(folder)} if folder.name == WITH_BIT_MAPS else {}

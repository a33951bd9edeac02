"""Judge the data files of the members of a group, by the format alone.

Nothing of the store is used here: an entry that both the store and a judge on its code would skip must be missed.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from tornpage.properties.explore.group.producer import body_of, number_of

__all__ = ["Judged", "bodies_of", "judged", "lost_of"]

_HEADER = struct.Struct(">iiqqqiIIi")
_BLANK = -1


@dataclass(frozen=True, slots=True)
class Judged:
    """What the logs of a group have at the end.

    `lost` are the acknowledged numbers that are not at their index in a log. `unequal` is a sentence if two logs
    differ, else an empty text.
    """

    entries: int
    log_bytes: int
    lost: tuple[int, ...]
    unequal: str


def judged(logs: Sequence[Path], acknowledged: Mapping[int, int]) -> Judged:
    """Compare the data folders of all members with each other and with what was acknowledged.

    `acknowledged` has an index for each number.
    """
    files = [_files_of(each) for each in logs]
    first = bodies_of(files[0])
    lost: set[int] = set()
    unequal = ""
    for log, content in zip(logs, files, strict=True):
        bodies = first if content == files[0] else bodies_of(content)
        if bodies is not first:
            names = [name for name in sorted(files[0] | content) if files[0].get(name) != content.get(name)]
            unequal = f"the logs of {logs[0].parent.name} and {log.parent.name} differ in {', '.join(names)}"
        lost.update(lost_of(bodies, acknowledged))
    return Judged(len(first), sum(map(len, files[0].values())), tuple(sorted(lost)), unequal)


def lost_of(bodies: Sequence[bytes], acknowledged: Mapping[int, int]) -> Iterator[int]:
    """Yield each acknowledged number whose body is not at its place."""
    for number, place in acknowledged.items():
        if place >= len(bodies) or number_of(bodies[place]) != number or bodies[place] != body_of(number).encode():
            yield number


def _files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a log that have entries. A file of zeros may be on one side only."""
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return {name: data for name, data in found.items() if any(data[:8])}


def bodies_of(files: Mapping[str, bytes]) -> list[bytes]:
    """Return the bodies of all entries from the first one on, up to one that is not whole."""
    bodies: list[bytes] = []
    for name, data in sorted(files.items()):
        at = 0
        while at + _HEADER.size <= len(data):
            magic, size, index, _, position, _, _, of_body, body_bytes = _HEADER.unpack_from(data, at)
            if magic == _BLANK:
                break
            body = data[at + _HEADER.size : at + size]
            is_whole = magic == 1 and size == _HEADER.size + body_bytes == _HEADER.size + len(body)
            if not is_whole or index != len(bodies) or position != int(name) + at or of_body != crc32(body):
                return bodies
            bodies.append(body)
            at += size
    return bodies

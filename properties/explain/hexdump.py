"""Show the bytes of a crash image: log files record by record, pages as hexadecimal lines.

They are read by the lab's own decoder (properties/decode), not by the store's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.walk import Unreadable, Zeros, walk
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.journal import PAGE_BYTES
from tornpage.properties.program.log_places import log_files

__all__ = ["Frame", "HexLine", "frames_of", "hex_of", "lines_of"]

LINE_BYTES = 16
HEX_LINES_MAX = 64
FRAMES_MAX = 200


@dataclass(frozen=True, slots=True)
class Frame:
    """Some bytes of a log file from `offset` on, their kind, and whether their checksums hold."""

    file: str
    offset: int
    size_bytes: int
    what: str
    verdict: str


@dataclass(frozen=True, slots=True)
class HexLine:
    """Sixteen bytes at `position` of a file, as text.

    `repeats` counts the equal lines that follow.
    """

    position: int
    hexadecimal: str
    text: str
    repeats: int
    frame: str


def frames_of(image: Image, *, file_bytes: int) -> list[Frame]:
    """Return the items of the log files of an image in the order of their offsets.

    There are at most 200 frames.
    """
    frames = []
    for path in log_files(image.files):
        base = int(path.rpartition("/")[2])
        for item in walk(image.files[path], base_offset=base, file_bytes=file_bytes):
            match item:
                case Record():
                    sums = "body CRC and record checksum hold" if item.checksum is not None else "body CRC holds"
                    topic = item.topic.decode(errors="replace")
                    what = f"record of {topic}/{item.queue_id} at {item.queue_offset}, body {len(item.body)} bytes"
                    frames.append(Frame(path, item.offset, item.size_bytes, what, sums))
                case Blank():
                    frames.append(Frame(path, item.offset, item.size_bytes, "blank to the end of the file", "holds"))
                case Zeros():
                    frames.append(Frame(path, item.offset, item.size_bytes, "zeros to the end of the file", "empty"))
                case Unreadable():
                    reason = item.reason.replace("_", " ")
                    frames.append(Frame(path, item.offset, item.size_bytes, "bytes without a record", reason))
                case Bad():
                    continue
    return frames[:FRAMES_MAX]


def hex_of(image: Image, path: str, page: int, frames: Sequence[Frame]) -> list[HexLine]:
    """Return a page of a file of an image as lines.

    Equal lines appear once, and only the first 64 lines appear.
    """
    content = image.files.get(path, b"")[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
    return lines_of(content, path, page, frames)


def lines_of(
    content: bytes, path: str, page: int, frames: Sequence[Frame], *, unlike: bytes | None = None
) -> list[HexLine]:
    """Return the content of a page as `hex_of` does.

    With `unlike` only the lines that differ from that content are returned.
    """
    here = [frame for frame in frames if frame.file == path]
    base = int(path.rpartition("/")[2]) if here else 0
    lines: list[HexLine] = []
    last, last_at = b"", -1
    for start in range(0, len(content), LINE_BYTES):
        data, position = content[start : start + LINE_BYTES], page * PAGE_BYTES + start
        if unlike is not None and unlike[start : start + LINE_BYTES] == data:
            continue
        begins = list(_begins(here, base + position))
        if lines and data == last and last_at == position - LINE_BYTES and not begins:
            before = lines[-1]
            lines[-1] = HexLine(before.position, before.hexadecimal, before.text, before.repeats + 1, before.frame)
        elif len(lines) == HEX_LINES_MAX:
            break
        else:
            shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
            lines.append(HexLine(position, data.hex(" "), shown, 0, "; ".join(begins)))
        last, last_at = data, position
    return lines


def _begins(frames: Sequence[Frame], offset: int) -> Iterator[str]:
    for frame in frames:
        if offset <= frame.offset < offset + LINE_BYTES:
            yield f"{frame.offset}: {frame.what} ({frame.verdict})"

"""Read a crash image from a real disk: its files, the truth of its producer, and its log.

An image is read into memory as a whole; no file of it is locked, mapped or changed. Sizes are listed sizes, holes
included: a recorded disk has no holes, and several copies of the image are in memory while it is judged. An image that
does not fit into memory is refused before any file is read.

The truth is the file `truth.json` of a golden store: what was acknowledged to the producer. Its `records` have one
entry per stored record, in put order: `commitLogOffset`, `storeSize`, `recordSha256`, `status`, and `flushed` after a
kill. `damage` is present if the image was damaged afterwards in the way of a power loss.

The log is read by the judges' own decoder: the valid prefix, and what lies past it. No content makes that raise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError, open_view, shown
from tornpage.properties.decode.record import RECORD_MAGIC, Bad, Blank, Record, decode_record
from tornpage.properties.decode.store import StoreView
from tornpage.properties.decode.walk import Zeros, walk
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import below_root, left_past
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "COPIES",
    "IMAGE_BYTES_MAX",
    "OTHER_DIRECTORIES",
    "AcknowledgedRecord",
    "LogRead",
    "Problem",
    "SeenImage",
    "Truth",
    "log_names",
    "read_image",
    "read_log",
    "read_truth",
    "truth_of",
    "write_image",
]

IMAGE_BYTES_MAX = 1 << 30
"""The size of the largest image that is judged, holes included."""

COPIES = 6
"""The largest number of copies of an image in memory: as read, on two disks with their bases, and as recovered."""

_DEPTH_MAX = 8

_PIECE_BYTES = 1 << 20

_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An image in memory, below `ROOT`.

    `view` is the decoder's view of the directory, and `strays` lists foreign entries.
    """

    directory: Path
    image: Image
    view: StoreView
    strays: tuple[Finding, ...]

    @property
    def content(self) -> dict[str, bytes]:
        """The files by name below the store directory."""
        return below_root(self.image.files)


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    path: Path
    size_bytes: int


def read_image(path: str | os.PathLike[str], *, memory_bytes: int | None = None) -> SeenImage:
    """Read an image. Raises InspectError.

    `memory_bytes` is how much memory may be used, by default all that is available.
    """
    view = open_view(path)
    if view.live:
        raise InspectError(f"{shown(view.store_dir)} is open in a store; judge a copy, or close the store first")
    directories, files, strays = [], [], []
    try:
        for found in _listed(view.store_dir):
            if isinstance(found, Finding):
                strays.append(found)
            elif isinstance(found, str):
                directories.append(f"{ROOT}/{found}")
            else:
                files.append(found)
        _require_room(view.store_dir, sum(file.size_bytes for file in files), memory_bytes)
        content = {f"{ROOT}/{file.name}": _read_file(file) for file in files}
    except OSError as error:
        name = shown(Path(error.filename or view.store_dir))
        raise InspectError(f"cannot read {name}: {error.strerror}; read it as its owner, or judge a copy") from error
    return SeenImage(view.store_dir, Image(frozenset({"/", ROOT, *directories}), content), view, tuple(strays))


def _listed(root: Path) -> Iterator[_Listed | Finding | str]:
    """Yield the directories (names) and files of an image.

    Anything else, and each link back to a parent, is yielded as a finding.
    """
    waiting = [("", root)]
    seen = {_identity(os.stat(root))}
    while waiting:
        below, directory = waiting.pop()
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = f"{below}{entry.name}"
            status = os.stat(entry.path)
            is_new = name.count("/") < _DEPTH_MAX and _identity(status) not in seen
            if stat.S_ISDIR(status.st_mode) and is_new:
                seen.add(_identity(status))
                yield name
                waiting.append((f"{name}/", Path(entry.path)))
            elif stat.S_ISREG(status.st_mode):
                yield _Listed(name, Path(entry.path), status.st_size)
            else:
                message = "neither a file nor a directory of its own, or too deep: not judged"
                yield Finding("CL_STRAY_FILE", "note", name, None, message, "move it away")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _require_room(directory: Path, size_bytes: int, memory_bytes: int | None) -> None:
    if size_bytes > IMAGE_BYTES_MAX:
        raise InspectError(
            f"{shown(directory)} has {size_bytes:,} bytes with its holes; images of {IMAGE_BYTES_MAX:,} bytes at most "
            "are judged; look at it with `tornpage inspect` and `tornpage audit`"
        )
    room = _available_bytes() if memory_bytes is None else memory_bytes
    if room is not None and COPIES * size_bytes > room:
        raise InspectError(
            f"judging {shown(directory)} takes about {COPIES * size_bytes:,} bytes of memory and {room:,} are left; "
            "free some, or look at it with `tornpage inspect` and `tornpage audit`"
        )


def _available_bytes() -> int | None:
    """Return how much memory is available, None if the machine does not state it."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _read_file(file: _Listed) -> bytes:
    """Read a file of the size that was listed. Raises OSError if its size has changed since."""
    fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        content = b"".join(iter(lambda: os.read(fd, _PIECE_BYTES), b""))
    finally:
        os.close(fd)
    if len(content) != file.size_bytes:
        raise OSError(116, "it changed while it was read", str(file.path))
    return content


def write_image(image: Image, directory: Path, *, root: str = ROOT) -> None:
    """Write the files of an image below `root` into `directory`.

    The root of a foreign store is an empty string. The directory is created and must be new or empty. After a failed
    write it is as before.

    Raises FileExistsError if it is neither, OSError if a write fails.
    """
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileExistsError(17, "the directory is not empty", str(directory))
    try:
        _write_files(image, directory, root)
    except OSError:
        for each in directory.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        if is_new:
            directory.rmdir()
        raise


def _write_files(image: Image, directory: Path, root: str) -> None:
    for path in sorted(image.directories):
        if path.startswith(f"{root}/"):
            (directory / path.removeprefix(f"{root}/")).mkdir(parents=True, exist_ok=True)
    for path, content in sorted(image.files.items()):
        if path.startswith(f"{root}/"):
            (directory / path.removeprefix(f"{root}/")).write_bytes(content)


_TRUTH_BYTES_MAX = 256 << 20

_STORED = ("PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE")


@dataclass(frozen=True, slots=True)
class AcknowledgedRecord:
    """One record that was acknowledged to its producer as stored."""

    offset: int
    size_bytes: int
    sha256: str
    flushed: bool

    def is_record(self, record: Record) -> bool:
        """Whether a record of a log is this one, byte for byte."""
        return (record.offset, record.size_bytes) == (self.offset, self.size_bytes) and (
            sha256(record.raw).hexdigest() == self.sha256
        )


@dataclass(frozen=True, slots=True)
class Truth:
    """Acknowledged records by physical offset, in order.

    `power_loss`: only flushed records had to survive. `has_copies`: delayed messages were delivered, and their copies
    were not acknowledged to any producer.
    """

    records: Mapping[int, AcknowledgedRecord]
    power_loss: bool
    has_copies: bool

    @property
    def due(self) -> tuple[AcknowledgedRecord, ...]:
        """The records that have to survive; after a process kill that is all of them."""
        return tuple(record for record in self.records.values() if record.flushed or not self.power_loss)


def read_truth(path: str, *, power_loss: bool | None = None) -> Truth:
    """Read a file of truth. Raises InspectError."""
    try:
        with Path(path).open("rb") as file:
            stored = file.read(_TRUTH_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InspectError(f"cannot read the truth {path!r}: {reason}; check the path") from error
    try:
        if len(stored) > _TRUTH_BYTES_MAX:
            raise ValueError("too long")
        document = json.loads(stored)
        return truth_of(document, power_loss=power_loss)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InspectError(
            f"{path!r} is not a truth file: it is no JSON text; give the truth.json of a golden store"
        ) from error
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)[:200]
        raise InspectError(
            f"{path!r} is not a truth ({what}); it needs `records` with commitLogOffset, storeSize, recordSha256"
        ) from error


def truth_of(document: Mapping[str, Any], *, power_loss: bool | None = None) -> Truth:
    """Return the truth in a document.

    Without `power_loss` the document decides. Raises KeyError, TypeError.
    """
    records = [
        AcknowledgedRecord(
            int(row["commitLogOffset"]),
            int(row["storeSize"]),
            str(row["recordSha256"]),
            bool(row.get("flushed", row.get("status", _STORED[0]) == _STORED[0])),
        )
        for row in document["records"]
        if row.get("status", _STORED[0]) in _STORED
    ]
    topics = {row.get("topic") for row in document["records"]}
    return Truth(
        {record.offset: record for record in sorted(records, key=lambda record: record.offset)},
        "damage" in document if power_loss is None else power_loss,
        "SCHEDULE_TOPIC_XXXX" in topics,
    )


OTHER_DIRECTORIES = frozenset({"config", "consumequeue", "consumequeue_ext", "index", "quarantine"})
"""Directories of a store that hold no log."""

_LOG_NAME = re.compile(r"[0-9]{20}")

_MAGIC = RECORD_MAGIC.to_bytes(4, "big")

_MAGICS_MAX = 256

_HEADER_BYTES = 8

_LAST_BASE = 1 << 62


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a log that no crash leaves: its place, and a sentence."""

    file: str
    offset: int
    sentence: str


@dataclass(frozen=True, slots=True)
class LogRead:
    """The log from physical offset `begin` to `end`.

    `reason` says why it ends there (None: no more bytes).

    `records` are those of the valid prefix, `past_end` valid records past its end. `dirty_at` is the first byte past
    the end that is not zero. `is_left_over`: zeros end the log, and the bytes past them hold no valid record; an
    earlier crash left them. `files` has the name of the file of each base offset, and each has `file_bytes` bytes.
    """

    files: Mapping[int, str]
    file_bytes: int
    begin: int
    end: int
    reason: str | None
    records: tuple[Record, ...]
    past_end: tuple[Record, ...]
    dirty_at: int | None
    is_left_over: bool
    problems: tuple[Problem, ...]

    def file_of(self, offset: int) -> str:
        """Return the name of the file that holds an offset, or of the last file before it."""
        before = [base for base in self.files if base <= offset]
        return self.files[max(before)] if before else "commitlog"


def log_names(names: Sequence[str], directories: Sequence[str]) -> list[tuple[int, str]]:
    """Return base offset and name of each log file in these directories, lowest first."""
    found = [(name.rpartition("/"), name) for name in names]
    return sorted(
        (int(parts[2]), name)
        for parts, name in found
        if parts[0] in directories and _LOG_NAME.fullmatch(parts[2]) and int(parts[2]) <= _LAST_BASE
    )


def read_log(content: Mapping[str, bytes], directories: Sequence[str], *, file_bytes: int, floor: int) -> LogRead:
    """Read a log whose files have `file_bytes` bytes.

    The log was once durable up to `floor`, 0 if that is not known.
    """
    problems: list[Problem] = []
    files = _one_of_each(content, log_names(list(content), directories), problems)
    if files and not content[files[max(files)]] and floor <= max(files):
        del files[max(files)]  # created, never written
    _leave_out_unused(content, files, file_bytes=file_bytes, floor=floor)
    begin = min(files, default=0)
    records: list[Record] = []
    past_end: list[Record] = []
    starts: list[bool] = []
    end, reason, is_open, expected = begin, None, True, begin
    for base, name in files.items():
        data = content[name]
        if base != expected:
            problems.append(Problem(name, base, f"the log has no file at {expected}, the next one is at {base}"))
            is_open = False
        if len(data) != file_bytes:
            problems.append(Problem(name, base, f"{name} has {len(data)} bytes instead of {file_bytes}"))
        expected = base + file_bytes
        stopped = "the file ends"
        stated = _stated_base(data, base, file_bytes=file_bytes)
        if stated is not None:
            problems.append(Problem(name, base, f"{name} has the records of a file that begins at {stated}"))
        starts.append(_begins_with_zeros(data))
        for item in walk(data, base_offset=base, file_bytes=file_bytes):
            if isinstance(item, Record):
                (records if is_open and item.offset == end else past_end).append(item)
                end = item.end_offset if is_open and item.offset == end else end
            elif isinstance(item, Blank):
                stopped = ""
                if is_open and item.size_bytes != expected - item.offset:
                    reason, is_open = "a blank of another length", False  # a recovery takes it for torn
                elif is_open and item.offset == end:
                    end = expected
            elif is_open:
                reason, is_open = ("zeros" if isinstance(item, Zeros) else str(item.reason)), False
        if is_open and stopped and end < expected:
            reason, is_open = stopped, False
    after = [is_zero for base, is_zero in zip(files, starts, strict=True) if base > end]
    is_left_over = reason in ("zeros", "zero_header") and not past_end and all(after)
    dirty_at = _dirty_at(content, files, end)
    return LogRead(
        files,
        file_bytes,
        begin,
        end,
        reason,
        tuple(records),
        tuple(past_end),
        dirty_at,
        is_left_over,
        tuple(problems),
    )


def _begins_with_zeros(data: bytes) -> bool:
    return not data[:_HEADER_BYTES].strip(b"\0")


def _stated_base(data: bytes, base: int, *, file_bytes: int) -> int | None:
    """Return where in the log a file begins by its first valid record.

    Return None if that is the place of its name.
    """
    first = next(walk(data, base_offset=base, file_bytes=file_bytes), None)
    if not isinstance(first, Bad) or first.reason != "bad_position":
        return None
    at = -1
    for _ in range(_MAGICS_MAX):
        at = data.find(_MAGIC, at + 1)
        if at < 4:
            if at < 0:
                return None
            continue
        stated = int.from_bytes(data[at + 24 : at + 32], "big", signed=True) - (at - 4)
        if stated >= 0 and stated != base and (stated - base) % file_bytes == 0:
            place = stated + at - 4
            if isinstance(decode_record(data, at - 4, offset=place, room_bytes=file_bytes - (at - 4)), Record):
                return stated
    return None


def _leave_out_unused(content: Mapping[str, bytes], files: dict[int, str], *, file_bytes: int, floor: int) -> None:
    """Leave out files made ahead of the writes.

    They are left out if an empty or missing file comes first among them. A name that is no place for a file is damage,
    so nothing is left out then.
    """
    bases = list(files)
    if any(base % file_bytes for base in bases):
        return
    for before, base in pairwise(bases):
        end = before + file_bytes
        if base == end and content[files[base]]:
            continue
        rest = [each for each in bases if each >= base]
        if floor <= end and all(content[files[each]] in (b"", bytes(file_bytes)) for each in rest):
            for each in rest:
                del files[each]
        return


def _one_of_each(
    content: Mapping[str, bytes], found: Sequence[tuple[int, str]], problems: list[Problem]
) -> dict[int, str]:
    """Return one file for each offset.

    Of two files the one with content is taken; two files with content are a problem.
    """
    files: dict[int, str] = {}
    for base, name in found:
        other = files.get(base)
        if other is None or not content[other].strip(b"\0"):
            files[base] = name
        elif content[name].strip(b"\0"):
            problems.append(Problem(name, base, f"{name} and {other} are for the same offset, and both have content"))
    return files


def _dirty_at(content: Mapping[str, bytes], files: Mapping[int, str], end: int) -> int | None:
    for base, name in files.items():
        left = left_past(end, base, content[name])
        if left is not None:
            return left[0]
    return None

"""Compare log directories, and log files that are made ahead, with plain rules.

1. A file of the log has 20 digits as its name and begins at a multiple of the size of a file. Other names are stray.
   Others of 20 digits are misplaced, which is damage.
2. Of several files of one offset the one with data counts. If several have data, this is damage.
3. An empty newest file is left over unless the floor says that something in it was durable. So are files without data
   after a missing or an empty one, unless the floor lies past it.
4. A missing file and a file of another size are damage, and so is a floor past the last file.
5. Files of another size than configured are refused if all have that size, or the floor says so.
6. A new file goes into the directory in its turn, of those that are not full. If all are full, those with room for a
   file take turns. If none has room, all of them do.
7. The files after the next one are made before they are needed, the lowest first, each once. One that cannot be made is
   tried again a second later, or when a put needs it. The put gets the error, or ETIMEDOUT after 5 s without a file.
   An end removes those that no put took, the newest first.
"""

import errno
import logging
import random
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tornpage.impl.config.policy import AllocationPolicy
from tornpage.impl.errors import WrongFileSize
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.loading import FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, are_files, tried

__all__ = ["check"]

_FILE_BYTES = 1024
_EXAMINATIONS = 40
_CHOICES = 12
_ALLOCATIONS = 4
_TAKES = 8
_WAIT_MS, _PAUSE_MS = 5_000, 1_000
_A, _B, _C = "/part/a", "/part/b", "/part/c"
_RATIO = 0.85


def check(rng: random.Random) -> None:
    """Examine directories, choose directories, and make files ahead. Raises GuaranteeBroken."""
    for _ in range(_EXAMINATIONS):
        _examine(rng)
    for _ in range(_CHOICES):
        _choose(rng)
    log = logging.getLogger("tornpage.store")
    was_disabled, log.disabled = log.disabled, True  # the failed attempts are meant
    try:
        for _ in range(_ALLOCATIONS):
            _Allocation(rng).run()
    finally:
        log.disabled = was_disabled


# ---- examining -------------------------------------------------------------------------------------------------------


@dataclass
class _Drawn:
    """Directories with log files, and the floor."""

    files: dict[str, bytes] = field(default_factory=dict)
    floor: Floor | None = None
    read_only: tuple[str, ...] = ()


def _name(base: int) -> str:
    return f"{base:020d}"


def _draw(rng: random.Random) -> _Drawn:
    """Draw a sound log of some files, and then up to two things that are wrong with it."""
    drawn, first = _Drawn(), rng.choice((0, 0, 5))
    data = b"d" * _FILE_BYTES
    bases = [_FILE_BYTES * (first + number) for number in range(rng.choice((0, 1, 2, 3, 4)))]
    for base in bases:
        drawn.files[f"{rng.choice((_A, _B))}/{_name(base)}"] = data
    end = bases[-1] + _FILE_BYTES if bases else 0
    kinds = ("none", "stray", "misplaced", "far", "twin", "twin_zeros", "empty", "ahead", "gap", "missing", "short",
             "long", "all_short")  # fmt: skip
    for kind in rng.sample(kinds, rng.choice((1, 1, 2))):
        path = rng.choice(sorted(drawn.files)) if drawn.files else f"{_A}/{_name(0)}"
        directory, _, name = path.rpartition("/")
        other = f"{_B if directory == _A else _A}/{name}"
        match kind:
            case "stray":
                odd = ("x", "0" * 19, "0" * 21, "\u0660" * 20, "-" + "0" * 19, f"{_name(0)}.old")
                drawn.files[f"{directory}/{rng.choice(odd)}"] = data
            case "misplaced":
                drawn.files[f"{directory}/{_name(end + rng.choice((1, 512, 1023)))}"] = data
            case "far":
                drawn.files[f"{directory}/{_name(rng.choice(((1 << 62), (1 << 62) + _FILE_BYTES)))}"] = bytes(
                    _FILE_BYTES
                )
            case "twin" | "twin_zeros" if path in drawn.files and other not in drawn.files:
                size = rng.choice((_FILE_BYTES, 512, _FILE_BYTES))
                drawn.files[other] = bytes(size) if kind == "twin_zeros" else bytes(size - 1) + b"t"
            case "empty":
                drawn.files[f"{directory}/{_name(end)}"] = b""
            case "ahead":
                drawn.files[f"{directory}/{_name(end)}"] = rng.choice((b"", bytes(_FILE_BYTES)))
                drawn.files[f"{directory}/{_name(end + _FILE_BYTES)}"] = rng.choice((b"", bytes(_FILE_BYTES)))
            case "gap":
                drawn.files[f"{directory}/{_name(end + _FILE_BYTES)}"] = rng.choice((data, bytes(_FILE_BYTES)))
            case "missing":
                drawn.files.pop(path, None)
            case "short" | "long" if path in drawn.files:
                size = rng.choice((1, 100, 512, 1023) if kind == "short" else (1025, 1536))
                drawn.files[path] = b"s" * size
            case "all_short":
                size = rng.choice((512, 513, 2048))
                drawn.files = dict.fromkeys(drawn.files, b"s" * size)
    places = (0, 1, _FILE_BYTES, end - 1, end, end + 1, end + _FILE_BYTES, end + _FILE_BYTES + 1)
    drawn.floor = rng.choice((None, Floor(max(0, rng.choice(places)), rng.choice((_FILE_BYTES, _FILE_BYTES, 512)))))
    drawn.read_only = rng.choice(((), (), (_A,), (_B,)))
    return drawn


def _examine(rng: random.Random) -> None:
    drawn = _draw(rng)
    disk = PartDisk(Image(frozenset(("/", "/part", _A, _B, f"{_A}/{_name(99 * _FILE_BYTES)}")), drawn.files))
    directories = LogDirectories(
        disk, (_B, _A, _C), read_only=drawn.read_only, file_bytes=_FILE_BYTES, clean_forcibly_ratio=_RATIO
    )
    expected, answer = _expected(drawn), object()
    try:
        answer = _answer_of(examine_log(disk, directories, file_bytes=_FILE_BYTES, floor=drawn.floor))
    except WrongFileSize as error:
        answer = "refused", error.found_bytes
    except Exception as error:  # another exception is a wrong answer
        answer = f"{type(error).__name__}: {error}"
    shown = {path: len(data) for path, data in drawn.files.items()}
    is_value(f"the log in {shown} with {drawn.floor}", expected, answer)
    is_value("the files that an examination still holds", (0, 0), disk.held)
    are_files("an examined log", drawn.files, disk.content)


def _answer_of(found: FoundLog) -> object:
    findings = sorted((finding.severity, finding.code, finding.offset) for finding in found.findings)
    return found.paths, tuple(sorted(found.leftovers)), findings


def _expected(drawn: _Drawn) -> object:
    """Return what an examination finds: the files of the log, the leftovers, and the findings."""
    findings, named = [("note", "stray_file", -1)], dict[int, list[str]]()  # the directory with the name of a file
    for path in sorted(drawn.files):
        name = path.rpartition("/")[2]
        if len(name) == 20 and set(name) <= set("0123456789"):
            named.setdefault(int(name), []).append(path)
        else:
            findings.append(("note", "stray_file", -1))
    sizes = {path: len(drawn.files[path]) for paths in named.values() for path in paths}
    refused = _refused(sizes, drawn.floor)
    if refused is not None:
        return "refused", refused
    for base in sorted(named):
        if base % _FILE_BYTES or base > 1 << 62:
            findings += [("damage", "misplaced_file", base)] * len(named.pop(base))
    leftovers, rows = list[str](), list[tuple[int, str]]()
    for base, paths in sorted(named.items()):
        written = [path for path in paths if any(drawn.files[path])]
        whole = [path for path in written or paths if sizes[path] == _FILE_BYTES]
        one = (whole or written or paths)[0]
        rows.append((base, one))
        if len(paths) > 1:
            for path in paths:
                if path != one:
                    is_written = path in written
                    findings.append(("damage" if is_written else "note", "twin_file", base))
                    leftovers += [] if is_written else [path]
    floor = -1 if drawn.floor is None else drawn.floor.offset
    always = []
    if rows and not sizes[rows[-1][1]] and floor <= rows[-1][0]:
        always.append(rows.pop()[1])
    for at in range(1, len(rows)):
        end = rows[at - 1][0] + _FILE_BYTES
        if rows[at][0] == end and sizes[rows[at][1]]:
            continue
        rest = [path for _, path in rows[at:]]
        is_empty = all(sizes[path] in (0, _FILE_BYTES) and not any(drawn.files[path]) for path in rest)
        if is_empty and floor <= end:
            leftovers += rest
            del rows[at:]
        break
    end = rows[0][0] if rows else 0
    for base, path in rows:
        if base != end:
            findings.append(("damage", "missing_file", end))
        if sizes[path] != _FILE_BYTES:
            findings.append(("damage", "short_file", base + sizes[path]))
        end = base + _FILE_BYTES
    if floor > end:
        findings.append(("damage", "missing_file", end))
    left = [path for path in leftovers if path.rpartition("/")[0] not in drawn.read_only]
    kept = tuple(path for _, path in rows if sizes[path])
    return kept, tuple(sorted([*left, *always])), sorted(findings)


def _refused(sizes: Mapping[str, int], floor: Floor | None) -> int | None:
    """Return the size for which a log is refused, or None."""
    there = {size for size in sizes.values() if size}
    if not sizes:
        return None
    if floor is not None:
        return None if floor.file_bytes == _FILE_BYTES else floor.file_bytes
    if len(there) != 1:
        return None
    (size,) = there
    return None if size % 512 or size == _FILE_BYTES else size


# ---- choosing --------------------------------------------------------------------------------------------------------


class _Disks:
    """Stands for disks with a known or unknown usage by path."""

    def __init__(self, usages: Mapping[str, DiskUsage | None]) -> None:
        self._usages = usages

    def stat(self, path: str) -> object:
        """Return something for each path."""
        return path

    def disk_usage(self, path: str) -> DiskUsage:
        """Return the usage of a disk. Raises OSError if it is unknown."""
        usage = self._usages[path]
        if usage is None:
            raise OSError(errno.EIO, "no usage", path)
        return usage


def _choose(rng: random.Random) -> None:
    total = 100 * _FILE_BYTES
    frees = (
        0,
        _FILE_BYTES - 1,
        _FILE_BYTES,
        15 * _FILE_BYTES - 1,
        15 * _FILE_BYTES,
        15 * _FILE_BYTES + 1,
        90 * _FILE_BYTES,
    )
    paths = rng.sample((_A, _B, _C), rng.choice((1, 2, 3)))
    usages = {path: rng.choice((None, *(DiskUsage(total, free) for free in frees))) for path in paths}
    read_only = rng.choice(((), (), (_A,)))
    directories = LogDirectories(
        _Disks(usages), paths, read_only=read_only, file_bytes=_FILE_BYTES, clean_forcibly_ratio=_RATIO  # type: ignore[arg-type]
    )  # fmt: skip
    writable = [path for path in sorted(paths) if path not in read_only]
    if not writable:
        return
    known = {path: usage.free_bytes for path in writable if (usage := usages[path]) is not None}
    roomy = [path for path in writable if known.get(path, 0) >= _FILE_BYTES]
    turn = [path for path in roomy if (total - known[path]) / total <= _RATIO] or roomy or writable
    for number in range(4):
        wanted = writable[0] if len(writable) == 1 else turn[number % len(turn)]
        found = tried("choose", lambda number=number: directories.choose(number * _FILE_BYTES))  # type: ignore[misc]
        is_value(f"the directory for file {number} with {usages}", wanted, found)
    try:
        free: object = tried("free_bytes", directories.free_bytes)
    except OSError:
        free = None
    is_value(f"the free bytes of {usages}", max(known.values(), default=None), free)


# ---- making files ahead ----------------------------------------------------------------------------------------------


class _Allocation:
    """Takes one file after the other, while a service makes the next ones.

    Maker and runner are stand-ins. The service runs while a put waits, or too late.
    """

    path_of = staticmethod(_name)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.file_bytes = _FILE_BYTES
        self._ahead = rng.choice((0, 1, 2, 3))
        self._made: list[int] = []
        self._removed: list[int] = []
        self._is_failing = self._is_late = False
        self._now_ms = 0
        self._is_stopped = self._is_woken = False
        self._due_ms: int | None = None
        self._file: Any = None
        stands: Any = self
        self._part = AllocateMappedFiles(stands, policy=AllocationPolicy(self._ahead), runner=lambda _: stands)

    # ---- what the stand-ins do ----

    def make(self, base_offset: int) -> Any:
        """Make a file, or fail."""
        if self._is_failing:
            raise OSError(errno.ENOSPC, "a call that was chosen to fail", _name(base_offset))
        self._made.append(base_offset)
        return SimpleNamespace(base_offset=base_offset)

    def remove(self, file: Any) -> None:
        """Remove a file, or fail."""
        self._removed.append(file.base_offset)
        if self._is_failing:
            raise OSError(errno.EIO, "a call that was chosen to fail")

    def wake(self) -> None:
        """Note that the service has to run."""
        self._is_woken = True

    def stop(self) -> None:
        """Note the end."""
        self._is_stopped = True

    def wait(self, answer: Future[None], *, timeout_ms: int) -> None:
        """Let the service run once, unless it is late."""
        is_value("the time for which a put waits for a file", _WAIT_MS, timeout_ms)
        is_value("whether the service is woken for a put", True, self._is_woken)
        if not self._is_late:
            self._step()
            is_value("whether a step of the service answers the put", True, answer.done())

    def _step(self) -> None:
        self._is_woken = False
        self._due_ms = tried("a step of the allocation", lambda: self._part.step(self._now_ms))

    # ---- takes ----

    def run(self) -> None:
        """Take files, and compare what is made."""
        rng, base, ready = self._rng, _FILE_BYTES * self._rng.choice((0, 5)), list[int]()
        if rng.random() < 0.3:
            self._is_failing = rng.random() < 0.3
            tried("prepare", lambda: self._part.prepare(base))
            ready = [] if self._is_failing else [base]
            is_value("the file that is prepared", ready, self._made)
        for _ in range(_TAKES):
            self._is_failing, self._is_late = rng.random() < 0.2, rng.random() < 0.2
            self._now_ms += rng.choice((0, 1, _PAUSE_MS - 1, _PAUSE_MS, _PAUSE_MS + 1))
            is_made_here = self._ahead == 0 or base in ready or not self._is_late
            wanted: object = base
            if base not in ready and self._is_failing and is_made_here:
                wanted = errno.ENOSPC, _name(base)
            elif base not in ready and not is_made_here:
                wanted = errno.ETIMEDOUT, _name(base)
            self._made.clear()
            is_value(f"the file at {base} that a put takes", wanted, self._taken(base))
            new = [base] if wanted == base and base not in ready else []
            is_value("the files that are made for a put", new, self._made)
            is_refused = wanted != base
            if not is_refused and rng.random() < 0.2:  # the put fails, and gives the file back
                self._part.give_back(self._file)
                is_refused, ready = True, sorted({*ready, base})
            elif not is_refused:
                ready = [each for each in ready if each != base]
                base += _FILE_BYTES
            missing = self._missing(base, ready, is_wanted=is_refused)
            self._is_failing = False
            ready += self._idle(missing)
        self._is_failing = rng.random() < 0.3
        tried("close", self._part.close)
        is_value("the files that an end removes", sorted(ready, reverse=True), self._removed)
        is_value("whether an end stops the service", True, self._is_stopped)

    def _is_due(self) -> bool:
        return self._is_woken or (self._due_ms is not None and self._due_ms <= self._now_ms)

    def _missing(self, base: int, ready: list[int], *, is_wanted: bool) -> list[int]:
        """Return the files that the service has to make now.

        With `is_wanted` the one at `base` is still wanted.
        """
        ahead = self._ahead + is_wanted if self._ahead else 0
        return [each for each in range(base, base + ahead * _FILE_BYTES, _FILE_BYTES) if each not in ready]

    def _taken(self, base: int) -> object:
        """Return the offset of the file that a put takes, or code and path of its error."""
        try:
            self._file = tried("take", lambda: self._part.take(base))
        except OSError as error:
            return error.errno, error.filename
        return self._file.base_offset

    def _idle(self, missing: list[int]) -> list[int]:
        """Let the service run while it is woken or due. One attempt may fail."""
        self._made.clear()
        self._now_ms += _PAUSE_MS + 1
        is_failing = bool(missing) and self._rng.random() < 0.3
        if is_failing and self._is_due():
            self._is_failing = True
            self._step()
            due_ms = self._now_ms + _PAUSE_MS
            is_value("when a failed attempt is repeated", due_ms, self._due_ms)
            self._is_failing, self._now_ms = False, due_ms - 1
            self._step()
            is_value("the end of a step before that time", (due_ms, []), (self._due_ms, self._made))
            self._now_ms = due_ms
        for _ in range(2 * len(missing) + 2):
            if self._is_due():
                self._step()
        is_value("the files that are made before they are needed", missing, self._made)
        return missing

"""Compare the clean-up of expired files with plain rules.

Log, queues, index, disks and clock are stand-ins.

1. The first log file may be deleted if another one follows it, if it is flushed and dispatched to its end, and if the
   first record of the next file is old enough. An urgent clean-up ignores the age. A record that is invalid,
   uncommitted or past a blank has no age.
2. Before a file leaves the log, what was dispatched up to its end is durable, and so is the list of deleted topics.
   Neither is made durable twice without need.
3. A file that a reader holds stays on the disk until it is released, or until its time is over. Then the buffers end.
   It counts as the oldest file until then.
4. A call that fails leaves everything to the next one.
5. A run begins at its hour, on request, or if a disk needs room. It deletes at most ten files with pauses between them,
   tries a waiting file again, and lets queues and index follow. The next run begins after a pause.
6. Queues follow with the begin of the log and with the begin of what is on the disk. They are asked again while a file
   of one waits, and not once more after that.
"""

import random
import struct
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

from tornpage.impl.config.retention_policy import RetentionPolicy, Room
from tornpage.impl.message.codec import check_record
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_consume_queues import CleanConsumeQueues
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.lockstep.functions.comparing import is_value

__all__ = ["check"]

_FILE_BYTES = 400
_HEAD = struct.Struct(">IIIiiqqiq")
_MAGIC = 0xDAA320A7
_T0 = 1_700_000_000_000
_HOUR_MS = 3_600_000
_FORCED_MS, _AGAIN_MS, _PAUSE_MS, _QUEUE_PAUSE_MS, _ROUND_MS = 700, 300, 40, 50, 9_000
_POLICY = RetentionPolicy(
    file_reserved_time=2,
    delete_when="04;05",
    time_zone="UTC",
    clean_resource_interval=_ROUND_MS,
    delete_commit_log_files_interval=_PAUSE_MS,
    destroy_maped_file_interval_forcibly=_FORCED_MS,
    redelete_hanged_file_interval=_AGAIN_MS,
    delete_consume_queue_files_interval=_QUEUE_PAUSE_MS,
)
_STEPS = 100
_RUNS = 12
_MOST_FILES, _MOST_REQUESTS = 10, 20


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    _Deletions(rng).run()
    _runs(rng)
    _followed(rng)


def _tried(what: str, do: Callable[[], object]) -> object:
    """Return the answer of a part; "failed" if a call that was chosen to fail did."""
    try:
        return do()
    except (GuaranteeBroken, HarnessError):
        raise
    except OSError:
        return "failed"
    except Exception as error:
        raise GuaranteeBroken(8, f"{what} raises {type(error).__name__}: {error}") from error


# ---- one file after the other ----------------------------------------------------------------------------------------


@dataclass
class _File:
    """Stands for a mapped file of the log, with the record that it begins with."""

    base_offset: int
    view: memoryview
    time: int | None
    is_closed: bool = False
    blank_position: int | None = None
    readers: int = 0
    looks: int = 0

    size_bytes = _FILE_BYTES

    @property
    def end_offset(self) -> int:
        """The offset after the file."""
        return self.base_offset + _FILE_BYTES

    @property
    def path(self) -> str:
        """The path of the file."""
        return f"/part/{self.base_offset:020d}"

    @property
    def is_unreferenced(self) -> bool:
        """Whether no reader holds the file."""
        return not self.readers

    def hold(self) -> bool:
        """Begin a look, unless the file is closed."""
        self.looks += not self.is_closed
        return not self.is_closed

    def release(self) -> None:
        """End a look."""
        self.looks -= 1

    def may_hold_record(self, position: int) -> bool:
        """Return whether a record may begin before the blank."""
        return self.blank_position is None or position < self.blank_position


def _record(offset: int, time: int, *, has_long_host: bool) -> bytes:
    """Return a record of 200 bytes. Source: docs/format.md."""
    host = 20 if has_long_host else 8
    body = b"b" * (116 - host)
    flags = 0x10 if has_long_host else 0
    head = _HEAD.pack(200, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, 0, 0, 0, offset, flags, _T0)
    rest = bytes(host) + struct.pack(">q", time) + bytes(8) + struct.pack(">iqi", 0, 0, len(body)) + body + b"\1T\0\0"
    return head + rest


class _Deletions:
    """Runs drawn deletions over a log that grows, and compares each answer and each call."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now, self._clock = 1_000, _T0 + 100 * _HOUR_MS
        self._calls: list[str] = []
        self._failing = ""
        self._dispatched = self._durable = 0
        self._hanging: tuple[_File, int, int] | None = None
        self.mapped: list[_File] = []
        self.flushed_where = self.committed_where = 0
        self._next = rng.choice((0, _FILE_BYTES))
        self._cleaner = CleanCommitLog(
            self,  # type: ignore[arg-type]
            policy=_POLICY,
            check=check_record,
            dispatched_end=lambda: self._dispatched,
            make_derived_durable=lambda: self._call("derived"),
            settle_deletions=lambda: self._call("settle"),
            revoke=self._revoke,  # type: ignore[arg-type]
        )

    # the log, as the part sees it

    @property
    def min_offset(self) -> int:
        """The begin of the log."""
        return self.mapped[0].base_offset if self.mapped else 0

    def drop_first(self) -> _File:
        """Take the first file out of the log."""
        self._call("drop")
        return self.mapped.pop(0)

    def remove(self, file: _File) -> None:
        """Remove a file from the disk, or fail."""
        self._call(f"remove {file.base_offset}")

    def _revoke(self, file: _File) -> int:
        self._call(f"revoke {file.base_offset}")
        return file.readers

    def _call(self, name: str) -> None:
        self._calls.append(name)
        if self._failing and name.startswith(self._failing):
            raise OSError(5, "a call that was chosen to fail")

    # the program

    def run(self) -> None:
        """Run it. Raises GuaranteeBroken."""
        steps = (self._grow, self._grow, self._advance, self._advance, self._read, self._delete, self._delete,
                 self._retry_later, self._retry_later, self._look)  # fmt: skip
        for _ in range(_STEPS):
            self._rng.choice(steps)()
            oldest = self.min_offset if self._hanging is None else self._hanging[0].base_offset
            is_value(
                "the oldest offset on the disk", oldest, _tried("oldest_offset", lambda: self._cleaner.oldest_offset)
            )
            is_value("the looks at files that have not ended", 0, sum(file.looks for file in self.mapped))

    def _grow(self) -> None:
        limit = self._clock - 2 * _HOUR_MS
        time = self._rng.choice((limit - 1, limit, limit + 1, limit + _PAUSE_MS))
        base, self._next = self._next, self._next + _FILE_BYTES
        data = bytearray(_record(base, time, has_long_host=self._rng.random() < 0.3).ljust(_FILE_BYTES, b"\0"))
        file = _File(base, memoryview(data), time)
        kind = self._rng.choice(("", "", "", "invalid", "blank", "blank later", "closed"))
        if kind == "invalid":
            data[self._rng.choice((2, 100))] ^= 1
        if kind.startswith("blank"):
            file.blank_position = 0 if kind == "blank" else 200
        file.is_closed = kind == "closed"
        if kind in ("invalid", "blank", "closed"):
            file.time = None
        self.mapped.append(file)

    def _pass_time(self) -> None:
        """Let time pass, often to a limit of a waiting file."""
        if self._hanging is None:
            self._now += self._rng.choice((0, 1, _AGAIN_MS, _FORCED_MS))
            return
        _, since, tried_at = self._hanging
        limits = (tried_at + _AGAIN_MS, since + _FORCED_MS)
        times = [limit + less for limit in limits for less in (-1, 0, 0) if limit + less >= self._now]
        self._now = self._rng.choice((*times, self._now + 1))

    def _advance(self) -> None:
        """Let time pass, and the log be committed, flushed and dispatched to some offset."""
        self._pass_time()
        self._clock += self._rng.choice((0, 1, _PAUSE_MS))
        last = self.mapped[-1].base_offset if self.mapped else self._next
        ends = [file.end_offset for file in self.mapped[:2]]
        end = self._rng.choice([last, last + 199, last + 200, *ends, *(each - 1 for each in ends)])
        self.committed_where = max(self.committed_where, end)
        self.flushed_where = self._rng.choice((self.flushed_where, max(self.flushed_where, end)))
        self._dispatched = self._rng.choice((self._dispatched, max(self._dispatched, end)))

    def _read(self) -> None:
        """Let a reader begin or end to hold a file."""
        hanging = [] if self._hanging is None else [self._hanging[0]]
        if files := [*hanging, *self.mapped[:1]]:
            file = self._rng.choice(files)
            file.readers = 0 if file.readers and self._rng.random() < 0.5 else self._rng.choice((1, 2))

    def _may_delete(self, *, urgent: bool) -> bool:
        if len(self.mapped) < 2 or self.mapped[0].end_offset > min(self.flushed_where, self._dispatched):
            return False
        following = self.mapped[1]
        is_committed = following.base_offset + 200 <= self.committed_where
        is_old = following.time is not None and is_committed and following.time + 2 * _HOUR_MS <= self._clock
        return urgent or is_old

    def _look(self) -> None:
        urgent = self._rng.random() < 0.3
        wanted = self._hanging is not None or self._may_delete(urgent=urgent)
        found = _tried("wants_deletion", lambda: self._cleaner.wants_deletion(clock_ms=self._clock, urgent=urgent))
        is_value("whether a file may be deleted", wanted, found)

    def _delete(self) -> None:
        if self._rng.random() < 0.3:
            self._pass_time()
        urgent = self._rng.random() < 0.3
        self._failing = self._rng.choice(("", "", "", "derived", "settle", "remove", "revoke"))
        calls, answer = self._expected_deletion(urgent=urgent)
        self._is_done("delete_first", calls, answer, lambda: self._delete_first(urgent=urgent))

    def _delete_first(self, *, urgent: bool) -> object:
        return self._cleaner.delete_first(self._now, clock_ms=self._clock, urgent=urgent)

    def _retry_later(self) -> None:
        if self._rng.random() < 0.7:
            self._pass_time()
        self._failing = self._rng.choice(("", "", "remove", "revoke"))
        calls, answer = list[str](), object()
        if self._hanging is not None and self._now >= self._hanging[2] + _AGAIN_MS:
            calls, answer = self._expected_retry()
        answer = "failed" if answer == "failed" else None
        self._is_done("retry_hanging", calls, answer, lambda: self._cleaner.retry_hanging(self._now))

    def _is_done(self, what: str, calls: list[str], answer: object, do: Callable[[], object]) -> None:
        self._calls.clear()
        found = _tried(what, do)
        self._failing = ""
        is_value(f"the answer of {what} at {self._now}", answer, found)
        is_value(f"the calls of {what} at {self._now}", calls, self._calls)

    def _expected_deletion(self, *, urgent: bool) -> tuple[list[str], object]:
        if self._hanging is not None:
            return self._expected_retry()
        if not self._may_delete(urgent=urgent):
            return [], False
        first, calls = self.mapped[0], list[str]()
        if self._durable < first.end_offset:
            calls.append("derived")
            if self._failing == "derived":
                return calls, "failed"
            self._durable = self._dispatched
        calls.append("settle")
        if self._failing == "settle":
            return calls, "failed"
        self._hanging = (first, self._now, self._now)
        more, answer = self._expected_retry()
        return [*calls, "drop", *more], answer

    def _expected_retry(self) -> tuple[list[str], object]:
        assert self._hanging is not None
        file, since, _ = self._hanging
        self._hanging, calls = (file, since, self._now), list[str]()
        if file.readers:
            if self._now < since + _FORCED_MS:
                return calls, False
            calls.append(f"revoke {file.base_offset}")
            if self._failing == "revoke":
                return calls, "failed"
        calls.append(f"remove {file.base_offset}")
        if self._failing == "remove":
            return calls, "failed"
        self._hanging = None
        return calls, True


# ---- whole runs ------------------------------------------------------------------------------------------------------


@dataclass
class _Deletable:
    """Stands for the clean-up of the log.

    `left` files may be deleted. The one before the last `waits_at` waits for a reader.
    """

    calls: list[tuple[object, ...]]
    left: int = 0
    waits_at: int = -1
    is_failing: bool = False

    def delete_first(self, now_ms: int, *, clock_ms: int, urgent: bool) -> bool:
        """Delete one file, unless none is left or the next one waits."""
        self.calls.append(("delete", now_ms, clock_ms, urgent))
        if self.is_failing:
            raise OSError(5, "a call that was chosen to fail")
        if not self.left or self.left == self.waits_at:
            return False
        self.left -= 1
        return True

    def wants_deletion(self, *, clock_ms: int, urgent: bool) -> bool:
        """Return whether a file is left."""
        self.calls.append(("wants", clock_ms, urgent))
        return self.left > 0

    def retry_hanging(self, now_ms: int) -> None:
        """Note the call."""
        self.calls.append(("retry", now_ms))


def _runs(rng: random.Random) -> None:
    """Compare runs of the service: their calls, their pauses, and the time of the next one."""
    calls: list[tuple[object, ...]] = []
    deletable, clock, room = _Deletable(calls), [_T0], [Room()]
    may_clean, pauses = [True], [0]

    def look(clock_ms: int) -> Room:
        calls.append(("look", clock_ms))
        return room[0]

    def follow() -> Iterator[int]:
        calls.append(("follow",))
        for _ in range(pauses[0]):
            yield _QUEUE_PAUSE_MS

    service = CleanFiles(
        _POLICY,
        watch=SimpleNamespace(look=look),  # type: ignore[arg-type]
        commit_log=deletable,  # type: ignore[arg-type]
        queues=SimpleNamespace(follow=follow),  # type: ignore[arg-type]
        clock=lambda: clock[0],
        may_clean=lambda: may_clean[0],
        followed=lambda: calls.append(("followed",)),
    )
    now, requests = 5_000, 0
    for _ in range(_RUNS):
        clock[0] = _T0 - _T0 % (24 * _HOUR_MS) + rng.choice((0, 4, 4, 5, 6)) * _HOUR_MS + rng.choice((-1, 0, 1))
        room[0] = rng.choice((Room(), Room(), Room(wants_deletion=True), Room(wants_deletion=True, urgent=True)))
        deletable.left, pauses[0] = rng.choice((0, 1, 2, 9, 10, 11)), rng.choice((0, 0, 2))
        deletable.waits_at, deletable.is_failing = rng.choice((-1, -1, 1, 2)), rng.random() < 0.15
        may_clean[0] = rng.random() < 0.9
        if rng.random() < 0.3:
            _tried("delete_manually", service.delete_manually)
            requests = _MOST_REQUESTS
        for _ in range(rng.choice((1, 1, _MOST_REQUESTS + 1)) if requests else 1):
            requests, now = _run(service, deletable, calls, now, clock[0], room[0], may_clean[0], pauses[0], requests)


def _run(
    service: CleanFiles, deletable: _Deletable, calls: list[tuple[object, ...]], now: int, clock: int, room: Room,
    may_clean: bool, pauses: int, requests: int,
) -> tuple[int, int]:  # fmt: skip
    """Compare the steps of one run.

    Return the requests that are left, and the time after it.
    """
    if not may_clean:
        calls.clear()
        is_value("the next run of a closed store", now + _ROUND_MS, _tried("step", lambda: service.step(now)))
        is_value("the calls of a closed store", [], calls)
        return requests, now + 1
    hour = clock // _HOUR_MS % 24
    deletes = requests > 0 or room.wants_deletion or hour in (4, 5)
    expected: list[tuple[int | str, list[tuple[object, ...]]]] = []
    part: list[tuple[object, ...]] = [("look", clock)]
    left, at, fails = deletable.left, now, False
    if deletes:
        for number in range(1, _MOST_FILES + 1):
            part.append(("delete", at, clock, room.urgent))
            fails = deletable.is_failing
            if fails or not left or left == deletable.waits_at:
                break
            left -= 1
            if number == _MOST_FILES:
                break
            part.append(("wants", clock, room.urgent))
            if not left:
                break
            expected.append((at + _PAUSE_MS, part))
            at, part = at + _PAUSE_MS, []
    if fails:
        expected.append(("failed", part))
    else:
        part += [("retry", at), ("follow",)]
        for _ in range(pauses):
            expected.append((at + _QUEUE_PAUSE_MS, part))
            at, part = at + _QUEUE_PAUSE_MS, []
        expected.append((at + _ROUND_MS, [*part, ("followed",)]))
    for number, (due, wanted) in enumerate(expected):
        calls.clear()
        found = _tried("step", lambda: service.step(now))  # noqa: B023
        is_value(f"when step {number} of a clean-up is followed by another", due, found)
        is_value(f"the calls of step {number} of a clean-up", wanted, calls)
        now = found if isinstance(found, int) else now + 1
    return max(0, requests - 1), now


# ---- queues and index that follow ------------------------------------------------------------------------------------


@dataclass
class _Queue:
    """Stands for a queue: notes its calls, drops a file or not, and lets one wait or not."""

    name: int
    calls: list[tuple[object, ...]]
    is_dropped: bool = False
    waits: bool = False

    def correct_min_offset(self, offset: int) -> None:
        """Note the call."""
        self.calls.append(("correct", self.name, offset))

    def drop_expired(self, oldest: int, flushed: int) -> tuple[bool, bool]:
        """Note the call; return whether a file was dropped, and whether one waits."""
        self.calls.append(("drop", self.name, oldest, flushed))
        return self.is_dropped, self.waits


@dataclass
class _Following:
    """Holds what queues and index follow."""

    log: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(min_offset=0, flushed_where=0))
    oldest: int = 0
    is_kept_out: bool = False


def _followed(rng: random.Random) -> None:
    """Compare rounds in which the queues and the index follow the log."""
    calls: list[tuple[object, ...]] = []
    state, queues = _Following(), [_Queue(name, calls) for name in range(rng.choice((0, 1, 3)))]
    has_index = rng.random() < 0.7

    @contextmanager
    def without_dispatch() -> Iterator[None]:
        calls.append(("keep out",))
        yield
        calls.append(("let in",))

    index = SimpleNamespace(drop_expired=lambda oldest: calls.append(("index", oldest)))
    part = CleanConsumeQueues(
        SimpleNamespace(queues=SimpleNamespace(all=lambda: queues), index=index if has_index else None),  # type: ignore[arg-type]
        state.log,  # type: ignore[arg-type]
        policy=_POLICY,
        oldest_offset=lambda: state.oldest,
        without_dispatch=without_dispatch,
    )
    known = (0, 0)
    for _ in range(_RUNS):
        state.log.min_offset += rng.choice((0, 0, 400))
        state.oldest = state.log.min_offset - rng.choice((0, 0, 200))
        state.log.flushed_where = state.log.min_offset + rng.choice((0, 100))
        for queue in queues:
            queue.is_dropped, queue.waits = rng.random() < 0.4, rng.random() < 0.3
        bounds = (state.log.min_offset, state.oldest)
        expected, pauses = list[tuple[object, ...]](), 0
        if bounds != known:
            for queue in queues:
                expected += [("keep out",), ("correct", queue.name, bounds[0]),
                             ("drop", queue.name, bounds[1], state.log.flushed_where), ("let in",)]  # fmt: skip
                pauses += queue.is_dropped
            if has_index:
                expected += [("keep out",), ("index", bounds[1]), ("let in",)]
            known = known if any(queue.waits for queue in queues) else bounds
        calls.clear()
        found = _tried("follow", lambda: _pauses(part.follow()))
        is_value("the pauses of queues that follow", [_QUEUE_PAUSE_MS] * pauses, found)
        is_value("the calls of queues and index that follow", expected, calls)


def _pauses(steps: Generator[int, int, None]) -> list[int]:
    return list(steps)

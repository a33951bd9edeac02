"""Compare floors, deleted topics, and evidence without a floor with plain rules.

1. The durable floor is a sector with an offset and the size of a log file. It is loaded if its 28 bytes are right and
   the file has exactly one sector. A raise that fails changes nothing, and a lower offset is not written.
2. The list of deleted topics is a map of offsets. A change is durable when it returns. A change that failed leaves
   the list in memory as it was, and `write_if_doubtful` makes the file agree with it.
3. Units of a deleted topic below its offset are left out of a dispatch; all others stay.
4. The derived floor gives back what was written, if the settings are the same and no byte has changed. It is durable
   when the write returns. Checksums hold for the files that it describes, and for files with more after what it
   describes.
5. Without a durable floor, the last possible unit of each queue is evidence, if a record may have its place. The log
   was flushed up to three seconds before the time of the checkpoint, unless that is in the future or the store has a
   pool.
6. A directory is made with those above it, and all of their names are durable then, also the name of one that an
   earlier opener made and did not sync. A directory above that cannot be synced was not made by a store. What is no
   directory is refused, and nothing is made.
7. The checkpoint has three times and a whole page. A short or missing one has zeros. A negative time is damage and
   reads as 0.
"""

import errno
import random
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived_floor import DerivedFloor, DerivedProof
from tornpage.impl.errors import BadDirectory
from tornpage.impl.index.index_layout import IndexFileProof, IndexHeader, IndexLayout
from tornpage.impl.io.checkpoint import Checkpoint
from tornpage.impl.io.store_lock import make_directories
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.impl.message.dispatching import Dispatched, ExtDraft, IndexPuts, QueueRun
from tornpage.impl.queue.consume_queues import QueueFileProof
from tornpage.impl.recovery.derived_proof import checksums_hold
from tornpage.impl.recovery.evidence import flushed_time, last_units
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, are_files, carried_out, crashed, tried

__all__ = ["check"]

_FILE_BYTES = 4096
_UNIT = struct.Struct(">qiq")
_SETTINGS: dict[str, object] = {"queue": 100, "ext": True}
_QUEUE_IDS = ("0", "7", "-3", "07", "x", "-0", "12345678901")
"""Names of directories; the first three are those of queues."""
_FLOOR_PATH, _DELETED_PATH, _DERIVED_PATH = "/part/floor", "/part/deleted", "/part/derived"


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    _durable_floor(rng)
    _deleted_topics(rng)
    _without_deleted(rng)
    _derived_floor(rng)
    _checksums(rng)
    _last_units(rng)
    _flushed_times()
    _directories(rng)
    _checkpoint(rng)


# ---- the durable floor -----------------------------------------------------------------------------------------------


def _floor_bytes(offset: int) -> bytes:
    head = b"TPFLOOR1" + struct.pack(">qq", offset, _FILE_BYTES)
    return (head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0")


def _loaded_floor(data: bytes | None) -> object:
    files = {} if data is None else {_FLOOR_PATH: data}
    disk = PartDisk(Image(frozenset(("/", "/part")), files))
    found = tried("load", DurableFloor(disk, _FLOOR_PATH, file_bytes=1).load)
    is_value("the files that a loaded floor still holds", (0, 0), disk.held)
    return found


def _durable_floor(rng: random.Random) -> None:
    offset = rng.choice((0, 1, _FILE_BYTES, (1 << 62) + 5))
    data = _floor_bytes(offset)
    is_value("a durable floor", Floor(offset, _FILE_BYTES), _loaded_floor(data))
    is_value("a floor with other bytes after it", Floor(offset, _FILE_BYTES), _loaded_floor(data[:-1] + b"x"))
    wrong = bytearray(data)
    wrong[rng.randrange(28)] ^= 1 << rng.randrange(8)
    for what, other in (("no", None), ("an empty", b""), ("a short", data[:-1]), ("a long", data + b"\0"),
                        ("a changed", bytes(wrong)), ("a negative", _floor_bytes(-1))):  # fmt: skip
        is_value(f"{what} durable floor", None, _loaded_floor(other))
    before = rng.choice((None, data, data + b"\0", data[:9]))
    disk = PartDisk(Image(frozenset(("/", "/part")), {} if before is None else {_FLOOR_PATH: before}))
    begun: list[DurableFloor] = []

    def start() -> None:
        begun.append(DurableFloor(disk, _FLOOR_PATH, file_bytes=_FILE_BYTES))
        begun[-1].start(offset)

    carried_out(disk, rng, "start", start)
    floor, wanted = begun[-1], offset
    is_value("the durable content of a started floor", data.hex(), disk.durable.files.get(_FLOOR_PATH, b"").hex())
    for _ in range(6):
        risen = offset + rng.choice((-1, 0, 1, 5, 100))
        disk.failing_in = int(rng.random() < 0.3)
        if disk.failing_in == 0 or risen <= wanted:
            wanted = max(wanted, risen)
        tried("raise_to", lambda risen=risen: floor.raise_to(risen))  # type: ignore[misc]
        disk.failing_in = 0
        is_value("a raised floor", _floor_bytes(wanted).hex(), disk.content.get(_FLOOR_PATH, b"").hex())
    tried("sync", floor.sync)
    is_value("a synced floor", _floor_bytes(wanted).hex(), disk.durable.files.get(_FLOOR_PATH, b"").hex())
    for each in begun:
        tried("close", each.close)
        tried("close", each.close)
    is_value("the files that a closed floor still holds", (0, 0), disk.held)


# ---- deleted topics --------------------------------------------------------------------------------------------------


def _deleted_bytes(offsets: Mapping[bytes, int]) -> bytes:
    entries = (struct.pack(">qh", offset, len(topic)) + topic for topic, offset in sorted(offsets.items()))
    body = b"TPDELTP1" + struct.pack(">i", len(offsets)) + b"".join(entries)
    return body + struct.pack(">I", zlib.crc32(body))


def _loaded_deleted(data: bytes | None) -> tuple[dict[bytes, int], list[str]]:
    files = {} if data is None else {_DELETED_PATH: data}
    disk = PartDisk(Image(frozenset(("/", "/part")), files))
    found = DeletedTopics(disk, _DELETED_PATH)
    tried("load", found.load)
    is_value("the files that a loaded list still holds", (0, 0), disk.held)
    return dict(found.offsets), [finding.code for finding in found.findings]


def _deleted_topics(rng: random.Random) -> None:
    disk, wanted = PartDisk(), dict[bytes, int]()
    deleted = DeletedTopics(disk, _DELETED_PATH)
    tried("load", deleted.load)
    for _ in range(24):
        kind, at = rng.choice(("add", "add", "settle", "forget")), rng.choice((0, 1, 99, 100, 101, 1 << 40))
        topics = rng.sample((b"A", b"B", "\u00e9".encode(), b"x" * 255), rng.randrange(1, 3))
        end = rng.choice((99, 100, 101, 1 << 41))
        disk.failing_in = rng.choice((0, 0, 1, 2, 3, 4, 5, 6))
        before = dict(wanted)
        try:
            if kind == "add":
                wanted.update(dict.fromkeys(topics, at))
                tried("add", lambda topics=topics, at=at: deleted.add(topics, at))  # type: ignore[misc]
            elif kind == "settle":
                wanted = {topic: min(offset, end) for topic, offset in wanted.items() if offset > at}
                tried("settle", lambda at=at, end=end: deleted.settle(log_min=at, log_max=end))  # type: ignore[misc]
            else:
                wanted = {topic: offset for topic, offset in wanted.items() if offset > at}
                tried("forget_expired", lambda at=at: deleted.forget_expired(at))  # type: ignore[misc]
        except OSError:
            wanted = before
            disk.failing_in = 0
            carried_out(disk, rng, "write_if_doubtful", deleted.write_if_doubtful)
        disk.failing_in = 0
        is_value("the deleted topics", wanted, dict(deleted.offsets))
        for files in (disk.content, disk.durable.files):
            data = files.get(_DELETED_PATH)
            if data is not None or wanted:
                is_value("the list of deleted topics on disk", _deleted_bytes(wanted).hex(), (data or b"").hex())
        names = [f"consumequeue/{name}/0/{0:020d}" for name in ("A", "B", "C")]
        is_answered("whether a deleted topic has a file", any(name.encode() in wanted for name in ("A", "B", "C")),
                    deleted.any_deleted, names)  # fmt: skip
        is_answered("whether a deleted topic has no file", False, deleted.any_deleted, [])
    is_value("the files that a list still holds", (0, 0), disk.held)
    data = _deleted_bytes(wanted)
    is_value("a list of deleted topics", (wanted, []), _loaded_deleted(data))
    is_value("no list of deleted topics", ({}, []), _loaded_deleted(None))
    is_value("an empty list of deleted topics", ({}, []), _loaded_deleted(_deleted_bytes({})))
    wrong = bytearray(data)
    wrong[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    other = b"TPDELTP2" + struct.pack(">i", 0)
    other += struct.pack(">I", zlib.crc32(other))
    for each in (bytes(wrong), data[:-1], data[:15], data[:4], b"", other):
        is_value("a changed list of deleted topics", ({}, ["deleted_topics_unreadable"]), _loaded_deleted(each))


def _without_deleted(rng: random.Random) -> None:
    """Dispatch runs of a deleted topic and of another one."""
    for below in (0, 1, 100, 101, 200, 300, 301, 10_000):
        disk = PartDisk()
        deleted = DeletedTopics(disk, _DELETED_PATH)
        if below:
            deleted.add([b"A"], below)
        runs = []
        for topic, offsets in ((b"A", (100, 200, 300)), (b"B", (50,)), (b"A", (400,))):
            units = b"".join(_UNIT.pack(offset, 40, 7) for offset in offsets)
            ext = [ExtDraft(offset, 1, b"") for offset in offsets] if rng.random() < 0.5 else []
            runs.append(QueueRun((topic, 3), offsets[0], units, offsets[-1] + 40, ext))
        expected = []
        for run in runs:
            gone = sum(offset < below for offset, _, _ in _UNIT.iter_unpack(run.units)) if run.key[0] == b"A" else 0
            if gone * 20 < len(run.units):
                units, number = run.units[20 * gone :], run.queue_offset + gone
                expected.append(run._replace(units=units, queue_offset=number, ext=run.ext[gone:]))
        given = Dispatched(900, 5, tuple(runs), IndexPuts([1], [2], [3]), 77, None)
        wanted = given._replace(runs=tuple(expected))
        is_answered(f"a dispatch with topics deleted below {below}", wanted, deleted.without_deleted, given)


# ---- the derived floor -----------------------------------------------------------------------------------------------


def _proof(rng: random.Random) -> DerivedProof:
    header = IndexHeader(1, 2, 3, rng.randrange(1 << 40), 1, 4)
    return DerivedProof(
        offset=rng.randrange(1 << 40),
        store_timestamp=rng.randrange(1 << 41),
        blanks=((0, 4000), (4096, 100))[: rng.randrange(3)],
        named_queues=(("25", 0), ("ff", -1))[: rng.randrange(3)],
        queue_files=(QueueFileProof("consumequeue/A/0/0", 40, rng.randrange(1 << 32)),)[: rng.randrange(2)],
        index_files=(IndexFileProof("index/2", header, (5, 6), 9),)[: rng.randrange(2)],
    )


def _derived_floor(rng: random.Random) -> None:
    disk = PartDisk(Image(frozenset(("/", "/part")), {f"{_DERIVED_PATH}.new": b"left"} if rng.random() < 0.5 else {}))
    floor = DerivedFloor(disk, _DERIVED_PATH, settings=dict(_SETTINGS))
    is_answered("no derived floor", None, floor.load)
    is_answered("forgetting no derived floor", None, floor.forget)
    for _ in range(2):
        proof = _proof(rng)
        carried_out(disk, rng, "write", lambda proof=proof: floor.write(proof))  # type: ignore[misc]
        is_answered("a derived floor", proof, floor.load)
        is_value("the files of a derived floor", [_DERIVED_PATH], disk.paths())
        are_files("a derived floor", disk.content, disk.durable.files)
        data = disk.content[_DERIVED_PATH]
        wrong = bytearray(data)
        wrong[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        for each in (bytes(wrong), data[:-1], data + b" ", b""):
            other = crashed(disk.durable, {_DERIVED_PATH: each})
            found = DerivedFloor(other, _DERIVED_PATH, settings=dict(_SETTINGS))
            is_answered("a changed derived floor", None, found.load)
        others = DerivedFloor(disk, _DERIVED_PATH, settings={**_SETTINGS, "queue": 101})
        is_answered("a derived floor of other settings", None, others.load)
    is_value("the files that a floor still holds", (0, 0), disk.held)
    tried("forget", floor.forget)
    is_answered("a forgotten derived floor", None, floor.load)


_OLDER, _NEWER = (f"/part/i/2024010100000000{at}" for at in (0, 1))
"""The two files of the index."""


def _checksums(rng: random.Random) -> None:
    """Compare the files of a queue and of an index with their checksums."""
    layout = IndexLayout(2, 4)
    files, proof = _proved_files(rng)
    directories = frozenset(("/", "/part", "/part/q", "/part/i"))
    for what, changes, holds in _changes_of(files, proof):
        disk = crashed(Image(directories, files), changes)
        is_answered(
            f"whether checksums hold after {what}", holds, checksums_hold, disk, "/part", proof, queue_file_bytes=100,
            layout=layout,
        )  # fmt: skip
        is_value("the files that a comparison still holds", (0, 0), disk.held)
    disk = crashed(Image(directories, files), {_OLDER: None})
    is_answered("whether checksums hold without an index", True, checksums_hold, disk, "/part", proof,
                queue_file_bytes=100, layout=None)  # fmt: skip
    nothing = replace(proof, queue_files=(), index_files=())
    is_answered("whether no checksums hold", True, checksums_hold, PartDisk(), "/part", nothing, queue_file_bytes=100,
                layout=layout)  # fmt: skip


def _proved_files(rng: random.Random) -> tuple[dict[str, bytes], DerivedProof]:
    """Return two files of a queue and two of an index by path, and their checksums."""
    queue = [rng.randbytes(100), rng.randbytes(60).ljust(100, b"\0")]
    entries = rng.randbytes(20 * 3)
    files: dict[str, bytes] = {f"/part/q/{100 * at:020d}": data for at, data in enumerate(queue)}
    proofs = [
        QueueFileProof(f"q/{0:020d}", 100, zlib.crc32(queue[0])),
        QueueFileProof(f"q/{100:020d}", 60, zlib.crc32(queue[1][:60])),
    ]
    heads, indexes = [IndexHeader(5, 6, 7, 8, 1, 4), IndexHeader(6, 9, 8, 9, 1, rng.choice((1, 2, 3)))], []
    for number, header in enumerate(heads):
        count = header.next_number - 1
        name = f"2024010100000000{number}"
        stored = (
            struct.pack(">qqqqii", *header[:5], header.next_number if count else 0) + bytes(8) + bytes(20) + entries
        )
        files[f"/part/i/{name}"] = stored
        indexes.append(IndexFileProof(f"i/{name}", header, (5, 9), zlib.crc32(entries[: 20 * count])))
    return files, DerivedProof(1, 1, (), (), tuple(proofs), tuple(indexes))


def _changes_of(files: Mapping[str, bytes], proof: DerivedProof) -> list[tuple[str, dict[str, bytes | None], bool]]:
    """Return changes of the files.

    Each has its description, the new files, and whether the checksums hold after it.
    """
    first, second = (f"/part/q/{at:020d}" for at in (0, 100))
    last = proof.index_files[1].header.next_number
    later = struct.pack(">qqqqii", 6, 11, 8, 12, 2, 4)
    stranger = struct.pack(">qqqqii", 7, 11, 8, 12, 2, 4)
    lower = struct.pack(">qqqqii", 6, 11, 8, 12, 2, last - 1)

    def with_head(path: str, head: bytes) -> dict[str, bytes | None]:
        return {path: head + files[path][40:]}

    return [
        ("no change", {}, True),
        ("units after the proved ones", {second: files[second][:60] + b"\1" * 40}, True),
        ("a queue file after the proved ones", {f"/part/q/{200:020d}": bytes(100)}, True),
        ("a queue file after a gap", {f"/part/q/{300:020d}": bytes(100)}, False),
        ("a file of another size after a gap", {f"/part/q/{300:020d}": bytes(99)}, True),
        ("a file of another name in a queue", {"/part/q/x": bytes(100)}, True),
        ("a lost queue file", {first: None}, False),
        ("a lost last queue file", {second: None}, False),
        ("a longer queue file", {first: files[first] + b"\0"}, False),
        ("a changed first byte", {first: bytes((files[first][0] ^ 1,)) + files[first][1:]}, False),
        (
            "a changed last byte",
            {second: files[second][:59] + bytes((files[second][59] ^ 1,)) + files[second][60:]},
            False,
        ),
        ("an index file after the proved ones", {"/part/i/20240101000000002": b""}, True),
        ("an index file before the proved ones", {"/part/i/20230101000000002": b""}, False),
        ("an index file between them", {"/part/i/20240101000000000x": b""}, True),
        ("a lost index file", {_OLDER: None}, False),
        ("a short index file", {_OLDER: files[_OLDER][:-1]}, False),
        ("a changed slot", {_OLDER: files[_OLDER][:41] + b"\1" + files[_OLDER][42:]}, True),
        ("a changed entry", {_OLDER: files[_OLDER][:69] + bytes((files[_OLDER][69] ^ 1,)) + files[_OLDER][70:]}, False),
        ("another header of an older file", with_head(_OLDER, later), False),
        ("a later header of the last file", with_head(_NEWER, later), True),
        ("a lower header of the last file", with_head(_NEWER, lower), False),
        ("a later header with another begin", with_head(_NEWER, stranger), last == 1),
    ]


# ---- evidence without a floor ----------------------------------------------------------------------------------------


def _last_units(rng: random.Random) -> None:
    """Compare the last possible unit of queues with files of four units."""
    log_bytes, prefill = 1000, (0, 0x7FFFFFFF, 0)
    fits = [(0, 92, 1), (1000, 992, 2), (900, 92, 2), (1500, 200, -3)]  # 92 bytes: a topic of one letter, no body
    no_unit = [(0, 91, 1), (1000, 993, 2), (901, 92, 2), (-1, 100, 1), (3, 0, 1), (3, -5, 1), prefill, (0, 0, 0)]
    expected, files = [], dict[str, bytes]()
    for queue_id in _QUEUE_IDS:
        directory = f"/part/consumequeue/A/{queue_id}"
        units = [rng.choice((*fits, *no_unit, *no_unit)) for _ in range(12)]
        end = rng.randrange(13)
        units[end:] = [(0, 0, 0)] * (12 - end)
        for at in range(3):
            data = b"".join(_UNIT.pack(*unit) for unit in units[4 * at : 4 * at + 4])
            files[f"{directory}/{80 * (at + 1):020d}"] = data
        files[f"{directory}/note"] = _UNIT.pack(*fits[0]) * 4
        files[f"{directory}/{400:020d}"] = _UNIT.pack(*fits[0])  # of another size
        files[f"{directory}/{400:021d}"] = _UNIT.pack(*fits[0]) * 4
        found = [at for at, unit in enumerate(units) if unit in fits]
        if found and queue_id in _QUEUE_IDS[:3]:
            path = f"{directory}/{80 * (found[-1] // 4 + 1):020d}"
            expected.append(((b"A", int(queue_id)), path, 4 + found[-1], units[found[-1]]))
    files["/part/consumequeue/stray"] = b""
    directories = ("/", "/part", "/part/consumequeue", "/part/consumequeue/A")
    disk = PartDisk(Image(frozenset((*directories, *(f"{directories[-1]}/{each}" for each in _QUEUE_IDS))), files))
    answer = tried("last_units", lambda: last_units(disk, "/part", queue_file_bytes=80, log_file_bytes=log_bytes))
    found_units = sorted((each.key, each.path, each.number, tuple(each.unit)) for each in answer)
    is_value("the last units of queues", sorted(expected), found_units)
    is_value("the files that a look at queues still holds", (0, 0), disk.held)
    is_answered("the last units without queues", [], last_units, PartDisk(), "/part", queue_file_bytes=80,
                log_file_bytes=log_bytes)  # fmt: skip


def _flushed_times() -> None:
    for time, has_pool, now_ms, expected in (
        (10_000, False, 10_000, 7_000), (10_001, False, 10_000, 0), (10_000, True, 20_000, 0), (2_999, False, 5_000, 0),
        (3_001, False, 5_000, 1), (0, False, 5_000, 0),
    ):  # fmt: skip
        checkpoint = SimpleNamespace(physic_msg_timestamp=time)
        what = f"the flushed time of a checkpoint of {time} ms at {now_ms} ms"
        is_answered(what, expected, flushed_time, checkpoint, has_pool=has_pool, now_ms=now_ms)


# ---- directories, and the checkpoint ---------------------------------------------------------------------------------


class _Guarded(PartDisk):
    """A disk whose upper directories may not be synced by the store."""

    forbidden: frozenset[str] = frozenset()

    def sync_directory(self, path: str) -> None:
        """Sync a directory. Raises PermissionError for one that may not be read."""
        if path in self.forbidden:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        super().sync_directory(path)


def _directories(rng: random.Random) -> None:
    depth = rng.randrange(1, 5)
    paths = ["/part"]
    for name in "wxyz"[:depth]:
        paths.append(f"{paths[-1]}/{name}")
    there = rng.randrange(1, len(paths) + 1)
    disk = _Guarded(Image(frozenset(("/", *paths[:there])), {}))
    if rng.random() < 0.4 and there < len(paths):
        disk.make_directory(paths[there])  # by an opener that was killed before it synced the name
        there += 1
    if rng.random() < 0.3 and there < len(paths):
        disk.close(disk.create(paths[there]))
        names = disk.content
        try:
            tried("make_directories", lambda: make_directories(disk, paths[-1]))
        except GuaranteeBroken as broken:
            if BadDirectory.__name__ not in broken.sentence:
                raise
        else:
            raise GuaranteeBroken(8, f"make_directories of {paths[-1]} accepts the file {paths[there]}")
        is_value("the files beside a refused directory", names, disk.content)
        is_value("the names beside a refused directory", [], disk.list_directory(paths[there - 1])[1:])
        return
    if rng.random() < 0.3:
        disk.forbidden = frozenset(paths[: there - 1])
    carried_out(disk, rng, "make_directories", lambda: make_directories(disk, paths[-1]))
    if not disk.forbidden:
        is_value(f"the durable directories of {paths[-1]}", {"/", *paths}, set(disk.durable.directories))
    is_value(f"the directories of {paths[-1]}", dict.fromkeys(paths, "directory"),
             {path: found.kind for path in paths if (found := disk.stat(path)) is not None})  # fmt: skip
    is_answered("make_directories of the root", None, make_directories, disk, "/")


def _checkpoint(rng: random.Random) -> None:
    path, times = "/part/checkpoint", [rng.choice((-1, 0, 1, 1 << 40)) for _ in range(3)]
    data = struct.pack(">qqq", *times).ljust(4096, b"\0")
    before = rng.choice((None, b"", data[:23], data[:24], data))
    disk = PartDisk(Image(frozenset(("/", "/part")), {} if before is None else {path: before}))
    keeps_index = rng.random() < 0.5
    found = Checkpoint(disk, path, keeps_index=keeps_index)
    is_value("a checkpoint before it is loaded", (0, 0, 0, False), _times_of(found))
    carried_out(disk, rng, "load", found.load)
    is_known = before is not None and len(before) >= 24
    log, queues, index = (max(0, time) for time in times) if is_known else (0, 0, 0)
    is_value("a loaded checkpoint", (log, queues, index, is_known and min(times) < 0), _times_of(found))
    is_value("the files that a loaded checkpoint still holds", (0, 0), disk.held)
    begun: list[Checkpoint] = []

    def start() -> None:
        begun.append(Checkpoint(disk, path, keeps_index=keeps_index))
        begun[-1].load()
        begun[-1].start()

    carried_out(disk, rng, "start", start)
    disk.sync_directory("/part")  # a lost checkpoint is made again, so that its name needs no sync of its own
    found = begun[-1]
    for _ in range(4):
        found.physic_msg_timestamp = log = rng.choice((0, 5, 1 << 41))
        queues = rng.choice((0, 3, 1 << 39, 1 << 42))
        index = queues if keeps_index else min(index, queues)
        tried("note_dispatched", lambda: found.note_dispatched(queues))  # noqa: B023
        carried_out(disk, rng, "flush", found.flush)
        wanted = struct.pack(">qqq", log, queues, index).ljust(4096, b"\0")
        are_files("a flushed checkpoint", {path: wanted}, disk.content)
        are_files("a checkpoint after a power loss", {path: wanted}, disk.durable.files)
    for each in begun:
        tried("close", each.close)
        tried("close", each.close)
    is_value("the files that a closed checkpoint still holds", (0, 0), disk.held)


def _times_of(found: Checkpoint) -> tuple[int, int, int, bool]:
    return found.physic_msg_timestamp, found.logics_msg_timestamp, found.index_msg_timestamp, found.is_damaged

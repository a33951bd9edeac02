"""Define sample layouts for recovery: each an image, and the mode in which it must open.

Stores are filled on recorded disks by the operations of a lockstep run. Then the process dies, the power fails, or
something is corrupted that a disk can lose. A layout depends on nothing but its code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from tornpage.impl.parts import Parts
from tornpage.model.operations import Choice, Flush, Operation, Put, Step
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image, parent_of
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.judge.evidence import DERIVED, INDEX, QUEUES
from tornpage.properties.judge.image import AcknowledgedRecord, Truth
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT, log_files

__all__ = ["SAMPLE_LAYOUTS", "SampleLayout"]

_SETTINGS = Settings(file_bytes=4096, queue_units=8, index_entries=8)
_YEAR_MS = 365 * 86_400_000
_FIRST = f"{LOG_DIRECTORY}/{0:020d}"
_ABORT, _CHECKPOINT = f"{ROOT}/abort", f"{ROOT}/checkpoint"
_FLOORS = (f"{ROOT}/config/durableFloor", f"{ROOT}/config/derivedFloor")


def _put(body_bytes: int = 500, queue_id: int = 0, key: str = "k1", more: str = "") -> Put:
    return Put(body_bytes=body_bytes, queue_id=queue_id, properties=f"KEYS\x01{key}\x02TAGS\x01T{more}")


_DISPATCHED: tuple[Operation, ...] = (Step(service="reput"), Step(service="flush-queues"))
_SOME: tuple[Operation, ...] = (
    _put(), _put(700, 1, "k2"), Flush(), *_DISPATCHED, _put(600, 0, "Aa"), _put(300, 1, "BB"),
)  # fmt: skip
_MORE: tuple[Operation, ...] = (
    *_SOME, _put(1500), *_DISPATCHED, Flush(), _put(1200, 1), _put(900, 2, "Aa"), _put(2500), _put(100),
)  # fmt: skip
"""The last messages are not dispatched yet."""
_LIGHT = _put(400, more="\x02INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b")


@dataclass(frozen=True, slots=True)
class Made:
    """Hold an image and its acknowledged records; those that must survive are called flushed."""

    image: Image
    truth: Truth


Maker = Callable[[DirtyTracker], Made]
Change = Callable[[dict[str, bytes]], None]
FindOffset = Callable[[Mapping[str, bytes]], int]


@dataclass(frozen=True, slots=True)
class SampleLayout:
    """Describe a layout: `make` makes the image, `mode` is how a correct store opens it.

    `settings` are those with which it was written.
    """

    name: str
    make: Maker
    mode: Literal["read-write", "read-only"] = "read-write"
    settings: Settings = _SETTINGS


def _left(
    operations: tuple[Operation, ...],
    settings: Settings = _SETTINGS,
    *,
    disk: Disk = "kill",
    survives: Literal["nothing", "all", "torn"] = "all",
) -> Maker:
    """Return the maker of the image of a store that was killed or lost power.

    After a power loss all, nothing, or half pages survive.
    """

    def make(tracker: DirtyTracker) -> Made:
        trial = Lockstep(settings, parts=Parts(), tracker=tracker)
        for operation in operations:
            trial.run(operation)
        files = trial.files
        state = disk_state(files.base, files.journal, len(files.journal), disk=disk)
        choices: dict[str, Choice] = {}
        for fact in in_flight_writes(state) if survives != "nothing" else ():
            half = survives == "torn" and fact.kind == "page" and "commitlog" in fact.name
            choices[fact.name] = (0, fact.alternatives - 1, 0x0F) if half else fact.alternatives - 1
        due = trial.log.committed_offset if disk == "kill" else trial.log.flushed_offset
        return Made(compose(state, choices), _told(trial, due))

    return make


def _told(trial: Lockstep, due: int) -> Truth:
    records = {
        record.offset: AcknowledgedRecord(
            record.offset,
            record.size_bytes,
            sha256(trial.memory.ledger.stored(record)).hexdigest(),
            record.end_offset <= due,
        )
        for record in trial.log.records
        if record.end_offset <= trial.log.committed_offset
    }
    return Truth(records, power_loss=True, has_copies=False)


_KILLED = _left(_SOME)
_ROLLED = _left(_MORE)


def _changed(make: Maker, change: Change, *, lost_from: FindOffset | None = None) -> Maker:
    """Return a maker that changes the files of an image.

    Records past `lost_from` need not survive any more.
    """

    def made(tracker: DirtyTracker) -> Made:
        before = make(tracker)
        files = dict(before.image.files)
        change(files)
        end = 1 << 62 if lost_from is None else lost_from(before.image.files)
        told = {
            offset: replace(record, flushed=record.flushed and offset < end)
            for offset, record in before.truth.records.items()
        }
        directories = before.image.directories | {parent_of(path) for path in files}
        return Made(Image(directories, files), replace(before.truth, records=told))

    return made


def _without(*prefixes: str) -> Change:
    def change(files: dict[str, bytes]) -> None:
        for path in [path for path in files if path.startswith(prefixes)]:
            del files[path]

    return change


def _overwritten(path: str, data: bytes, at: int = 0) -> Change:
    def change(files: dict[str, bytes]) -> None:
        content = bytearray(files[path])
        content[at : at + len(data)] = data
        files[path] = bytes(content)

    return change


def _floor_of(files: Mapping[str, bytes]) -> int:
    return int.from_bytes(files[_FLOORS[0]][8:16])


def _stale_tail(files: dict[str, bytes]) -> None:
    """Lose the first record after the durable floor but keep later ones.

    Pages reach the disk in any order.
    """
    _overwritten(_FIRST, bytes(64), at=_floor_of(files))(files)


def _empty_newest(files: dict[str, bytes]) -> None:
    newest = log_files(files)[-1]
    files[f"{LOG_DIRECTORY}/{int(newest[-20:]) + _SETTINGS.file_bytes:020d}"] = b""


def _lost_queue_file(files: dict[str, bytes]) -> None:
    del files[min(path for path in files if path.startswith(f"{ROOT}/{QUEUES}"))]


def _third_record(files: Mapping[str, bytes]) -> int:
    first = int.from_bytes(files[_FIRST][:4])
    return first + int.from_bytes(files[_FIRST][first : first + 4])


def _rocketmq_with_gap(files: dict[str, bytes]) -> None:
    """Remove the floor and lose a page of the first file, with later files present."""
    _overwritten(_FIRST, bytes(64), at=_third_record(files))(files)
    _without(*_FLOORS)(files)


def _of_rocketmq(files: dict[str, bytes]) -> None:
    """Remove the floor, with valid records after the tear."""
    _stale_tail(files)
    _without(*_FLOORS)(files)


def _quarantined_before(files: dict[str, bytes]) -> None:
    _of_rocketmq(files)
    files[f"{ROOT}/quarantine/{0:020d}.0"] = files[_FIRST][:512]


def _pooled() -> SampleLayout:
    settings = Settings(file_bytes=4096, queue_units=8, index_entries=8, pool_buffers=2)
    return SampleLayout("unclean, with a pool", _left(_MORE, settings), settings=settings)


def _spread() -> SampleLayout:
    settings = Settings(file_bytes=4096, queue_units=8, index_entries=8, log_paths=2)
    return SampleLayout("several log directories", _left(_MORE, settings), settings=settings)


def _extended() -> SampleLayout:
    settings = Settings(file_bytes=4096, queue_units=8, index_entries=8, queue_ext=True)
    return SampleLayout("with an extension", _left(_MORE, settings), settings=settings)


def _lights() -> SampleLayout:
    settings = Settings(file_bytes=4096, queue_units=8, index_entries=8, multi_dispatch=True, light_queues=True)
    operations: tuple[Operation, ...] = (_LIGHT, _LIGHT, Flush(), *_DISPATCHED, _LIGHT, _put())
    return SampleLayout("light queues", _changed(_left(operations, settings), _lost_queue_file), settings=settings)


SAMPLE_LAYOUTS: tuple[SampleLayout, ...] = (
    SampleLayout("empty", _left(())),
    SampleLayout("one file", _KILLED),
    SampleLayout("rolled over", _ROLLED),
    SampleLayout("torn tail", _left(_MORE, disk="posix-strict", survives="torn")),
    SampleLayout("stale tail", _changed(_KILLED, _stale_tail, lost_from=_floor_of)),
    SampleLayout("durable floor, the rest lost", _left(_MORE, disk="posix-strict", survives="nothing")),
    SampleLayout("without a floor", _changed(_KILLED, _of_rocketmq, lost_from=_floor_of)),
    SampleLayout("files after a cut", _changed(_ROLLED, _rocketmq_with_gap, lost_from=_third_record)),
    SampleLayout("quarantined before", _changed(_KILLED, _quarantined_before, lost_from=_floor_of)),
    SampleLayout("empty newest file", _changed(_ROLLED, _empty_newest)),
    SampleLayout("lost queue file", _changed(_ROLLED, _lost_queue_file)),
    SampleLayout("lost index", _changed(_ROLLED, _without(f"{ROOT}/{INDEX}"))),
    SampleLayout("lost queues and index", _changed(_ROLLED, _without(*(f"{ROOT}/{each}" for each in DERIVED)))),
    _pooled(),
    _spread(),
    _extended(),
    _lights(),
    SampleLayout("missing checkpoint", _changed(_ROLLED, _without(_CHECKPOINT))),
    SampleLayout("hostile checkpoint", _changed(_ROLLED, _overwritten(_CHECKPOINT, 3 * (50 * _YEAR_MS).to_bytes(8)))),
    SampleLayout("torn floor", _changed(_ROLLED, _overwritten(_FLOORS[0], b"\xff" * 8, at=8))),
    SampleLayout("lost abort marker", _changed(_changed(_KILLED, _without(_ABORT)), _lost_queue_file)),
    SampleLayout("damaged", _changed(_ROLLED, _overwritten(_FIRST, b"\xff", at=100)), mode="read-only"),
)

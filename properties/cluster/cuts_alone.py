"""Judge cuts of the log of a closed store alone, once in a process.

Calls of the disk fail, each one in turn.

| contract | what is judged |
|---|---|
| 3 | after a cut, also after a power loss, the log has its bytes below the offset, and zeros or no file after them |
| 4, 5 | queues and index of a log of which nothing stays have no file, also after a power loss |
| 7 | before a byte of the log changes, a floor at the cut or below it and the abort marker are durable |
| 8 | a cut that failed may be repeated; it keeps no file open |
| 14 | the log of an open store is not cut |

The expected files follow from the offset alone. Source: the head of impl/replication/cutting.py, docs/format.md.
"""

from collections.abc import Mapping

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import StoreInUse
from tornpage.impl.replication.cutting import cut_log
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.durable_floor import parse_durable_floor
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried

__all__ = ["cuts_hold"]

_FILE_BYTES = 256
_ROOT = "/part"
_FLOOR, _ABORT, _LOCK = f"{_ROOT}/config/durableFloor", f"{_ROOT}/abort", f"{_ROOT}/lock"
_DERIVED = ("consumequeue/T/0/00000000000000000000", "index/20260101000000000", "consumequeue_ext/T/0/0")
_CALLS_MAX = 40
_CONFIG = MessageStoreConfig(mapped_file_size_commit_log=_FILE_BYTES)


def cuts_hold() -> None:
    """Judge cuts at each limit of logs with no, one and three files. Raises GuaranteeBroken."""
    for begin, count in ((0, 0), (0, 1), (0, 3), (512, 2)):
        end = begin + count * _FILE_BYTES
        offsets = {0, 1, begin, begin + 1, begin + 255, begin + 256, begin + 257, end - 1, end, end + 1}
        for offset in sorted(each for each in offsets if each >= 0):
            for failing_in in range(_CALLS_MAX):
                if not _cut_holds(begin, count, offset, failing_in):
                    break
    _open_store_is_not_cut()


def _image(begin: int, count: int) -> Image:
    files = {f"{_ROOT}/{path}": b"d" * 20 for path in _DERIVED}
    for number in range(count):
        base = begin + number * _FILE_BYTES
        files[f"{_ROOT}/commitlog/{base:020d}"] = bytes(1 + (base + at) % 200 for at in range(_FILE_BYTES))
    files[f"{_ROOT}/commitlog/notes"] = b"kept"
    directories = {"/", _ROOT, f"{_ROOT}/commitlog", f"{_ROOT}/config"}
    for path in files:
        parts = path.split("/")
        directories |= {"/".join(parts[:depth]) for depth in range(2, len(parts))}
    return Image(frozenset(directories), files)


def _wanted(files: Mapping[str, bytes], begin: int, count: int, offset: int) -> dict[str, bytes]:
    """Return the files of log, queues and index after a cut."""
    kept: dict[str, bytes] = {}
    is_emptied = count > 0 and offset <= begin
    for path, data in files.items():
        name = path.rpartition("/")[2]
        if "/commitlog/" not in path:
            if not is_emptied:
                kept[path] = data
        elif not name.isdigit():
            kept[path] = data
        elif not is_emptied and int(name) < offset:
            kept[path] = data[: offset - int(name)].ljust(_FILE_BYTES, b"\0")
    return kept


def _of_store(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path not in (_FLOOR, _ABORT, _LOCK)}


def _floor_of(files: Mapping[str, bytes]) -> int | None:
    found = parse_durable_floor(files[_FLOOR]) if _FLOOR in files else None
    return None if found is None else found.offset


def _cut_holds(begin: int, count: int, offset: int, failing_in: int) -> bool:
    """Judge one cut.

    Return whether its chosen call has failed, or none was chosen to fail.
    """
    image = _image(begin, count)
    disk, what = PartDisk(image), f"a cut at {offset} of a log from {begin} on with {count} files"
    disk.failing_in = failing_in
    try:
        tried(what, lambda: cut_log(disk, _ROOT, _CONFIG, offset=offset))
    except OSError as error:
        if not disk.failed:
            raise GuaranteeBroken(8, f"{what} raises {error!r} although no call failed") from error
        _judge_begun(disk, image, offset, what)
        disk.failing_in = 0
        tried(what, lambda: cut_log(disk, _ROOT, _CONFIG, offset=offset))
    has_failed, disk.failing_in = disk.failed > 0, 0
    if disk.held != (0, 0):
        raise GuaranteeBroken(8, f"{what} keeps files open", found=str(disk.held))
    wanted, durable = _wanted(image.files, begin, count, offset), disk.durable.files
    for how, found in (("", disk.content), ("durable ", durable)):
        if _of_store(found) != wanted:
            raise GuaranteeBroken(3, f"{what} leaves other {how}files", str(wanted)[:300], str(_of_store(found))[:300])
    _judge_begun(disk, image, offset, what, is_done=True)
    return has_failed or not failing_in


def _judge_begun(disk: PartDisk, image: Image, offset: int, what: str, *, is_done: bool = False) -> None:
    """Contract 7: floor and abort marker are durable before a byte of the log changes."""
    durable = disk.durable.files
    if not is_done and _of_store(disk.content) == dict(image.files):
        return
    floor = _floor_of(durable)
    if floor is None or floor > offset or _ABORT not in durable:
        raise GuaranteeBroken(7, f"{what} changes files before it is announced", str(offset), str(floor))


def _open_store_is_not_cut() -> None:
    disk = PartDisk(_image(0, 3))
    lock = disk.create(_LOCK)
    disk.lock(lock)
    before = disk.content
    try:
        cut_log(disk, _ROOT, _CONFIG, offset=300)
    except StoreInUse:
        pass
    except Exception as error:
        raise GuaranteeBroken(14, f"a cut of an open store raises {error!r}", "StoreInUse") from error
    else:
        raise GuaranteeBroken(14, "the log of an open store is cut", "StoreInUse")
    if disk.content != before:
        raise GuaranteeBroken(14, "a refused cut changes files")

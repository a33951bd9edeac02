"""The judges of the small files that a store keeps of itself: checkpoint and both floors (contract 7 and 13).

What they say is read from the disk by the judges' own decoders, as the crash has left it and as the recovery leaves it.
What somebody has harmed behind the store's back says nothing about the store until the recovery has written it anew.
Whether the times of a checkpoint may be said is the matter of contract 9.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.decode.durable_floor import Floor, parse_durable_floor
from tornpage.properties.judge.recovered import ROOT, Recovered
from tornpage.properties.judge.rulings import judge
from tornpage.properties.program.log_places import LOG_PATHS

__all__ = ["CHECKPOINT_BYTES", "DERIVED_FLOOR", "DURABLE_FLOOR", "SMALL_FILE_JUDGES", "floor_in", "has_times"]

DURABLE_FLOOR, DERIVED_FLOOR, _CHECKPOINT = (
    f"{ROOT}/{name}" for name in ("config/durableFloor", "config/derivedFloor", "checkpoint")
)
CHECKPOINT_BYTES, _TIMES_BYTES = 4096, 24
_NOTHING_MORE = bytes(CHECKPOINT_BYTES - _TIMES_BYTES)
_Files = Mapping[str, bytes]

floor_in = lru_cache(maxsize=1024)(parse_durable_floor)
"""Return what a durable floor says; None of one that is not whole."""


@lru_cache(maxsize=1024)
def _derived_offset_in(stored: bytes) -> int | None:
    """Return the offset that a derived floor states; None of one that is not as it was written."""
    try:
        offset = parse_derived_floor(stored).get("offset")
    except ValueError:
        return None
    return offset if isinstance(offset, int) else None


@lru_cache(maxsize=1024)
def has_times(stored: bytes) -> bool:
    """Whether a checkpoint has its size, and times that can be."""
    return len(stored) == CHECKPOINT_BYTES and not any(stored[at] & 0x80 for at in range(0, _TIMES_BYTES, 8))


def _is_checkpoint(stored: bytes) -> bool:
    """Whether a checkpoint has nothing behind its times."""
    return stored.endswith(_NOTHING_MORE) and has_times(stored)


@judge(13)
def small_files_are_whole(found: Recovered) -> None:
    """Contract 13: no crash, and no recovery, leaves a checkpoint or a floor that is not whole; each log has a floor.

    A checkpoint that no sync has reached may be empty on the disk, and the first floor as long as the log is.
    """
    for when, files in _disks(found):
        floor = files.get(DURABLE_FLOOR, b"")
        if floor_in(floor) is None and (floor.strip(b"\0") or _has_a_log(files)):
            raise GuaranteeBroken(13, f"the durable floor on disk is not whole {when}", found=_shown(floor))
        derived = files.get(DERIVED_FLOOR)
        if derived is not None and not found.was_harmed and _derived_offset_in(derived) is None:
            raise GuaranteeBroken(13, f"the derived floor on disk is not whole {when}", found=_shown(derived))
        checkpoint = files.get(_CHECKPOINT, b"")
        if checkpoint and not found.was_harmed and not _is_checkpoint(checkpoint):
            raise GuaranteeBroken(13, f"the checkpoint on disk is not whole {when}", found=_shown(checkpoint))
    live = found.files.peek(_CHECKPOINT, 0, CHECKPOINT_BYTES + 1) if _CHECKPOINT in found.files.paths() else b""
    if not found.was_harmed and not _is_checkpoint(live):
        raise GuaranteeBroken(13, "a process that has recovered has no whole checkpoint", found=_shown(live))


@judge(7)
def floors_say_what_is_durable(found: Recovered) -> None:
    """Contract 7: no floor lies beyond the log, and a recovery leaves the durable one where its log ends.

    What is then found broken below it is damage; above it nobody could tell.
    """
    end, file_bytes = found.store.max_offset, found.settings.file_bytes
    for when, files in _disks(found):
        floor, derived = floor_in(files.get(DURABLE_FLOOR, b"")), files.get(DERIVED_FLOOR)
        if floor is not None and (floor.offset > end or floor.file_bytes != file_bytes):
            expected = f"{end} at most, in files of {file_bytes}"
            raise GuaranteeBroken(7, f"the durable floor lies beyond the log {when}", expected, _said(floor))
        offset = None if derived is None or found.was_harmed else _derived_offset_in(derived)
        if offset is not None and offset > end:
            raise GuaranteeBroken(7, f"the derived floor lies beyond the log {when}", f"{end} at most", str(offset))
    floor = floor_in(found.durable.files.get(DURABLE_FLOOR, b""))
    if floor is None or floor.offset != end:
        sentence = "a recovery leaves the durable floor elsewhere than its log ends"
        raise GuaranteeBroken(7, sentence, str(end), "none" if floor is None else _said(floor))


def _disks(found: Recovered) -> Iterator[tuple[str, _Files]]:
    """Yield the files of the disk as the crash has left it, unless they were harmed, and as the recovery leaves it."""
    if not found.was_harmed:
        yield "after a crash", found.files.base.files
    yield "after a recovery", found.durable.files


def _has_a_log(files: _Files) -> bool:
    """Whether a log has a record: the floor was durable before."""
    return any(path.startswith(LOG_PATHS) and content[:8].strip(b"\0") for path, content in files.items())


def _shown(stored: bytes) -> str:
    return f"{len(stored)} bytes, {stored[:32]!r}"


def _said(floor: Floor) -> str:
    return f"{floor.offset}, in files of {floor.file_bytes}"


SMALL_FILE_JUDGES = (small_files_are_whole, floors_say_what_is_durable)
"""In the order in which they speak, once the log is known to be a legal one."""

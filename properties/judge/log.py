"""Judges of the log: its bytes, its bounds and its messages (contract 1, 2, 3, 9 and 10).

Expected bytes come from the ledger, legal logs from the model; nothing is decoded with the store's codec.
"""

from properties.contract import GuaranteeBroken, observed
from properties.disk.recording_files import RecordingFiles
from properties.judge.evidence import Recovered, is_base
from properties.judge.rulings import judge
from properties.program.log_places import log_files

__all__ = [
    "begins_where_it_may",
    "covers_the_floor",
    "first_difference",
    "is_a_prefix",
    "left_past",
    "messages_are_served",
    "nothing_behind_the_end",
    "watermarks_in_order",
]


@judge(10)
def begins_where_it_may(found: Recovered) -> None:
    """Contract 10: the log begins where a clean-up had come to, and remembers which topics were deleted.

    Where nothing was ever deleted it has lost its first records (contract 1).
    """
    begins = {(begin, deleted) for _, _, begin, deleted in found.legal}
    if found.key[2:] not in begins:
        if begins == {(0, ())} and found.store.min_offset:
            raise GuaranteeBroken(1, "the log has lost its head", "0", str(found.store.min_offset))
        expected = " or ".join(map(str, sorted(begins)))
        sentence = "the log begins elsewhere, or has other deleted topics, than what was deleted"
        raise GuaranteeBroken(10, sentence, expected, str(found.key[2:]))


@judge(1)
def messages_are_served(found: Recovered) -> None:
    """Contract 1: the store hands out the messages of its log, and no others."""
    served = [(each.offset, each.body) for each in observed("messages", lambda: list(found.store.messages()))]
    if served != [(record.offset, record.message.body) for record in found.log.retained]:
        raise GuaranteeBroken(1, "the store serves other messages than were put")


@judge(1)
def is_a_prefix(found: Recovered) -> None:
    """Contract 1: what is kept is, byte for byte, what was appended; files in one row, none missing, none too many."""
    begin, end = found.store.min_offset, found.store.max_offset
    file_bytes = found.ledger.file_bytes
    present = log_files(found.files.paths())
    bases = range(begin, max(end, begin + bool(begin)), file_bytes)[: len(present) + 1]  # any end may be said
    names = [f"{base:020d}" for base in bases]
    if [_name(path) for path in present] != names:
        raise GuaranteeBroken(1, "the log has other files than its end says", str(names), str(present))
    for path in present:
        base = int(_name(path))
        content, expected = found.files.peek(path, 0, file_bytes + 1), found.ledger.expected(base, end)
        if len(content) != file_bytes:
            raise GuaranteeBroken(1, f"{path} has the wrong size", str(file_bytes), f"{len(content)}, or more")
        kept = min(file_bytes, end - base)
        if content[:kept] != expected[:kept]:
            at = base + first_difference(content, expected)
            raise GuaranteeBroken(1, f"the log differs from what was appended at offset {at}")


@judge(2)
def covers_the_floor(found: Recovered) -> None:
    """Contract 2: nothing promised is missing, nothing was invented: the log is one of the model's legal logs."""
    if found.key not in found.legal:
        counts = sorted(key[:2] for key in found.legal)
        expected = f"{counts[0]} to {counts[-1]} (records, end offset)"
        raise GuaranteeBroken(2, "the recovered log is none that may survive", expected, str(found.key[:2]))


@judge(3)
def nothing_behind_the_end(found: Recovered) -> None:
    """Contract 3: every byte behind the end is zero, in the page cache and on the disk, so none can come back."""
    end = found.store.max_offset
    file_bytes = found.ledger.file_bytes
    for path in log_files(found.durable.files):
        if not is_base(_name(path)):
            raise GuaranteeBroken(1, f"{path} is no log file")
        base, content = int(_name(path)), found.durable.files[path]
        for where, stored in (("on disk", content), ("in the page cache", _live(found.files, path, file_bytes))):
            left = left_past(end, base, stored)
            if left is not None:
                sentence = f"a byte cut by recovery is still {where} at offset {left[0]}"
                raise GuaranteeBroken(3, sentence, "0x00", f"0x{left[1]:02x}")


def _live(files: RecordingFiles, path: str, file_bytes: int) -> bytes:
    return files.peek(path, 0, file_bytes) if path in files.paths() else b""


@judge(9)
def watermarks_in_order(found: Recovered) -> None:
    """Contract 9: minimum <= flushed <= committed <= written, and recovery leaves nothing unflushed."""
    store = found.store
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    if list(marks) != sorted(marks) or store.flushed_offset != store.max_offset:
        raise GuaranteeBroken(
            9, "the watermarks are out of order after recovery", "min <= flushed = written", str(marks)
        )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def first_difference(first: bytes, second: bytes) -> int:
    """Return at which position two contents begin to differ, the length of the shorter one if it begins the other."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def left_past(end: int, base: int, stored: bytes) -> tuple[int, int] | None:
    """Return offset and value of the first byte past `end` that is not zero, in a log file that begins at `base`."""
    past = stored[max(0, end - base) :]
    if past == bytes(len(past)):
        return None
    left = past.lstrip(b"\0")
    return base + len(stored) - len(left), left[0]

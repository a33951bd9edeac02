"""The judges: each looks at one recovered store and knows one numbered promise (docs/contract.md).

Expected bytes come from the ledger, legal logs from the model, stored bytes from the recorded disk; nothing is decoded
with the store's codec. A judge returns a ruling; its name is what activation tables count.
"""

from collections.abc import Callable

from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.delay_judges import DELAY_JUDGES, nothing_delayed_is_left_out
from tornpage.properties.judge.derived_files import is_base
from tornpage.properties.judge.log_bytes import first_difference, left_past
from tornpage.properties.judge.progress_judges import PROGRESS_JUDGES
from tornpage.properties.judge.queue_judges import (
    QUEUE_JUDGES,
    extensions_hold_the_log,
    index_holds_the_log,
    keys_are_found,
    queues_are_read_in_order,
    queues_have_their_bounds,
    queues_hold_the_log,
    times_are_found,
)
from tornpage.properties.judge.recovered import LegalLogs, Recovered, durable_image
from tornpage.properties.judge.rulings import Ruling, judge
from tornpage.properties.judge.small_file_judges import SMALL_FILE_JUDGES
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT, log_files

__all__ = [
    "JUDGES",
    "LOG_DIRECTORY",
    "OF_THE_PROCESS",
    "ROOT",
    "LegalLogs",
    "Recovered",
    "durable_image",
    "messages_are_served",
    "physic_timestamp",
]


def physic_timestamp(image: Image) -> int:
    """Return up to which store timestamp the checkpoint on a disk says the log is durable.

    Source: docs/format.md, section 6.
    """
    return int.from_bytes(image.files.get(f"{ROOT}/checkpoint", b"")[:8], "big", signed=True)


@judge(7)
def opens_for_writing(found: Recovered) -> None:
    """Contract 7: every state inside the crash model is recovered to a writable store."""
    if found.store.read_only_reason is not None:
        raise GuaranteeBroken(7, "the store opens read-only after a crash", "read-write", found.store.read_only_reason)


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


@judge(6)
def recovered_is_durable(found: Recovered) -> None:
    """Contract 6: what recovery presents is on disk, so that the next recovery presents it again."""
    end = found.store.max_offset
    durable = {_name(path): found.durable.files[path] for path in log_files(found.durable.files)}
    for base in range(found.store.min_offset, end, found.ledger.file_bytes):
        stored = durable.get(f"{base:020d}")
        kept = min(found.ledger.file_bytes, end - base)
        if stored is None or stored[:kept] != found.ledger.expected(base, end)[:kept]:
            raise GuaranteeBroken(6, f"recovery presents bytes from offset {base} on that are not durable")


@judge(9)
def watermarks_in_order(found: Recovered) -> None:
    """Contract 9: minimum <= flushed <= committed <= written, and recovery leaves nothing unflushed."""
    store = found.store
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    if list(marks) != sorted(marks) or store.flushed_offset != store.max_offset:
        raise GuaranteeBroken(
            9, "the watermarks are out of order after recovery", "min <= flushed = written", str(marks)
        )


@judge(9)
def checkpoint_is_not_ahead(found: Recovered) -> None:
    """Contract 9: the checkpoint on disk names no time after the newest record that is there; whoever starts a recovery
    from it would step over what is missing. That holds for the disk as the crash left it, and as recovery leaves it.
    """
    newest = max((0, *(record.store_timestamp for record in found.log.records)))
    for image in (found.durable,) if found.was_harmed else (found.files.base, found.durable):
        says = physic_timestamp(image)
        if says > newest:
            raise GuaranteeBroken(9, "the checkpoint is newer than the durable log", f"{newest} at most", str(says))


JUDGES: tuple[Callable[[Recovered], Ruling], ...] = (
    opens_for_writing,
    begins_where_it_may,
    is_a_prefix,
    covers_the_floor,
    nothing_behind_the_end,
    recovered_is_durable,
    watermarks_in_order,
    checkpoint_is_not_ahead,
    *QUEUE_JUDGES,
    *SMALL_FILE_JUDGES,
    *PROGRESS_JUDGES,
    *DELAY_JUDGES,
)
"""In the order in which they speak."""

OF_THE_PROCESS: frozenset[Callable[[Recovered], Ruling]] = frozenset(
    {
        is_a_prefix,
        watermarks_in_order,
        queues_hold_the_log,
        extensions_hold_the_log,
        index_holds_the_log,
        queues_have_their_bounds,
        queues_are_read_in_order,
        times_are_found,
        keys_are_found,
        nothing_delayed_is_left_out,
    }
)
"""Those that look at what a process has and answers, and at what the log and the progress files say: nowhere else."""


def _name(path: str) -> str:
    return path.rpartition("/")[2]

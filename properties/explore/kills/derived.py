"""Queues and index of a real directory: what a process reads before it is killed, and the judges that look afterwards.

The judges are those of recorded disks; here the page cache is the truth, since a kill loses nothing of it.
"""

from collections.abc import Mapping
from typing import Any

from impl.store import MessageStore
from model.state import CommitLog
from properties.disk.disk import Image
from properties.judge.derived_ledger import DerivedLedger
from properties.judge.ledger import Ledger
from properties.judge.queue_judges import QUEUE_JUDGES
from properties.judge.recovered import ROOT, Recovered, key_of
from properties.judge.rulings import require
from properties.program.case import GetMessage, OffsetByTime, QueryKey, Settings
from properties.program.log_places import LOG_DIRECTORY
from properties.program.translation import layout_of

__all__ = ["judge_derived", "read_something"]

_KEYS = ("k1", "k2", "Aa", "BB", "u")


def read_something(store: MessageStore, operation: GetMessage | QueryKey | OffsetByTime) -> None:
    """Read, and give back what that brings: nothing may raise."""
    queues = store.queues() or [("nobody wrote to this", 0)]
    match operation:
        case GetMessage(queue, shift, max_msg_nums):
            store.get_message(*queues[queue % len(queues)], shift, max_msg_nums=max_msg_nums).release()
        case QueryKey(key, max_num):
            store.query_message(queues[0][0], _KEYS[key % len(_KEYS)], max_num=max_num).release()
        case OffsetByTime(queue, _, shift_ms):
            store.offset_in_queue_by_time(*queues[queue % len(queues)], shift_ms)


class _SeenFiles:
    """The files of a directory, under the names that recorded disks have; a kill has lost nothing of them."""

    def __init__(self, content: Mapping[str, bytes]) -> None:
        self.content = {f"{ROOT}/{name}": data for name, data in content.items()}
        self.base = Image(frozenset(), self.content)

    def paths(self) -> list[str]:
        return sorted(self.content)

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        return self.content[path][offset : offset + size_bytes]


def judge_derived(
    store: MessageStore, survivor: CommitLog, content: Mapping[str, bytes], *, settings: Settings
) -> None:
    """Contracts 4, 5, 9 and 17 of a store just opened; `content` is its directory. Raises GuaranteeBroken."""
    layout, files = layout_of(settings), _SeenFiles(content)
    ledger = Ledger(file_bytes=settings.file_bytes)
    for record in survivor.records:
        ledger.note(
            record,
            end_before=record.offset,
            peek=lambda name, position, size_bytes: files.peek(f"{LOG_DIRECTORY}/{name}", position, size_bytes),
        )
    recorded: Any = files  # the judges look at names and bytes only
    found = Recovered(
        store,
        recorded,
        ledger,
        DerivedLedger(layout, survivor.records),
        {key_of(survivor): survivor},
        files.base,
        settings,
        layout,
    )
    for judge in QUEUE_JUDGES:
        require(judge(found))

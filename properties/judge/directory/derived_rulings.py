"""Rulings on what is made from the log: numbers 4, 5, 16 and 17.

Files are compared byte for byte with what the model says of the records that the decoder found; the store is asked as
the judges of the lab ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tornpage.properties.contract import observed
from tornpage.properties.judge.derived_files import index_is_right, queues_are_right
from tornpage.properties.judge.directory.evidence import Evidence
from tornpage.properties.judge.directory.front import WithFront, front_entries, own_files, without_front
from tornpage.properties.judge.directory.records import log_of
from tornpage.properties.judge.extension_files import extensions_are_right
from tornpage.properties.judge.queue_judges import (
    keys_are_found,
    nothing_is_left_to_dispatch,
    queues_are_read_in_order,
    queues_have_their_bounds,
    times_are_found,
)
from tornpage.properties.judge.recovered import Recovered
from tornpage.properties.judge.rulings import Ruling, counted, holds, judge, unknown

__all__ = ["index_is_judged", "index_of", "liveness_is_judged", "queues_are_judged", "queues_of", "readers_are_judged"]

_READ_ONLY = "a read-only store leaves queues and index as they are; what it serves is judged by number 7"


@judge(4)
def queues_of(content: Mapping[str, bytes], evidence: Evidence) -> None:
    """Compare the queue files of a recovered store; bit maps are not in an image (contract 4)."""
    log, files = evidence.after, without_front(own_files(content), begin=evidence.after.begin)
    queues_are_right(files, evidence.derived, log.end, settings=evidence.shape.settings)
    extensions_are_right(files, evidence.derived, log.end, settings=evidence.shape.settings, bit_map_of=None)


@judge(5)
def index_of(content: Mapping[str, bytes], evidence: Evidence) -> Ruling | None:
    """Compare the index files of a recovered store (contract 5)."""
    log, settings, content = evidence.after, evidence.shape.settings, own_files(content)
    front = front_entries(content, settings, begin=log.begin)
    if front is None:
        return unknown(5, "the index begins behind a file that is gone, which has the time of its first entry")
    records = log_of(log.records, log.end).records
    index_is_right(content, WithFront(evidence.shape.layout, records, front), log.end, settings=settings)
    return None


@judge(4)
def queues_are_judged(evidence: Evidence) -> Ruling:
    """Number 4: queue files and their extension are, byte for byte, what the surviving records make of them."""
    reason = _not_judged(evidence, 4)
    if reason:
        return unknown(4, reason)
    ruling = queues_of(evidence.content, evidence)
    if ruling.verdict == "broken":
        return ruling.in_one_of(evidence.content)
    queues = list(evidence.derived.queues_at(evidence.after.end))
    units = sum(count for _, _, count in queues)
    return holds(4, f"{counted(units, 'unit')} in {counted(len(queues), 'queue')}, byte for byte as the records say")


@judge(5)
def index_is_judged(evidence: Evidence) -> Ruling:
    """Number 5: index files are what the surviving records make of them, and keys are found."""
    reason = _not_judged(evidence, 5)
    if not reason and not evidence.shape.settings.index:
        reason = "the store has no index"
    if reason:
        return unknown(5, reason)
    ruling = index_of(evidence.content, evidence)
    if ruling.verdict == "holds":
        ruling = keys_are_found(evidence.recovered)
    if ruling.verdict == "broken":
        return ruling.in_one_of(evidence.content, contract=5)
    if ruling.verdict == "unknown":
        return ruling
    entries = len(evidence.derived.entries_at(evidence.after.end))
    return holds(5, f"{counted(entries, 'entry', 'entries')}, link by link as the records say; keys are found")


_READERS: tuple[Callable[[Recovered], Ruling], ...] = (
    queues_have_their_bounds,
    queues_are_read_in_order,
    times_are_found,
)


@judge(17)
def readers_are_judged(evidence: Evidence) -> Ruling:
    """Number 17, as far as one reader behind a recovery sees it: bounds, pulls to the end, times."""
    if evidence.store is None or not evidence.is_writable:
        return unknown(17, "the store did not open" if evidence.store is None else _READ_ONLY)
    if _not_judged(evidence, 4):
        return unknown(17, _not_judged(evidence, 4))
    known = {queue for queue, _, _ in evidence.derived.queues_at(evidence.after.end)}
    if evidence.after.begin and set(observed("queues", evidence.store.queues)) - known:
        return unknown(
            17, "a queue has records in front of the log only; with which number it goes on is not in the log"
        )
    for reader in _READERS:
        ruling = reader(evidence.recovered)
        if ruling.verdict == "broken":
            return ruling.in_one_of(evidence.content, contract=17)
    return holds(17, "bounds of all queues are right; who reads a third of them gets every record, in order")


@judge(16)
def liveness_is_judged(evidence: Evidence) -> Ruling:
    """Number 16, as far as an open shows it: nothing is left to dispatch."""
    if evidence.store is None or not evidence.is_writable:
        return unknown(
            16, "the store did not open" if evidence.store is None else "a read-only store dispatches nothing"
        )
    ruling = nothing_is_left_to_dispatch(evidence.store)
    if ruling.verdict == "broken":
        return ruling
    return holds(16, "the store opened with nothing left to dispatch; requests and services are not in an image")


def _not_judged(evidence: Evidence, number: int) -> str:
    """Return why queues and index cannot be judged, nothing if they can."""
    if evidence.store is None:
        return "the store did not open"
    if not evidence.is_writable:
        return _READ_ONLY
    if evidence.store.max_offset != evidence.after.end:
        return "the log does not end where the store says, which is judged by number 1"
    return evidence.not_derivable or evidence.shape.unknown.get(number, "")

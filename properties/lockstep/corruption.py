"""Corrupt a closed store outside the crash model, and check the next open (contract 7).

A file that can be rebuilt is rebuilt. A damaged log serves what verifies, and no byte that fails a check. A lost
progress file is named, unless it had no backup. Saved progress of delay levels and the role may change as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tornpage.impl.store import MessageStore
from tornpage.model import corruption
from tornpage.model.dispatch import Queue
from tornpage.model.operations import ChangeRole, Damage, DelayOffsetsAre, HarmDerived, HarmProgress, ProgressHarm
from tornpage.model.queues import Unit
from tornpage.model.state import Progress, Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.page_versions import earlier_contents
from tornpage.properties.judge.answers import Stored, key_text
from tornpage.properties.judge.ledgers import (
    DELAY_OFFSETS,
    DerivedLedger,
    Key,
    ProgressLedger,
    SavedVersion,
    torn_in,
    versions_in,
)
from tornpage.properties.judge.rulings import queue_text
from tornpage.properties.lockstep.closing import close
from tornpage.properties.lockstep.corrupt_images import Lost, corrupted_image, damaged_image
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.lockstep.recovery import Recovery
from tornpage.properties.program.log_places import log_files

__all__ = ["Corruption"]

_BACKUP = f"{DELAY_OFFSETS}.bak"
_GARBAGE = b"{ no JSON"
_AT_ONCE = 32
_QUERY_MAX = 1 << 16


class Corruption:
    """Corruption of one pair of store and model, which is recovered afterwards."""

    def __init__(self, pair: Pair, recovery: Recovery) -> None:
        self._pair = pair
        self._recovery = recovery

    def corrupt_derived(self, harm: HarmDerived) -> None:
        """Corrupt a file that can be rebuilt.

        The store has to open read-write and rebuild it (contract 7).
        """
        pair = self._pair
        if not corruption.applies(pair.model, harm):
            return
        pair.files.mend()
        close(pair)
        harmed = corrupted_image(
            harm,
            pair.durable(pair.files),
            pair.files.base,
            min_offset=pair.log.min_offset,
            index_slots=pair.settings.index_slots,
            tags_codes=self._tags_codes(),
        )
        if harmed is None or not corruption.is_replaced(pair.model, harm, pair.layout):
            self._recovery.open()
            return
        before, is_noticed = pair.log, harmed.is_noticed and pair.store.read_only_reason is None
        files, pair.memory.was_corrupted = pair.new_disk(harmed.image), True
        found = self._recovery.recover(
            files, self._recovery.legal_between(before, before, kill=True), self._recovery.versions_now()
        )
        named = [finding.severity for finding in found.store.findings]
        if "damage" in named or (is_noticed and not named):
            expected = "a note" if is_noticed else "no damage"
            raise GuaranteeBroken(7, f"a {harm.file} file that is {harm.harm} is not named", expected, str(named))
        self._recovery.continue_with(found, files)
        pair.cover(f"{harm.file}_{harm.harm}")

    def _tags_codes(self) -> dict[int, int]:
        """Return the tags code of each dispatched message, by its physical offset."""
        units = (unit for memory in self._pair.memory.derived.queues.values() for unit in memory.units)
        return {unit.record.offset: unit.tags_code for unit in units}

    def damage_log(self, operation: Damage) -> None:
        """Damage the log of the closed store, which then has to serve what verifies.

        If the whole log is checked, the store also opens read-only, names the place, and changes nothing.
        """
        pair = self._pair
        if not corruption.applies(pair.model, operation):
            return
        pair.files.mend()
        close(pair)
        harmed = damaged_image(
            operation,
            pair.durable(pair.files),
            pair.log.changed(records=pair.log.retained),
            earlier=earlier_contents(pair.files, log_files(pair.files.paths())),
            file_bytes=pair.settings.file_bytes,
            trailer=pair.settings.trailer,
        )
        if harmed is None or pair.log.flushed_offset < pair.log.end_offset:  # the close has failed
            self._recovery.open()
            return
        image, lost = harmed
        beside = self._beside(operation, image)
        image, is_complete = (image, True) if beside is None else (beside, False)
        files = pair.new_disk(image)
        store = pair.open_on(files, whole_log=True, verifies=True)
        if store.read_only_reason is None:
            sentence = f"the store does not notice damage at offset {lost.offset}"
            raise GuaranteeBroken(7, sentence, "read-only", "read-write")
        named = [finding for finding in store.findings if finding.severity == "damage"]
        if not any(lost.offset <= finding.offset <= lost.end_offset for finding in named):
            raise GuaranteeBroken(7, f"no finding names the damage at offset {lost.offset}", found=str(named))
        self._serves_what_verifies(store, lost, is_complete=is_complete)
        store_again = pair.open_on(pair.last_disk(image), verifies=True)
        self._serves_what_verifies(store_again, lost, is_complete=is_complete)
        store.close()
        if pair.durable(files).files != {**image.files}:
            raise GuaranteeBroken(7, "opening a damaged store changed it")
        pair.files, pair.spans = pair.new_disk(pair.durable(pair.files)), []
        pair.store = store
        pair.memory.versions = ProgressLedger(
            versions_in(image.files, pair.memory.versions.paths)
        )  # the close has saved the newest version
        pair.end_operation(0, corruption.corrupted(pair.model, operation, pair.layout))
        pair.cover(f"damaged_{operation.kind}")
        pair.cover("damaged_beside", not is_complete)

    def _beside(self, operation: Damage, image: Image) -> Image | None:
        """Return the damaged image with another file corrupted too, or None."""
        pair = self._pair
        if not operation.beside:
            return None
        harm = HarmDerived(operation.beside, operation.beside_harm, number=operation.record, amount=operation.amount)
        min_offset, index_slots = pair.log.min_offset, pair.settings.index_slots
        harmed = corrupted_image(harm, image, pair.files.base, min_offset=min_offset, index_slots=index_slots)
        return None if harmed is None else harmed.image

    def _serves_what_verifies(self, store: MessageStore, lost: Lost, *, is_complete: bool) -> None:
        """Check that a damaged store serves every record that verifies, and no other byte.

        This has to hold whether an open has met the damage or not. `is_complete`: queues and index are not corrupted,
        so their readers get all of it.
        """
        pair = self._pair
        served = {message.offset for message in observed("messages", lambda: list(store.messages()))}
        expected = {record.offset for record in pair.log.retained if lost.spares(record)}
        if served != expected:
            raise GuaranteeBroken(7, "a damaged store serves the wrong records", str(expected), str(served))
        _readers_get_what_verifies(
            store,
            pair.memory.derived,
            lost,
            begin=pair.log.min_offset,
            end=pair.log.end_offset,
            stored=pair.memory.ledger.stored,
            is_complete=is_complete,
        )

    def corrupt_progress(self, operation: HarmProgress) -> None:
        """Close, corrupt the progress file, and open (contract 7, 13).

        The store has to use the backup, or begin without progress, and name that. A lost file that had no backup is not
        named.
        """
        pair = self._pair
        if not corruption.applies(pair.model, operation):
            return
        pair.files.mend()
        close(pair)
        path, harm = pair.memory.consumer_file, operation.harm
        image = pair.durable(pair.files)
        if path not in image.files:
            self._recovery.open()
            return
        harmed = _corrupted_progress(image, path, harm)
        if harm == "stale" and versions_in(harmed.files, (path,)) == versions_in(image.files, (path,)):
            self._recovery.open()
            return
        after = corruption.corrupted(pair.model, operation, pair.layout, saved_before=_backup_version(image, path))
        versions = {**_versions_in(harmed, pair), path: frozenset((after.consumers.saved,))}
        pair.memory.torn_files = torn_in(harmed.files, pair.memory.versions.paths)
        files = pair.new_disk(harmed)
        found = self._recovery.recover(files, self._recovery.legal_between(pair.log, pair.log, kill=True), versions)
        named = any(each.file == path and each.code.startswith("config_file_") for each in found.store.findings)
        if harm != "stale" and not named and (path in harmed.files or f"{path}.bak" in harmed.files):
            raise GuaranteeBroken(7, f"a progress file that is {harm} is not named")
        self._recovery.continue_with(found, files)
        pair.cover(f"progress_file_{harm}")

    def change_role(self, operation: ChangeRole) -> None:
        """Close, and open in another role.

        A new master continues at the progress on the disk.
        """
        pair = self._pair
        if not corruption.applies(pair.model, operation):
            return
        pair.files.mend()
        close(pair)
        pair.take_role(operation.role)
        self._recovery.open()
        pair.cover(f"became_{operation.role}")

    def write_delay_offsets(self, operation: DelayOffsetsAre) -> None:
        """Overwrite the saved progress of delay levels.

        An open continues there, within the bounds of the queues.
        """
        pair = self._pair
        if not corruption.applies(pair.model, operation):
            return
        pair.files.mend()
        if not pair.closed and pair.layout.role == "SLAVE":
            self._write_beside(operation)
        else:
            close(pair)
            self._open_with(operation)

    def _write_beside(self, operation: DelayOffsetsAre) -> None:
        """Write it durably while a slave is open, as its master does."""
        pair = self._pair
        first, files = len(pair.files.events), pair.files
        after = corruption.corrupted(pair.model, operation, pair.layout)
        if DELAY_OFFSETS in files.paths():
            files.unlink(DELAY_OFFSETS)
        file = files.create(DELAY_OFFSETS)
        files.pwrite(file, _written(after.log.saved_delays), 0)
        files.sync(file)
        files.close(file)
        files.sync_directory(DELAY_OFFSETS.rpartition("/")[0])
        pair.end_operation(first, after)
        pair.spans = [replace(pair.spans[-1], first=pair.spans[-1].last)]  # no crash point lies inside
        pair.cover("slave_was_sent_progress")

    def _open_with(self, operation: DelayOffsetsAre) -> None:
        """Open the closed store with another file."""
        pair = self._pair
        durable = pair.durable(pair.files)
        backup = _backup_version(durable, DELAY_OFFSETS)
        after = corruption.corrupted(pair.model, operation, pair.layout, delays_before=backup)
        given, saved, stored = after.log, after.log.saved_delays, dict(durable.files)
        match operation.kind:
            case "moved":
                stored[DELAY_OFFSETS] = _written(saved)
            case "lost":
                stored.pop(DELAY_OFFSETS, None)
            case "garbage":
                stored |= dict.fromkeys({DELAY_OFFSETS, _BACKUP} & stored.keys(), _GARBAGE)
        pair.memory.torn_files = torn_in(stored, pair.memory.versions.paths)
        image = Image(durable.directories, stored)
        files, versions = pair.new_disk(image), {**_versions_in(image, pair), DELAY_OFFSETS: frozenset((saved,))}
        found = self._recovery.recover(files, self._recovery.legal_between(given, given, kill=True), versions)
        self._recovery.continue_with(found, files)
        is_corrected = pair.log.delays != saved
        named = {finding.code for finding in pair.store.findings}
        if is_corrected and "progress_corrected" not in named:
            raise GuaranteeBroken(7, "delay offsets are corrected without a finding", "a note", str(sorted(named)))
        pair.cover("delay_offsets_corrected", is_corrected)
        pair.cover(f"delay_offsets_{operation.kind}")


def _versions_in(image: Image, pair: Pair) -> dict[str, frozenset[SavedVersion]]:
    """Return the version of each progress file in an image, as its only legal one."""
    return {
        path: frozenset((version,)) for path, version in versions_in(image.files, pair.memory.versions.paths).items()
    }


def _backup_version(image: Image, path: str) -> Any:
    """Return the version in the backup of a progress file, () without one."""
    content = image.files.get(f"{path}.bak")
    return () if content is None else versions_in({path: content}, (path,))[path]


def _corrupted_progress(image: Image, path: str, harm: ProgressHarm) -> Image:
    """Return an image with a corrupted state file; for `both` its backup too."""
    left = dict(image.files)
    if harm == "stale":
        left[path] = left.get(f"{path}.bak", left[path])
    elif harm == "misdirected":
        logs = log_files(image.files)
        left[path] = image.files[logs[0]][: len(left[path])] if logs else b""
    if harm in ("stale", "misdirected"):
        return Image(image.directories, left)
    for each in (path, f"{path}.bak")[: 2 if harm == "both" else 1]:
        content = left.pop(each, None)
        if content is not None and harm != "lost":
            kept = len(content) // 2 if harm == "torn" else 0
            left[each] = content[:kept].ljust(len(content) if kept else 0, b"\0")
    return Image(image.directories, left)


def _written(table: Progress) -> bytes:
    """Return a file with this progress, as RocketMQ writes it."""
    levels = ",".join(f"{level}:{number}" for level, number in table)
    return ('{\n\t"offsetTable":{' + levels + ("\n\t" if levels else "") + "}\n}").encode()


# ---- reads of a damaged store ----------------------------------------------------------------------------------------


def _readers_get_what_verifies(
    store: MessageStore,
    derived: DerivedLedger,
    lost: Lost,
    *,
    begin: int,
    end: int,
    stored: Stored,
    is_complete: bool,
) -> None:
    """Read each queue to its end, and query each key, of a damaged store.

    Its log went from `begin` to `end`. `is_complete`: queues and index are unchanged, so nothing that verifies may be
    skipped.
    """
    for queue, memory, count in derived.queues_at(end):
        units = memory.units[min(memory.first_at(begin), count) : count]
        brought = list(_read_through(store, queue, units, stored))
        _compare(
            f"a consumer of queue {queue_text(queue)}", brought, [unit.record for unit in units], lost, is_complete
        )
    for key in derived.keys:
        records = derived.records_with(key, end, begin)
        _compare(f"a query for {key_text(key)}", _query(store, key, records, stored), records, lost, is_complete)


def _read_through(store: MessageStore, queue: Queue, units: Sequence[Unit], stored: Stored) -> Iterator[Record]:
    """Yield the records of successive pulls, as a consumer makes them."""
    by_number = {unit.queue_offset: unit.record for unit in units}
    number, last = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    while number < last:
        ask = partial(store.get_message, *queue, number, max_msg_nums=_AT_ONCE)
        with observed("get_message", ask) as pulled:
            for message in pulled.messages:
                record = by_number.get(message.queue_offset)
                if record is None or bytes(message) != stored(record):
                    sentence = f"a pull from queue {queue_text(queue)} of a damaged store returns a wrong record"
                    expected = "nothing" if record is None else f"the record at offset {record.offset}"
                    raise GuaranteeBroken(4, sentence, expected, f"the one at offset {message.offset}")
                yield record
            following, status = pulled.next_begin_offset, pulled.status.value
        if following <= number:
            if status == "OFFSET_FOUND_NULL":  # the log ends before this message
                return
            sentence = f"a consumer of queue {queue_text(queue)} of a damaged store makes no progress"
            raise GuaranteeBroken(17, sentence, f"past {number}, up to {last}", f"{following}, {status}")
        number = following


def _query(store: MessageStore, key: Key, records: Sequence[Record], stored: Stored) -> list[Record]:
    """Return the records that a query for a key without a limit finds."""
    by_offset, brought = {record.offset: record for record in records}, []
    with observed("query_message", partial(store.query_message, *key, max_num=_QUERY_MAX)) as found:
        for message in found.messages:
            record = by_offset.get(message.offset)
            if record is None or bytes(message) != stored(record):
                sentence = f"a query for {key_text(key)} of a damaged store returns another message"
                raise GuaranteeBroken(5, sentence, f"of those at {sorted(by_offset)}", f"the one at {message.offset}")
            brought.append(record)
    return brought


def _compare(who: str, brought: Sequence[Record], records: Sequence[Record], lost: Lost, is_complete: bool) -> None:
    offsets = [record.offset for record in brought]
    verified = [record.offset for record in records if lost.spares(record)]
    if offsets != (verified if is_complete else [offset for offset in verified if offset in set(offsets)]):
        raise GuaranteeBroken(7, f"{who} of a damaged store gets the wrong messages", str(verified), str(offsets))

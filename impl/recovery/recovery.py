"""Recovery of the commit log: cut it at the end of its valid prefix, or report damage.

`plan` reads and decides. `carry_out` cuts, erases and makes the result durable. The log after that is a prefix of what
was appended. A cut is final: later files are removed and the rest of the cut file is zeroed, both durably, before the
store accepts a write (contract 3). A crash during recovery leads to the same cut (contract 6).

After an unclean exit, an invalid record at or above the durable floor is a tear. Every other invalid record is damage,
and nothing is changed (contract 7). Two rules hold after either exit. A log file with the records of another place in
the log is damage, because no crash moves a file. Bytes without a valid record that follow zeros at the end of the log
are left of an earlier crash, which a recovery of RocketMQ does not erase; they are erased here. Source:
`CommitLog.recoverNormally`, `recoverAbnormally`, without their defects.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tornpage.impl.dispatch.derived_floor import DerivedProof
from tornpage.impl.io.files import Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.store_lock import make_directories
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_files import file_name
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import (
    LogScan,
    LogWalker,
    RecordChecker,
    end_of_records,
    islands,
    scan_log,
    stated_base,
)
from tornpage.impl.message import codec
from tornpage.impl.recovery.evidence import LastUnit

__all__ = ["Recovery", "RecoveryPlan", "quarantine"]


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The prefix of the log to keep, and the findings. `damaged` forbids any change."""

    scan: LogScan
    dirty_tail: bool
    findings: tuple[Finding, ...]

    @property
    def damaged(self) -> bool:
        """Whether the store must stay as it is, read-only."""
        return any(finding.severity == "damage" for finding in self.findings)


class Recovery:
    """One recovery of one loaded log."""

    def __init__(
        self,
        files: Files,
        log: MappedFileQueue,
        *,
        root: str,
        floor: Floor | None,
        clean_exit: bool,
        check: RecordChecker,
        walk: LogWalker,
        proof: DerivedProof | None = None,
        flushed_time: int = 0,
        last_units: Sequence[LastUnit] = (),
    ) -> None:
        self._files = files
        self._log = log
        self._root = root
        self._floor = floor
        self._clean_exit = clean_exit
        self._check = check
        self._walk = walk
        self._proof = proof
        self._flushed_time = flushed_time
        self._last_units = last_units

    def plan(self, load_findings: tuple[Finding, ...]) -> RecoveryPlan:
        """Scan the log and decide, without a write.

        Records covered by the proof are not scanned, unless the log is damaged: then nothing is proved. Raises OSError.
        """
        plan = self._plan(load_findings)
        if plan.damaged and self._proof is not None:
            self._proof = None
            plan = self._plan(load_findings)
        return plan

    def _plan(self, load_findings: tuple[Finding, ...]) -> RecoveryPlan:
        from_offset = 0 if self._proof is None else self._proof.offset
        scan = scan_log(
            self._log.mapped, self._walk, self._check, file_bytes=self._log.file_bytes, from_offset=from_offset
        )
        blanks = {**dict(() if self._proof is None else self._proof.blanks), **scan.blank_positions}
        for file in self._log.mapped:
            file.blank_position = blanks.get(file.base_offset)
        if any(finding.severity == "damage" for finding in load_findings):
            return RecoveryPlan(scan, dirty_tail=False, findings=load_findings)
        dirty_at = self._dirty_at(scan)
        findings = list(load_findings)
        if self._floor is not None and scan.end_offset < self._floor.offset:
            what = f"{scan.reason} at {scan.end_offset}, below the durable floor {self._floor.offset}"
            findings.append(self._finding("damage", "damaged_record", scan.end_offset, what))
        elif dirty_at is not None and (misnamed := self._misnamed(scan)) is not None:
            findings.append(misnamed)
        elif dirty_at is not None and self._clean_exit and not self._is_left_over(scan):
            what = f"{scan.reason} at {scan.end_offset} after a clean exit, with nonzero bytes from {dirty_at} on"
            findings.append(self._finding("damage", "damaged_record", scan.end_offset, what))
        elif self._floor is None and (missing := self._missing(scan)) is not None:
            findings.append(self._finding("damage", "missing_records", scan.end_offset, missing))
        elif dirty_at is not None and self._clean_exit:
            what = f"the log ends at {scan.end_offset}; bytes left of an earlier crash are erased from {dirty_at} on"
            findings.append(self._finding("note", "left_over_bytes", scan.end_offset, what))
        elif dirty_at is not None and (proved := self._proved_by_time(scan)) is not None:
            what = (
                f"{scan.reason} at {scan.end_offset}, before the record at {proved} that the checkpoint says is durable"
            )
            findings.append(self._finding("damage", "damaged_record", scan.end_offset, what))
        elif dirty_at is not None:
            what = f"{scan.reason} at {scan.end_offset}: the log is cut here"
            findings.append(self._finding("tear", "torn_tail", scan.end_offset, what))
        return RecoveryPlan(scan, dirty_tail=dirty_at is not None, findings=tuple(findings))

    def carry_out(self, plan: RecoveryPlan) -> None:
        """Cut and erase the log as planned and make the rest durable.

        The log is then ready for appends. Raises OSError if a write or sync fails; the next recovery starts over.
        """
        assert not plan.damaged
        scan, mapped = plan.scan, self._log.mapped
        if plan.dirty_tail and self._floor is None:
            quarantine(self._files, self._root, self._log, cut=scan.end_offset, check=self._check)
        if scan.reason is not None and mapped:
            self._cut(plan)
        self._make_durable()
        self._log.flushed_where = self._log.max_offset
        if mapped:
            mapped[-1].flushed_position = mapped[-1].written_position

    def leave(self, plan: RecoveryPlan) -> None:
        """End the log where its records end, without a change of a file.

        The plan found damage, and the log stays read-only. Records past the damage are part of the log, files of zeros
        past the last record are not. Raises OSError.
        """
        assert plan.damaged
        mapped, scan = self._log.mapped, plan.scan
        end = end_of_records(mapped, scan, self._walk, self._check, file_bytes=self._log.file_bytes)
        self._log.end_at(end)
        self._log.flushed_where = max(self._log.min_offset, min(scan.end_offset, end))  # was read from disk

    def _make_durable(self) -> None:
        """Sync every file that reaches above the durable floor.

        After an unclean exit rewrite its bytes first. A sync that failed before the crash left the pages clean in the
        kernel: records may be missing on the disk, and bytes erased by an earlier recovery may still be there. The
        rewrite marks the kept records and the zeros after them dirty again. A store of RocketMQ has no floor; there
        only the last file is rewritten. Raises OSError.
        """
        mapped = self._log.mapped
        floor_offset = 0 if self._floor is None else self._floor.offset
        rewritten_from = mapped[-1].base_offset if mapped and self._floor is None else floor_offset
        for file in mapped:
            if file.end_offset > floor_offset:
                if not self._clean_exit:
                    file.rewrite(max(0, rewritten_from - file.base_offset), file.size_bytes)
                file.sync()

    def _cut(self, plan: RecoveryPlan) -> None:
        scan = plan.scan
        last = self._log.mapped[scan.file_index]
        position = scan.end_offset - last.base_offset
        if position == 0 and (scan.file_index > 0 or last.base_offset == 0):
            self._log.drop_after(scan.file_index - 1)  # a file without a record is not needed
            return
        self._log.drop_after(scan.file_index)
        if plan.dirty_tail:
            self._erase(last, position)
        last.written_position = position

    def _erase(self, last: MappedFile, position: int) -> None:
        """Zero everything past the cut; the following sync makes the zeros durable."""
        dirty = last.first_nonzero(position)
        if dirty is not None:
            last.zero(dirty, last.size_bytes - dirty)

    def _dirty_at(self, scan: LogScan) -> int | None:
        """Return the offset of the first nonzero byte past the valid prefix, or None."""
        for file in self._log.mapped[scan.file_index :] if scan.reason is not None else []:
            position = file.first_nonzero(max(0, scan.end_offset - file.base_offset))
            if position is not None:
                return file.base_offset + position
        return None

    def _misnamed(self, scan: LogScan) -> Finding | None:
        """Return the finding about the first file with records of another place, or None.

        Files before the end of the prefix are not read.
        """
        for file in self._log.mapped[scan.file_index :]:
            base = stated_base(file, self._check, file_bytes=self._log.file_bytes)
            if base is not None:
                what = f"{file.path}: its records state that the file begins at offset {base}"
                return Finding("damage", "misnamed_file", file.path, file.base_offset, what)
        return None

    def _is_left_over(self, scan: LogScan) -> bool:
        """Return whether zeros end the log, and no valid record follows them.

        Each later file begins with zeros too.
        """
        for file in self._log.mapped[scan.file_index :]:
            position = max(0, scan.end_offset - file.base_offset)
            if any(file.view[position : position + codec.BLANK_BYTES]):
                return False
            if any(True for _ in islands(file, position, self._check, file_bytes=self._log.file_bytes)):
                return False
        return True

    def _proved_by_time(self, scan: LogScan) -> int | None:
        """Return the offset of a record past the bad one that was flushed, or None.

        What lies before a flushed record was flushed too. Records past the bad one with older times than those before
        it are left of a log that an earlier recovery cut.
        """
        if self._floor is not None or not self._flushed_time:
            return None
        newest = self._newest_time(scan)
        for file in self._log.mapped[scan.file_index :]:
            start = max(0, scan.end_offset - file.base_offset)
            for position, _ in islands(file, start, self._check, file_bytes=self._log.file_bytes):
                if newest <= codec.store_timestamp_of_record(file.view, position) <= self._flushed_time:
                    return file.base_offset + position
        return None

    def _newest_time(self, scan: LogScan) -> int:
        """Return the newest store time in the last file of the prefix that has a record.

        It is 0 without a record.

        Cost: one look at each record of that file.
        """
        for file in reversed(self._log.mapped[: scan.file_index + 1]):
            times = (codec.store_timestamp_of_record(file.view, position) for position in self._positions(scan, file))
            newest = max(times, default=0)
            if newest:
                return newest
        return 0

    def _has_record(self, scan: LogScan, last: LastUnit) -> bool:
        """Return whether a record of the prefix has the number of a unit.

        Cost: one look at each record.
        """
        for file in self._log.mapped[: scan.file_index + 1]:
            for position in self._positions(scan, file):
                topic, queue_id, number, _ = codec.queue_of_record(file.view, position)
                if number == last.number and (topic, queue_id) == last.key:
                    return True
        return False

    def _positions(self, scan: LogScan, file: MappedFile) -> Iterator[int]:
        """Yield where the records of one file of the prefix begin."""
        position = 0
        end = min(scan.blank_positions.get(file.base_offset, file.size_bytes), scan.end_offset - file.base_offset)
        while position < end and (size := codec.size_of_record(file.view, position)):
            yield position
            position += size

    def _missing(self, scan: LogScan) -> str | None:
        """Return the proof that a log without a floor ended later, after a clean exit, or None.

        After any other exit the time in the checkpoint may be that of a record which made the log roll and was lost.
        """
        if not self._clean_exit:
            return None
        past = [each for each in self._last_units if each.unit.offset >= scan.end_offset]
        for last in past:
            if not self._has_record(scan, last):
                what = f"unit {last.number} of {last.path} points to {last.unit.offset}"
                return f"the log ends at {scan.end_offset} after a clean exit, but {what}"
        if self._flushed_time and self._flushed_time > (newest := self._newest_time(scan)):
            what = f"the checkpoint says that it was durable up to the store time {self._flushed_time}"
            return f"the log ends at {scan.end_offset}, store time {newest}, but {what}"
        return None

    def _finding(self, severity: Literal["damage", "tear", "note"], code: str, offset: int, message: str) -> Finding:
        file = self._log.find(offset)
        path = file.path if file is not None else self._log.directories.names
        return Finding(severity, code, path, offset, f"{path}: {message}")


def readable_records(log: MappedFileQueue, check: RecordChecker) -> list[int]:
    """Return the physical offsets of all valid records, including those past a damaged one."""
    return [
        file.base_offset + position
        for file in log.mapped
        for position, _ in islands(file, 0, check, file_bytes=log.file_bytes)
    ]


def quarantine(files: Files, root: str, log: MappedFileQueue, *, cut: int, check: RecordChecker) -> list[str]:
    """Copy the bytes from `cut` on if they hold a valid record; return the paths written.

    Without a durable floor (a store written by RocketMQ) a tear looks like damage. Valid
    records after the cut are therefore kept in `<root>/quarantine/<cut offset>.<number>`, each copy durable (contract
    7).

    An existing copy is never replaced: after a crash during the erasure, a second copy holds less than the first.

    Raises OSError if a copy cannot be written.
    """
    past_cut = [(file, max(0, cut - file.base_offset)) for file in log.mapped if file.end_offset > cut]
    if not any(True for file, at in past_cut for _ in islands(file, at, check, file_bytes=log.file_bytes)):
        return []
    directory = f"{root}/quarantine"
    make_directories(files, directory)
    return [
        _copy(files, directory, bytes(file.view[position:]), file.base_offset + position)
        for file, position in past_cut
        if file.first_nonzero(position) is not None
    ]


def _copy(files: Files, directory: str, data: bytes, offset: int) -> str:
    taken = set(files.list_directory(directory))
    number = next(n for n in range(len(taken) + 1) if f"{file_name(offset)}.{n}" not in taken)
    target = f"{directory}/{file_name(offset)}.{number}"
    unfinished = f"{directory}/unfinished"
    if "unfinished" in taken:
        files.unlink(unfinished)
    file = files.create(unfinished)
    try:
        files.pwrite(file, data, 0)
        files.sync(file)
    finally:
        files.close(file)
    files.rename(unfinished, target)
    files.sync_directory(directory)
    return target

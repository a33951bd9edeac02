"""Judge the items of a log: a bad place is damage, a tear, or may still be changing.

The first rule that applies decides about a place without a valid record, if bytes follow, and about a blank that states
another size than what is left of its file:

1. below the durable floor, or before a record that the checkpoint proves flushed: damage;
2. live store, or a file that changed while it was read: a note if no valid record follows, because the tail is moving;
   else the place is read again, and it is damage if it is still bad;
3. abort marker present (unclean exit): a tear, where recovery will cut;
4. bytes after a zero header, without a valid record in them: a note, left by an earlier crash;
5. else: damage.

Source: docs/format.md, section 9.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Code, Finding, Severity
from tornpage.properties.decode.misnamed import stated_base
from tornpage.properties.decode.record import Bad, Blank, Reason, Record
from tornpage.properties.decode.store import RECORD_BYTES_MAX, LocatedItem, LogFile, StoreView
from tornpage.properties.decode.walk import Unreadable, Zeros, walk_source

__all__ = ["FINDINGS_MAX", "LogJudge", "flushed_until_ms"]

FINDINGS_MAX = 1000
"""Bad places listed one by one; CL_MORE_FINDINGS counts the rest, with the severity of the worst of them."""

_END_LOST = "the log ends here, but bytes follow"
_CUT = "none needed: recovery cuts the log here"
_REPAIR = "keep a copy; restore the file from a replica, or cut a copy of the log before it"
_SAVE = "export them (`tornpage export`), or keep them in a mended copy (`tornpage audit --repair-to`)"
_CUTTING = ("CL_BAD_RECORD", "CL_BLANK_LENGTH", "CL_BYTES_BEYOND_END")
_RECOVERY_MARGIN_MS = 3000
_AGAIN = "look again when the store is closed"


def flushed_until_ms(view: StoreView) -> int:
    """Return the store time (ms) up to which the checkpoint proves a flush; -1 without.

    A checkpoint of a later time than now proves nothing.
    """
    time_ms = -1 if view.checkpoint is None else view.checkpoint.physic_timestamp
    return time_ms - _RECOVERY_MARGIN_MS if 0 < time_ms <= time.time_ns() // 1_000_000 else -1


@dataclass(slots=True)
class _Break:
    """A place where the log should continue and does not.

    `records_before` is the number of records before it.
    """

    file: str
    offset: int
    reason: Reason | Literal["blank_length"] | None
    """None: zeros to the end of a file that is not the last file with bytes."""
    field: str
    records_before: int
    number: int


class LogJudge:
    """Take the items of `iter_items` in order, and give findings at the end.

    Counts of items are public: `record_count`, `blank_count`, `record_bytes`, `unreadable_bytes`. `end_offset` is the
    place after the last valid record or blank (None without any). `prefix_end_offset` is the end of the log as read
    without a gap from its start.
    """

    def __init__(self, view: StoreView, *, record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        self._view = view
        self._record_bytes_max = record_bytes_max
        self._breaks: list[_Break] = []
        self._breaks_left_out = 0
        self._flushed_ms = flushed_until_ms(view)
        self._flushed_breaks = 0
        self._newest_file = ""
        self._newest_ms = 0
        self._zeros: tuple[str, int] | None = None
        self._changed = False
        self._notes: list[Finding] = []
        self._unread_end = 0
        self._file_ends = {file.label: file.base_offset + view.file_bytes for file in view.files}
        self.record_count = 0
        self.blank_count = 0
        self.record_bytes = 0
        self.unreadable_bytes = 0
        self.end_offset: int | None = None
        self.prefix_end_offset: int | None = None
        self.last_store_timestamp: int | None = None

    def see(self, located: LocatedItem) -> None:
        """Take the next item."""
        file, item = located.file, located.item
        if isinstance(item, Zeros):
            if self._zeros is None:
                self._zeros = (file, item.offset)
                self._end_prefix(item.offset)
            return
        if self._zeros is not None:  # an earlier file ended in zeros, but more follows
            self._break(_Break(*self._zeros, None, "size", self.record_count, len(self._breaks)))
            self._zeros = None
        if isinstance(item, Record):
            self.record_count += 1
            self.record_bytes += item.size_bytes
            self.end_offset = item.end_offset
            self.last_store_timestamp = item.store_timestamp
            if file != self._newest_file and not self._breaks:
                self._newest_file, self._newest_ms = file, 0
            flushed_ms = item.store_timestamp if item.store_timestamp <= self._flushed_ms else -1
            self.note_times(newest_ms=item.store_timestamp, newest_flushed_ms=flushed_ms)
        elif isinstance(item, Blank):
            self._see_blank(file, item)
        elif isinstance(item, Bad):
            self._end_prefix(item.offset)
            self._break(_Break(file, item.offset, item.reason, item.field, self.record_count, len(self._breaks)))
        else:
            self.unreadable_bytes += item.size_bytes

    def note_times(self, *, newest_ms: int, newest_flushed_ms: int) -> None:
        """Note the newest store time of records up to the last one.

        `newest_flushed_ms` is the newest one up to which the checkpoint proves a flush, or -1. Such a record past a bad
        place proves that place flushed too. A record that is older than those of the last file before the first bad
        place is left of a log that an earlier recovery cut, and proves nothing.
        """
        if not self._breaks:
            self._newest_ms = max(self._newest_ms, newest_ms)
        elif newest_flushed_ms >= self._newest_ms:
            self._flushed_breaks = len(self._breaks)

    def see_file_end(self, file: LogFile, has_changed: bool, error: OSError | None) -> None:
        """Take the report of `iter_items` after a file."""
        self._changed |= has_changed
        if error is None:
            return
        reason = error.strerror or type(error).__name__
        if isinstance(error, PermissionError):
            note = Finding("CL_NO_ACCESS", "note", file.label, file.base_offset, reason, "look again with permission")
        elif isinstance(error, FileNotFoundError):
            message = "the file vanished while the store was read"
            note = Finding("CL_FILE_GONE", "note", file.label, file.base_offset, message, _AGAIN)
        else:
            message = f"the device failed while reading: {reason}"
            note = Finding("CL_READ_ERROR", "damage", file.label, file.base_offset, message, "restore from a replica")
        if note.severity == "note":
            self._unread_end = self._file_ends[file.label]
        self._notes.append(note)

    def finish(self, *, is_complete: bool = True) -> tuple[Finding, ...]:
        """Return the findings of the view and of the items, by file and offset.

        `is_complete`: the items began at the start and are complete. Otherwise the end of the log is not judged.
        """
        findings = [*self._view.findings, *self._notes]
        findings += [found for each in self._breaks if (found := self._judge(each)) is not None]
        if self._breaks_left_out:
            worst: Severity = "damage" if any(finding.severity == "damage" for finding in findings) else "note"
            message = f"{self._breaks_left_out} more places without a valid record are not listed"
            findings.append(Finding("CL_MORE_FINDINGS", worst, "commitlog", None, message, "see the findings listed"))
        findings += self._judge_names()
        if is_complete:
            findings += self._judge_risk(findings)
            findings += self._judge_end(findings)
        return tuple(sorted(findings, key=lambda finding: (finding.file, finding.offset or 0, finding.code)))

    @property
    def _may_move(self) -> bool:
        return self._view.live or self._changed

    def _see_blank(self, file: str, blank: Blank) -> None:
        self.blank_count += 1
        left = self._file_ends[file] - blank.offset
        self.end_offset = blank.offset + left
        if blank.size_bytes != left:
            self._end_prefix(blank.offset)
            field = f"{blank.size_bytes} bytes instead of the {left} that are left in the file"
            self._break(_Break(file, blank.offset, "blank_length", field, self.record_count, len(self._breaks)))

    def _end_prefix(self, offset: int) -> None:
        if self.prefix_end_offset is None:
            self.prefix_end_offset = offset

    def _break(self, found: _Break) -> None:
        if len(self._breaks) < FINDINGS_MAX:
            self._breaks.append(found)
        else:
            self._breaks_left_out += 1

    def _judge(self, place: _Break) -> Finding | None:
        later = self.record_count - place.records_before
        is_gap = place.reason in (None, "zero_header")
        code: Code = "CL_BYTES_BEYOND_END" if is_gap else "CL_BAD_RECORD"
        what = _END_LOST if is_gap else f"no valid record: {place.reason} ({place.field})"
        if place.reason == "blank_length":
            code, what = "CL_BLANK_LENGTH", f"the blank states {place.field}"
        message = f"{what}; {later} valid records after it" if later else f"{what}; no valid record after it"

        def finding(severity: Severity, remedy: str) -> Finding:
            return Finding(code, severity, place.file, place.offset, message, remedy)

        if self._view.floor is not None and place.offset < self._view.floor:
            return finding("damage", _REPAIR)
        if self._may_move:
            if not later:
                return Finding("CL_TAIL_MOVING", "note", place.file, place.offset, message, _AGAIN)
            return finding("damage", _REPAIR) if self._is_still_bad(place) else None
        if self._view.is_unclean and place.number < self._flushed_breaks:
            return finding("damage", _REPAIR)
        if self._view.is_unclean:
            remedy = f"{_CUT}; copy the {later} records after it first if you need them" if later else _CUT
            return finding("tear", remedy)
        if is_gap and not later:
            return finding("note", "none needed: the store erases them when it opens")
        return finding("damage", _REPAIR)

    def _is_still_bad(self, place: _Break) -> bool:
        """Read a place again that was bad while the store may have been writing there."""
        file = next(file for file in self._view.files if file.label == place.file)
        size = self._view.file_bytes
        try:
            with FileSource(file.path, size_bytes_max=size) as source:
                items = walk_source(
                    source,
                    base_offset=file.base_offset,
                    file_bytes=size,
                    position=place.offset - file.base_offset,
                    record_bytes_max=self._record_bytes_max,
                )
                item = next(items, None)
                is_blank = isinstance(item, Blank)
                return isinstance(item, Bad | Zeros | Unreadable) or (is_blank and place.reason == "blank_length")
        except OSError:
            return False

    def _judge_names(self) -> list[Finding]:
        """Name the log files whose records were written for another place in the log."""
        starts = {each.file: each for each in reversed(self._breaks) if each.reason == "bad_position"}
        found = []
        for file in self._view.files:
            if file.label not in starts or starts[file.label].offset != file.base_offset or self._may_move:
                continue
            try:
                size = self._view.file_bytes
                base = stated_base(file.path, size_bytes=file.size_bytes, file_bytes=size, named=file.base_offset)
            except OSError:
                continue
            if base is not None and base != file.base_offset:
                message = f"its records state that the file begins at offset {base}"
                remedy = f"rename it to {base:020}, after moving a file of that name away"
                found.append(Finding("CL_MISNAMED", "damage", file.label, file.base_offset, message, remedy))
        return found

    def _judge_risk(self, findings: Sequence[Finding]) -> list[Finding]:
        """Name the valid records past the first place where a recovery cuts the log."""
        cut = [each for each in findings if each.severity == "tear" and each.code in _CUTTING]
        places = [each for each in self._breaks if any(each.offset == found.offset for found in cut)]
        if not places or not (behind := self.record_count - places[0].records_before):
            return []
        message = f"{behind} valid records after this place are cut when a store recovers"
        return [Finding("CL_RECORDS_AT_RISK", "note", places[0].file, places[0].offset, message, _SAVE)]

    def _judge_end(self, findings: list[Finding]) -> list[Finding]:
        """Judge what only the end of the log shows: floor, checkpoint, a moving tail."""
        end = self.end_offset or 0
        found: list[Finding] = []
        if self._may_move:
            if not any(finding.code == "CL_TAIL_MOVING" for finding in findings):
                message = "the store is open or its files changed while they were read; its end may have moved"
                holding = [file.label for file in self._view.files if file.base_offset <= end]
                file = holding[-1] if holding else "commitlog"
                found.append(Finding("CL_TAIL_MOVING", "note", file, self.end_offset, message, _AGAIN))
            return found
        if self._unread_end > end:  # nothing is known of the end: it may be in a file that was not read
            return found
        floor, checkpoint = self._view.floor, self._view.checkpoint
        if floor is not None and end < floor:
            message = f"the log ends at {end}, but was flushed up to {floor}"
            found.append(Finding("CL_ENDS_BELOW_FLOOR", "damage", "commitlog", end, message, _REPAIR))
        last = self.last_store_timestamp
        if checkpoint is not None and last is not None and checkpoint.physic_timestamp > last:
            message = f"the checkpoint's log time {checkpoint.physic_timestamp} is later than the last record's, {last}"
            remedy = "expected after a cut; else distrust the checkpoint (delete it: the store rebuilds it)"
            found.append(Finding("CP_AHEAD_OF_LOG", "note", "checkpoint", None, message, remedy))
        return found

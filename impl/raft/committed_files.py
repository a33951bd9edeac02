"""Show the committed part of a Raft log to a store: its data files, and its end.

Source: `DLedgerCommitLog.getMaxOffset`, `getData`, `recover`.
"""

from typing import Any

from tornpage.impl.io.files import Files
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.loading import Finding, FoundLog
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import file_name
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import LogScan
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.recovery.recovery import Recovery, RecoveryPlan

__all__ = ["CommittedFiles", "CommittedRecovery", "find_data_files"]


class CommittedFiles(MappedFileQueue):
    """The data files of a Raft log, mapped for reading.

    All ends of this log are the end of the entries that readers may see. `follow` moves it. `raft_log` writes the
    files.
    """

    def __init__(self, *arguments: Any, member: RaftMember, raft_log: RaftLog, **settings: Any) -> None:
        self.raft_log = raft_log
        self._member = member
        self._visible_end = 0
        super().__init__(*arguments, **settings)

    @property
    def max_offset(self) -> int:
        """Physical offset after the last entry that readers may see."""
        return self._visible_end

    @property
    def committed_where(self) -> int:
        """The same as `max_offset`."""
        return self._visible_end

    @property
    def readable_end(self) -> int:
        """The same as `max_offset`."""
        return self._visible_end

    @property
    def flushed_where(self) -> int:
        """The same as `max_offset`, since readers see durable entries only."""
        return self._visible_end

    @flushed_where.setter
    def flushed_where(self, offset: int) -> None:
        """Ignore the offset: the Raft log is flushed by its own syncs."""

    def adopt(self, path: str, *, writable: bool) -> None:
        """Map a data file for reading. Raises OSError."""
        self.mapped = [*self.mapped, self._maker.open(path, writable=False)]

    def follow(self) -> None:
        """Let readers see what the member has committed, and has durable. Raises OSError."""
        self.show(self.raft_log.end_position_of(self._member.visible))

    def show(self, end: int) -> None:
        """Let readers see everything up to a physical offset.

        Only files with visible entries stay mapped. A cut may remove a file without one, and later entries then get
        a new file of that name. Raises OSError.
        """
        while self.mapped and self.mapped[-1].base_offset >= end:
            self.mapped.pop().close()
        while end > (base := self.mapped[-1].end_offset if self.mapped else 0):
            self.adopt(f"{self.directories.paths[0]}/{file_name(base)}", writable=False)
        self._visible_end = end


def find_data_files(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None = None
) -> FoundLog:
    """Return the data files from the begin of the log up to the first missing one.

    The Raft log has checked them. A crash may have lost the name of a file and kept a later file without an entry.
    """
    paths: list[str] = []
    while files.stat(path := f"{directories.paths[0]}/{file_name(len(paths) * file_bytes)}") is not None:
        paths.append(path)
    return FoundLog(tuple(paths), (), ())


class CommittedRecovery(Recovery):
    """The recovery of a store on a Raft log, which has recovered its own files."""

    def plan(self, load_findings: tuple[Finding, ...]) -> RecoveryPlan:
        """Keep the log, and show the committed entries. Raises OSError."""
        assert isinstance(self._log, CommittedFiles)
        self._log.follow()
        scan = LogScan(self._log.max_offset, len(self._log.mapped) - 1, None, {})
        return RecoveryPlan(scan, dirty_tail=False, findings=load_findings)

    def carry_out(self, plan: RecoveryPlan) -> None:
        """Change no file."""

"""Which records of the log a read has to verify (setting `verify_reads`, contract 7).

1. `always` verifies every record at every read.
2. `once` verifies a record unless this process has appended or verified it. Marks of that are kept for each file.
3. All marks are taken back if a check fails, and if a sync, a write, an append or the creation of a log file fails. The
   file system or the memory may have damaged other records too.
4. `never` verifies no record.

The lengths in a record and its physical offset are checked at every read, whatever the setting is.
"""

from tornpage.impl.config.policy import VerifyReads
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.read_marks import ReadMarks

__all__ = ["VerifiedRecords"]


class VerifiedRecords:
    """The marks of the files of one log."""

    def __init__(self, setting: VerifyReads) -> None:
        self.setting = setting
        self._generation = 0

    def begin(self, file: MappedFile) -> None:
        """Note that this process appends everything in a new file."""
        file.marks = ReadMarks(file.size_bytes, appended_from=0, generation=self._generation)

    def marks_of(self, file: MappedFile) -> ReadMarks:
        """Return the marks of a file.

        Without valid marks, only what is appended from now on counts as appended by this process.
        """
        generation, marks = self._generation, file.marks
        if marks is None or marks.generation != generation:
            marks = ReadMarks(file.size_bytes, appended_from=file.written_position, generation=generation)
            file.marks = marks
        return marks

    def note_verified(self, marks: ReadMarks, position: int) -> None:
        """Mark a record, found valid in the file of these marks."""
        marks.add(position)

    def note_bad_record(self) -> None:
        """Take all marks back after the check of a record has failed."""
        self._generation += 1

    def note_failure(self) -> None:
        """Take all marks back after an operation on a log file has failed."""
        self._generation += 1

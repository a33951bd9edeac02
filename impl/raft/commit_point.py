"""Keep the commit end of a member in the file `checkpoint`, in DLedger's format.

The end is a hint. It is at most what was committed, so a restarted member shows these entries before a leader confirms
them. DLedger does not sync the file (L9). A missing or unreadable file counts as no committed entry.

Source: `DLedgerMmapFileStore.persistCheckPoint` of DLedger 0.2.3.
"""

from tornpage.impl.io.files import Files
from tornpage.impl.raft.properties_file import PropertiesFile

__all__ = ["CommitPoint"]


class CommitPoint:
    """Owns `checkpoint` in a directory, which must exist.

    `commit` is the saved end. Raises OSError of a call.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._file = PropertiesFile(files, directory, "checkpoint")
        found = self._file.load() or {}
        index = found.get("committedIndex", "").strip()
        self.commit = int(index) + 1 if index.isdecimal() else 0

    def save(self, commit: int, end: int) -> None:
        """Make a commit end durable, with the end of the log.

        Does nothing if an equal or larger end is saved.
        The first `commit` entries must be durable.
        """
        if commit > self.commit:
            self._file.replace({"committedIndex": str(commit - 1), "endIndex": str(end - 1)})
            self.commit = commit

"""Keep the term and the vote of a member in the file `currterm`, in DLedger's format.

The file is replaced as a whole, and its content and its name are durable before `save` returns (L2: DLedger syncs
neither). It has two properties, `voteLeader` and `currTerm`. Members are named `n0`, `n1` and so on.

Source: `MemberState.persistTerm`, `IOUtils` of DLedger 0.2.3.
"""

import re

from tornpage.impl.errors import StoreError
from tornpage.impl.io.files import Files

__all__ = ["HardState", "HardStateDamaged"]

_LINE = re.compile(r"^(voteLeader|currTerm)=(.*)$", re.MULTILINE)
_MEMBER = re.compile(r"^n([0-9]+)$")
_BYTES_MAX = 1 << 16


class HardStateDamaged(StoreError):
    """The file of term and vote cannot be read.

    The member must not vote: it may have voted in this term.
    """


class HardState:
    """Owns `currterm` in a directory, which must exist.

    Raises HardStateDamaged, or OSError of a call.
    """

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._path = f"{directory}/currterm"
        self.term, self.vote = self._loaded()

    def save(self, term: int, vote: int | None) -> None:
        """Make a term and a vote durable."""
        name = "" if vote is None else f"n{vote}"
        new = f"{self._path}.tmp"
        if self._files.stat(new) is not None:
            self._files.unlink(new)
        file = self._files.create(new)
        try:
            self._files.pwrite(file, f"voteLeader={name}\ncurrTerm={term}\n".encode(), 0)
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._files.rename(new, self._path)
        self._files.sync_directory(self._directory)
        self.term, self.vote = term, vote

    def _loaded(self) -> tuple[int, int | None]:
        if self._files.stat(self._path) is None:
            return 0, None
        file = self._files.open(self._path, writable=True)
        try:
            text = self._files.read(file, 0, _BYTES_MAX).decode("latin-1")
            self._files.sync(file)  # its writer may have been killed before the sync
        finally:
            self._files.close(file)
        self._files.sync_directory(self._directory)
        found = dict(_LINE.findall(text))
        term, voted = found.get("currTerm", ""), found.get("voteLeader", "").strip()
        member = _MEMBER.match(voted)
        if not term.strip().isdecimal() or (voted and member is None):
            raise HardStateDamaged(
                f"{self._path} has no term and vote; restore it, or remove this member from its group"
            )
        return int(term), None if member is None else int(member[1])

"""Keep the term and the vote of a member in the file `currterm`, in DLedger's format.

The file is replaced as a whole, and its content and its name are durable before `save` returns (L2: DLedger syncs
neither). It has two properties, `voteLeader` and `currTerm`. Members are named `n0`, `n1` and so on. DLedger deletes
the file before it renames the new one, and keeps the old content in `currterm.bak`.

Source: `MemberState.persistTerm`, `IOUtils` of DLedger 0.2.3.
"""

import re

from tornpage.impl.errors import StoreError
from tornpage.impl.io.files import Files
from tornpage.impl.raft.properties_file import PropertiesFile

__all__ = ["HardState", "HardStateDamaged"]

_MEMBER = re.compile(r"^n([0-9]+)$")


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
        self._file = PropertiesFile(files, directory, "currterm")
        self.term, self.vote = self._loaded()

    def save(self, term: int, vote: int | None) -> None:
        """Make a term and a vote durable."""
        name = "" if vote is None else f"n{vote}"
        self._file.replace({"voteLeader": name, "currTerm": str(term)})
        self.term, self.vote = term, vote

    def _loaded(self) -> tuple[int, int | None]:
        found = self._file.load()
        if found is None:
            path = self._file.path
            if self._files.stat(f"{path}.bak") is not None:
                raise HardStateDamaged(
                    f"{path} is missing beside {path}.bak; DLedger was killed while it replaced the file. "
                    f"Rename {path}.tmp if it has both properties, or remove this member from its group"
                )
            return 0, None
        term, voted = found.get("currTerm", ""), found.get("voteLeader", "").strip()
        member = _MEMBER.match(voted)
        if not term.strip().isdecimal() or (voted and member is None):
            raise HardStateDamaged(
                f"{self._file.path} has no term and vote; restore it, or remove this member from its group"
            )
        return int(term), None if member is None else int(member[1])

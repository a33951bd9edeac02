"""Open the directory of a member with entries: its lock, its log, its term and vote.

A member n0 keeps its files in `dledger-n0` of its directory, as DLedger does.
"""

from tornpage.impl.errors import BadDirectory
from tornpage.impl.io.files import Files
from tornpage.impl.io.store_lock import StoreLock, make_directories
from tornpage.impl.parts import Parts
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.settings import RaftSettings

__all__ = ["OpenMember", "require_member", "require_no_member"]

_PREFIX = "dledger-n"
_STORE = frozenset(("checkpoint", "config", "consumequeue"))
"""Names of which a message store has some after its first opening."""


class OpenMember:
    """The files of a member, which no other process uses.

    Raises StoreInUse, BadDirectory for a directory of another member or with files of another size, RaftLogDamaged,
    HardStateDamaged, and OSError. A refused directory is not changed.
    """

    def __init__(self, directory: str, me: int, settings: RaftSettings, *, files: Files, parts: Parts) -> None:
        make_directories(files, directory)
        self._lock = StoreLock(files, directory)
        self._lock.acquire()
        try:
            path = f"{directory}/{_PREFIX}{me}"
            require_member(files, directory, me, settings)
            make_directories(files, path)
            self.log = parts.of(RaftLog)(
                files, path, data_file_bytes=settings.data_file_bytes, index_file_bytes=settings.index_file_bytes
            )
            try:
                self.hard_state = parts.of(HardState)(files, path)
            except BaseException:
                self.log.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Close the files and release the lock."""
        self.log.close()
        self._lock.release()


def require_member(files: Files, directory: str, me: int, settings: RaftSettings) -> None:
    """Raise BadDirectory unless a directory fits a member with these settings, or is new."""
    if files.stat(directory) is None:
        return
    names = files.list_directory(directory)
    found = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    if "commitlog" in names:
        raise BadDirectory(directory, "is a store without a group", "name another directory")
    if found and str(me) not in found:
        remedy = f"give --raft-id {found[0]}, or another directory"
        raise BadDirectory(directory, f"has the log of member n{found[0]}, and this is member n{me}", remedy)
    kept = "messages" if _STORE.intersection(names) else "entries"
    if found and kept != settings.content and (kept == "messages" or _has_entries(files, f"{directory}/{_PREFIX}{me}")):
        remedy = f"{'give' if kept == 'messages' else 'leave out'} --raft-messages"
        raise BadDirectory(directory, f"has {kept}, and this member is to have {settings.content}", remedy)


def _has_entries(files: Files, directory: str) -> bool:
    """Return whether the log in a directory has a data file.

    It has none if the first opening ended early.
    """
    data = f"{directory}/data"
    return files.stat(data) is not None and bool(files.list_directory(data))


def require_no_member(files: Files, directory: str) -> None:
    """Raise BadDirectory if a directory is that of a member.

    A store without a group would make it unusable for the member.
    """
    stat = files.stat(directory)
    if stat is None or stat.kind != "directory":
        return
    found = [name.removeprefix(_PREFIX) for name in files.list_directory(directory) if name.startswith(_PREFIX)]
    if found:
        remedy = f"give --raft-id {found[0]} and --raft-peers, or another directory"
        raise BadDirectory(directory, f"has the log of member n{found[0]} of a Raft group", remedy)

"""The sizes that a file had since its last sync, and the directory operations before each.

On some disks a sync of a file whose size has changed commits all directory operations before that change
(docs/disks/measured.md).
"""

from tornpage.properties.disk.directory_tree import DirectoryOperation

__all__ = ["Resizes"]


class Resizes:
    """The sizes of one file since its last sync.

    `synced_bytes` is the size at that sync.
    """

    __slots__ = ("_after", "_sizes", "synced_bytes")

    def __init__(self, synced_bytes: int) -> None:
        self.synced_bytes = synced_bytes
        self._sizes: list[int] = []
        self._after: list[DirectoryOperation | None] = []

    def add(self, size_bytes: int, after: DirectoryOperation | None) -> None:
        """Add a size.

        `after` is the last directory operation before it that no sync has committed.
        """
        self._sizes.append(size_bytes)
        self._after.append(after)

    def sync(self, *, counts_each: bool) -> DirectoryOperation | None:
        """Forget the sizes at a sync; return the last directory operation that it commits.

        With `counts_each` every change of the size counts, otherwise only one that certainly reached the inode.
        """
        if not self._sizes:
            return None
        number = len(self._sizes) - 1 if counts_each else self._last_certain()
        committed = self._after[number] if number >= 0 else None
        self.synced_bytes = self._sizes[-1]
        self._sizes.clear()
        self._after.clear()
        return committed

    def _last_certain(self) -> int:
        """Return the number of the last size that is certainly new in the inode, or -1.

        The inode takes the size of a cut at once. A growth may reach it as late as at the next sync, and never if a cut
        comes first. So before a change the inode has any size since the last cut or sync.
        """
        certain, held, possible, grown = -1, self.synced_bytes, {self.synced_bytes}, dict[int, int]()
        for number, size_bytes in enumerate(self._sizes):
            if size_bytes < held:
                certain = certain if size_bytes in possible else number
                possible, grown = {size_bytes}, {}
            elif size_bytes not in possible:
                possible.add(size_bytes)
                grown[size_bytes] = number
            held = size_bytes
        return max(certain, grown.get(held, -1))

"""Bugs in how a file comes to be."""

from impl.abort_marker import AbortMarker
from impl.files import OpenFile
from impl.log_directories import directory_of
from impl.log_files import LogFileMaker
from impl.parts import Parts

__all__ = ["BUGS"]


class _SizeNotSynced(LogFileMaker):
    """A new file's name is made durable, its size is not."""

    def _make_durable(self, file: OpenFile) -> None:
        self._files.sync_directory(directory_of(file.path))


class _DirectoryNotSynced(LogFileMaker):
    """A new file's name is left to chance (hole A2 of 4.9.3)."""

    def _make_durable(self, file: OpenFile) -> None:
        self._files.sync(file)


class _MarkerNotSynced(AbortMarker):
    """The abort marker is created and not made durable (hole H6 of 4.9.3)."""

    def create(self) -> None:
        if not self.present():
            self._files.close(self._files.create(self._path))


BUGS = (
    ("size-not-synced", "the size of a new file is not synced", 7, Parts({LogFileMaker: _SizeNotSynced})),
    ("directory-not-synced", "the directory of a new file is not synced", 2,
     Parts({LogFileMaker: _DirectoryNotSynced})),
    ("marker-not-synced", "the abort marker is not made durable", 7, Parts({AbortMarker: _MarkerNotSynced})),
)  # fmt: skip

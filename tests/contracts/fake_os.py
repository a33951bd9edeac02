"""The real `Files` on pyfakefs, an independent implementation of the calls.

pyfakefs does not patch the process. The modules that `impl.io.os_files` sees are replaced. A call that pyfakefs does
not fake skips the test, because the real system would apply it to the real descriptor with the faked number. pread and
pwrite are built from faked calls, because all others need them.
"""

import fcntl
import mmap
import os
from types import ModuleType

import pytest
from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.fake_os import FakeOsModule

from tornpage.impl.io import os_files
from tornpage.impl.io.os_files import OsFiles

__all__ = ["faked_files"]


class _Lacking:
    """The constants of a module, without its calls."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        if name.isupper():
            return getattr(self._module, name)
        pytest.skip(f"pyfakefs has no {self._module.__name__}.{name}")


class _FakeOs(_Lacking):
    """The `os` of pyfakefs with its faked calls and nothing else."""

    def __init__(self, filesystem: FakeFilesystem) -> None:
        super().__init__(os)
        self._faked = FakeOsModule(filesystem)

    def __getattr__(self, name: str) -> object:
        return getattr(self._faked, name) if name in FakeOsModule.dir() else super().__getattr__(name)

    @staticmethod
    def strerror(code: int) -> str:
        """Return the text of the real function, which touches no file."""
        return os.strerror(code)

    def lseek(self, fd: int, position: int, whence: int) -> int:
        """Move the position in the file; pyfakefs has no holes."""
        if whence in (os.SEEK_DATA, os.SEEK_HOLE):
            pytest.skip("pyfakefs has no os.SEEK_DATA")
        found: int = self._faked.lseek(fd, position, whence)
        return found

    def pread(self, fd: int, size_bytes: int, offset: int) -> bytes:
        """Move the position in the file and read."""
        self._faked.lseek(fd, offset, os.SEEK_SET)
        return self._faked.read(fd, size_bytes)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        """Move the position in the file and write."""
        self._faked.lseek(fd, offset, os.SEEK_SET)
        return self._faked.write(fd, bytes(data))


def faked_files(root: str, patch: pytest.MonkeyPatch) -> OsFiles:
    """Return the real implementation on a fake disk, until the patch is undone.

    The disk has the directory `root`.
    """
    filesystem = FakeFilesystem()
    filesystem.create_dir(root)
    patch.setattr(os_files, "os", _FakeOs(filesystem))
    patch.setattr(os_files, "mmap", _Lacking(mmap))
    patch.setattr(os_files, "fcntl", _Lacking(fcntl))
    return OsFiles()

"""The real `Files` on pyfakefs: a third opinion on what calls answer, written by others.

pyfakefs is not let loose on the process. The modules that `impl.io.os_files` sees are replaced, and a call that
pyfakefs does not fake skips the test: given to the real system, it would hit whatever real descriptor has the faked
number.
Two calls are put together from faked ones, since all others stand on them: pread and pwrite.
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
    """The constants of a module, which are no calls."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> object:
        if name.isupper():
            return getattr(self._module, name)
        pytest.skip(f"pyfakefs has no {self._module.__name__}.{name}")


class _FakeOs(_Lacking):
    """pyfakefs's `os`: what it fakes and nothing else."""

    def __init__(self, filesystem: FakeFilesystem) -> None:
        super().__init__(os)
        self._faked = FakeOsModule(filesystem)

    def __getattr__(self, name: str) -> object:
        return getattr(self._faked, name) if name in FakeOsModule.dir() else super().__getattr__(name)

    @staticmethod
    def strerror(code: int) -> str:
        """Return the text of the real one, which touches no file."""
        return os.strerror(code)

    def lseek(self, fd: int, position: int, whence: int) -> int:
        """Move the place in the file; pyfakefs knows nothing of holes."""
        if whence in (os.SEEK_DATA, os.SEEK_HOLE):
            pytest.skip("pyfakefs has no os.SEEK_DATA")
        found: int = self._faked.lseek(fd, position, whence)
        return found

    def pread(self, fd: int, size_bytes: int, offset: int) -> bytes:
        """Move the place in the file and read."""
        self._faked.lseek(fd, offset, os.SEEK_SET)
        return self._faked.read(fd, size_bytes)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        """Move the place in the file and write."""
        self._faked.lseek(fd, offset, os.SEEK_SET)
        return self._faked.write(fd, bytes(data))


def faked_files(root: str, patch: pytest.MonkeyPatch) -> OsFiles:
    """Return the real implementation on a fake disk that has the directory `root`, until the patch is undone."""
    filesystem = FakeFilesystem()
    filesystem.create_dir(root)
    patch.setattr(os_files, "os", _FakeOs(filesystem))
    patch.setattr(os_files, "mmap", _Lacking(mmap))
    patch.setattr(os_files, "fcntl", _Lacking(fcntl))
    return OsFiles()

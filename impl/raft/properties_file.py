"""Keep a small file of properties, replaced as a whole and durable.

Its content and its name are durable before `replace` returns. DLedger syncs neither (L2, L9).
Source: `IOUtils` of DLedger 0.2.3.
"""

import re
from collections.abc import Mapping

from tornpage.impl.io.files import Files

__all__ = ["PropertiesFile"]

_LINE = re.compile(r"^([A-Za-z]+)=(.*)$", re.MULTILINE)
_BYTES_MAX = 1 << 16


class PropertiesFile:
    """The file `name` in a directory, which must exist. Raises OSError of a call."""

    def __init__(self, files: Files, directory: str, name: str) -> None:
        self.path = f"{directory}/{name}"
        self._files = files
        self._directory = directory

    def replace(self, properties: Mapping[str, str]) -> None:
        """Replace the file, durably."""
        new = f"{self.path}.tmp"
        if self._files.stat(new) is not None:
            self._files.unlink(new)
        file = self._files.create(new)
        try:
            text = "".join(f"{name}={value}\n" for name, value in properties.items())
            self._files.pwrite(file, text.encode(), 0)
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._files.rename(new, self.path)
        self._files.sync_directory(self._directory)

    def load(self) -> dict[str, str] | None:
        """Return the properties, or None without a file. What is returned is durable.

        The process that replaced the file may have been killed before its syncs.
        """
        if self._files.stat(self.path) is None:
            return None
        file = self._files.open(self.path, writable=True)
        try:
            text = self._files.read(file, 0, _BYTES_MAX).decode("latin-1")
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._files.sync_directory(self._directory)
        return dict(_LINE.findall(text))

"""The data of a page, inside the page: links that save each file of the run.

No network is needed. Files above PLAIN_MAX are compressed, so that a page of a thousand findings stays small. Equal
input gives equal bytes.
"""

import base64
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.errors import ReportError

__all__ = ["PLAIN_MAX", "Download", "downloads_of", "inlined"]

PLAIN_MAX = 64 << 10
"""Size (bytes) up to which a file is not compressed."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file to save: its name, its size before compression (bytes), and its data URL."""

    name: str
    size_bytes: int
    href: str


def inlined(name: str, content: bytes) -> Download:
    """Return a file as a download."""
    if len(content) <= PLAIN_MAX:
        return Download(name, len(content), _url("application/json", content))
    packed = gzip.compress(content, compresslevel=9, mtime=0)
    return Download(f"{name}.gz", len(content), _url("application/gzip", packed))


def downloads_of(directory: Path) -> tuple[Download, ...]:
    """Return `run.json` and the tables of a run directory, by name. Raises ReportError."""
    return tuple(_read(path) for path in _files(directory))


def _files(directory: Path) -> Iterable[Path]:
    return [directory / "run.json", *sorted((directory / "tables").glob("*.json"))]


def _read(path: Path) -> Download:
    try:
        return inlined(path.name, path.read_bytes())
    except OSError as error:
        raise ReportError(str(path), f"cannot be read: {error.strerror or error}", "name a run directory") from error


def _url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"

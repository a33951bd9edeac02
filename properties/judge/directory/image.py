"""A crash image as it lies on a real disk, read whole into memory. Nothing of it is locked, mapped or changed.

Sizes count as they are listed, holes too: a recorded disk has no holes, and several copies of the image live at once
while it is judged. Whoever has too little memory for that is told so before anything is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError, open_view, shown
from tornpage.properties.decode.store import StoreView
from tornpage.properties.disk.disk import Image
from tornpage.properties.program.log_places import ROOT

__all__ = ["COPIES", "IMAGE_BYTES_MAX", "SeenImage", "below_root", "read_image"]

IMAGE_BYTES_MAX = 1 << 30
"""The largest image that is judged, its holes included."""
COPIES = 6
"""How many times an image is in memory at most: as read, on two disks, each with what it was, and as it was found."""
_DEPTH_MAX = 8
_PIECE_BYTES = 1 << 20
_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class SeenImage:
    """An image in memory, below `ROOT`; `view` is what the decoder says of the directory, `strays` of odd things."""

    directory: Path
    image: Image
    view: StoreView
    strays: tuple[Finding, ...]

    @property
    def content(self) -> dict[str, bytes]:
        """The files by name below the store directory."""
        return below_root(self.image)


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    path: Path
    size_bytes: int


def below_root(image: Image) -> dict[str, bytes]:
    """Return the files of an image by name below the store directory."""
    start = len(ROOT) + 1
    return {path[start:]: content for path, content in image.files.items() if path.startswith(f"{ROOT}/")}


def read_image(path: str | os.PathLike[str], *, memory_bytes: int | None = None) -> SeenImage:
    """Read an image; `memory_bytes` is what may be used, by default what the machine has left. Raises InspectError."""
    view = open_view(path)
    if view.live:
        raise InspectError(f"a store has {shown(view.store_dir)} open; judge a copy, or close the store first")
    directories, files, strays = [], [], []
    try:
        for found in _listed(view.store_dir):
            if isinstance(found, Finding):
                strays.append(found)
            elif isinstance(found, str):
                directories.append(f"{ROOT}/{found}")
            else:
                files.append(found)
        _require_room(view.store_dir, sum(file.size_bytes for file in files), memory_bytes)
        content = {f"{ROOT}/{file.name}": _read(file) for file in files}
    except OSError as error:
        name = shown(Path(error.filename or view.store_dir))
        raise InspectError(f"cannot read {name}: {error.strerror}; read it as its owner, or judge a copy") from error
    return SeenImage(view.store_dir, Image(frozenset({"/", ROOT, *directories}), content), view, tuple(strays))


def _listed(root: Path) -> Iterator[_Listed | Finding | str]:
    """Yield directories (names), files, and a finding for each thing that is neither, or a way back up."""
    waiting = [("", root)]
    seen = {_identity(os.stat(root))}
    while waiting:
        below, directory = waiting.pop()
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = f"{below}{entry.name}"
            status = os.stat(entry.path)
            is_new = name.count("/") < _DEPTH_MAX and _identity(status) not in seen
            if stat.S_ISDIR(status.st_mode) and is_new:
                seen.add(_identity(status))
                yield name
                waiting.append((f"{name}/", Path(entry.path)))
            elif stat.S_ISREG(status.st_mode):
                yield _Listed(name, Path(entry.path), status.st_size)
            else:
                message = "neither a file nor a directory of its own, or too deep: not judged"
                yield Finding("CL_STRAY_FILE", "note", name, None, message, "move it away")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _require_room(directory: Path, size_bytes: int, memory_bytes: int | None) -> None:
    if size_bytes > IMAGE_BYTES_MAX:
        raise InspectError(
            f"{shown(directory)} has {size_bytes:,} bytes with its holes; images of {IMAGE_BYTES_MAX:,} bytes at most "
            "are judged; look at it with `tornpage inspect` and `tornpage audit`"
        )
    room = _available_bytes() if memory_bytes is None else memory_bytes
    if room is not None and COPIES * size_bytes > room:
        raise InspectError(
            f"judging {shown(directory)} takes about {COPIES * size_bytes:,} bytes of memory and {room:,} are left; "
            "free some, or look at it with `tornpage inspect` and `tornpage audit`"
        )


def _available_bytes() -> int | None:
    """Return how much memory is left, None if the machine does not say."""
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)


def _read(file: _Listed) -> bytes:
    """Read a file of the size that was listed. Raises OSError when it has another by now."""
    fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        content = b"".join(iter(lambda: os.read(fd, _PIECE_BYTES), b""))
    finally:
        os.close(fd)
    if len(content) != file.size_bytes:
        raise OSError(116, "it changed while it was read", str(file.path))
    return content

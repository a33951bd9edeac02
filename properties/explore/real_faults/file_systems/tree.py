"""Read the directories and files that a crash image has, through its file system."""

import os
from pathlib import Path

from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind, mounted_image
from tornpage.properties.explore.real_faults.mounts import Unavailable

__all__ = ["read_image", "read_tree"]

_OF_THE_FILE_SYSTEM = "lost+found"


def read_tree(root: str) -> Image:
    """Return everything below a directory. Raises OSError if the file system cannot read it."""
    directories, files, left = {"/"}, dict[str, bytes](), ["/"]
    while left:
        above = left.pop()
        for entry in os.scandir(root + above):
            if entry.name == _OF_THE_FILE_SYSTEM:
                continue
            path = f"{above.rstrip('/')}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                directories.add(path)
                left.append(path)
            else:
                files[path] = Path(root + path).read_bytes()
    return Image(frozenset(directories), files)


def read_image(kind: Kind, image: int, directory: str) -> Image | str:
    """Return what a crash image has, or why it cannot be mounted or read."""
    try:
        with mounted_image(kind, image, f"{directory}/crash", direct=False, crashed=True) as root:
            return read_tree(root)
    except (OSError, Unavailable) as error:
        return str(error)

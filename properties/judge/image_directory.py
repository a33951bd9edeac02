"""Crash images as real directories: for looking into one with any tool, and for recovering one on a real disk."""

from pathlib import Path

from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.judges import ROOT

__all__ = ["write_image"]


def write_image(image: Image, directory: Path) -> None:
    """Write what an image holds below the store's root into `directory`, which is made and must be new or empty.

    Raises FileExistsError when it is neither, OSError when the disk refuses.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise FileExistsError(17, "is not empty", str(directory))
    for path in sorted(image.directories):
        if path.startswith(f"{ROOT}/"):
            (directory / path.removeprefix(f"{ROOT}/")).mkdir(parents=True, exist_ok=True)
    for path, content in sorted(image.files.items()):
        if path.startswith(f"{ROOT}/"):
            (directory / path.removeprefix(f"{ROOT}/")).write_bytes(content)

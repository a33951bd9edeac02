"""Harm to files that are made from the log, after a clean exit: nothing of it may be lost, nothing of it believed.

Which file it is counts modulo those of its kind; a kind of which the store has none is left alone. The harm is drawn on
the durable image of the closed store.
"""

from dataclasses import dataclass

from properties.case import DerivedFile, HarmDerived
from properties.derived_files import STRAY
from properties.log_places import ROOT
from properties.recorder.disk import Image

__all__ = ["HarmedImage", "harmed_image"]

_SECTOR_BYTES = 512
_PLACES: dict[DerivedFile, str] = {
    "queue": f"{ROOT}/consumequeue/",
    "index": f"{ROOT}/index/",
    "extension": f"{ROOT}/consumequeue_ext/",
    "checkpoint": f"{ROOT}/checkpoint",
}


@dataclass(frozen=True, slots=True)
class HarmedImage:
    """The disk after the harm; `is_noticed` says that something was lost which the clean exit had promised."""

    image: Image
    is_noticed: bool


def harmed_image(harm: HarmDerived, image: Image, earlier: Image) -> HarmedImage | None:
    """Return the disk after the harm, or None when it changes nothing; `earlier` is a disk that held the store once."""
    here = _PLACES[harm.file]
    paths = sorted(path for path in image.files if path.startswith(here) and not path.endswith(STRAY))
    if not paths:
        return None
    path = paths[harm.number % len(paths)]
    before = image.files[path]
    after = _harmed(harm, before, earlier.files.get(path))
    if harm.harm == "stray":
        path = f"{path.rpartition('/')[0]}/{STRAY}"
    if after == before:
        return None
    files = {name: content for name, content in image.files.items() if name != path}
    if after is not None:
        files[path] = after
    loses = harm.file in ("queue", "index") and harm.harm != "stray" and bool(before.strip(b"\0"))
    return HarmedImage(Image(image.directories, files), loses)


def _harmed(harm: HarmDerived, before: bytes, earlier: bytes | None) -> bytes | None:
    """Return what the file holds afterwards, None for a file that is gone."""
    position = harm.amount % len(before) if before else 0
    match harm.harm:
        case "lost":
            return None
        case "zeroed":
            return before[:position] + bytes(len(before) - position)
        case "torn":
            start = position // _SECTOR_BYTES * _SECTOR_BYTES
            end = min(start + _SECTOR_BYTES, len(before))
            return before[:start] + bytes(end - start) + before[end:]
        case "stale":
            return earlier if earlier not in (None, before) else bytes(len(before))
        case "resized":
            size_bytes = harm.amount % (2 * len(before) + 1)
            return before[:size_bytes].ljust(size_bytes, b"\0")
        case "stray":
            return b"no file of this store\n"

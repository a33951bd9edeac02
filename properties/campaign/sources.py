"""Name the sources of the rooms on which results depend."""

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["sources_digest"]

_ROOMS = ("impl", "model", "pipeline", "properties", "sim")


@cache
def sources_digest() -> str:
    """Return a digest of the sources of the rooms, equal in a checkout and an installation.

    It is taken once, so that it is of the code that this process has loaded, even if the files change later.
    """
    home = Path(__file__).absolute().parents[2]
    digest = hashlib.sha256()
    for room in _ROOMS:
        for path in sorted((home / room).rglob("*.py")):
            digest.update(str(path.relative_to(home)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]

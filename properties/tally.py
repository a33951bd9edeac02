"""What a campaign counts while it explores."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import mmh3

from properties.recorder.disk import Image

__all__ = ["Tally", "fingerprint"]


@dataclass
class Tally:
    """What a campaign did. `states` counts states with 2 files and 10 records at least, `all_states` every one.

    Beside the fault classes `armed`, `fired` and `mattered` count the durability modes, `mode_sync` and so on.

    `discovery` holds (all states, distinct images, distinct recovered logs) every 256 states.
    """

    states: int = 0
    all_states: int = 0
    histories: int = 0
    proven_legal: int = 0
    images: set[bytes] = field(default_factory=set)
    recovered: set[bytes] = field(default_factory=set)
    verified: set[bytes] = field(default_factory=set)
    armed: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    mattered: Counter[str] = field(default_factory=Counter)
    discovery: list[tuple[int, int, int]] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


def fingerprint(image: Image) -> bytes:
    """Return a 128-bit hash of everything a disk holds."""
    parts = [part for path in sorted(image.files) for part in (path.encode(), b"\0", image.files[path])]
    return mmh3.hash_bytes(b"".join(parts))

"""What a campaign counts while it explores."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

__all__ = ["Seen", "Tally", "merged"]


class Seen(dict[bytes, None]):
    """A set of hashes that remembers in which order they came."""

    def add(self, key: bytes) -> None:
        """Take a hash in; one that is there keeps its place."""
        self[key] = None


@dataclass
class Tally:
    """What a history did. `states` counts states with 2 files and 10 records at least, `all_states` every one.

    `armed`, `fired` and `mattered` count fault classes, rules (`rule_…`), judges (`judge_…`) and durability modes
    (`mode_…`); docs/contract.md says what the words mean for each.

    `work` tells how many states were done how (docs/adr/0024): `known` have an image that was recovered and judged
    before, `done_again` were known and recovered all the same; `recoveries` are stores opened to be judged, second
    recoveries and those of a crash in recovery included, `viewed` those of them that nobody asked, since another one
    that had the same had answered. `looked` says how often each judge looked himself.

    `discovery` holds (all states, distinct images, distinct recovered logs) every 256 states.
    """

    states: int = 0
    all_states: int = 0
    histories: int = 0
    proven_legal: int = 0
    images: Seen = field(default_factory=Seen)
    recovered: Seen = field(default_factory=Seen)
    armed: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    mattered: Counter[str] = field(default_factory=Counter)
    discovery: list[tuple[int, int, int]] = field(default_factory=list)
    looked: Counter[str] = field(default_factory=Counter)
    work: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def saw(self, armed: Iterable[str], fired: Iterable[str]) -> None:
        """Count the judges of one recovered store: `armed` ones looked, `fired` ones had something to compare."""
        self.armed.update(armed)
        self.fired.update(fired)


def merged(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies, as if one had counted all of it in this order.

    What is distinct is distinct over all of them, so that the discovery curve goes on from one to the next.
    """
    total = Tally()
    for tally in tallies:
        start, images, recovered = total.all_states, iter(tally.images), iter(tally.recovered)
        taken = (0, 0)
        for all_states, images_then, recovered_then in (*tally.discovery, _end(tally)):
            total.images.update(dict.fromkeys(islice(images, images_then - taken[0])))
            total.recovered.update(dict.fromkeys(islice(recovered, recovered_then - taken[1])))
            taken = images_then, recovered_then
            total.discovery.append((start + all_states, len(total.images), len(total.recovered)))
        for name in ("states", "all_states", "histories", "proven_legal"):
            setattr(total, name, getattr(total, name) + getattr(tally, name))
        for counted, more in _counters(total, tally):
            counted.update(more)
        for stage, seconds in tally.seconds.items():
            total.seconds[stage] += seconds
    return total


def _end(tally: Tally) -> tuple[int, int, int]:
    return tally.all_states, len(tally.images), len(tally.recovered)


def _counters(total: Tally, tally: Tally) -> Iterable[tuple[Counter[str], Counter[str]]]:
    return (
        (total.armed, tally.armed),
        (total.fired, tally.fired),
        (total.mattered, tally.mattered),
        (total.looked, tally.looked),
        (total.work, tally.work),
    )

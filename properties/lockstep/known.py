"""What was judged already while one history stands still, so that equal work is done once.

Recovery is a function of the image it finds, and what a store answers is one of what its process has: the bytes of all
files as it sees them, and what it remembers of them. So an image that was recovered before has the verdict it had, as
long as the same log is legal for it; and a store that has what another one had answers as that one did. Neither is
taken on trust: a part of what is known, drawn, is done again and compared (docs/adr/0024).
"""

import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from typing import Self

from model.state import CommitLog
from properties.contract import HarnessError
from properties.disk.fingerprint import fingerprint
from properties.judge.progress_ledger import LegalVersions, Said
from properties.judge.recovered import Key, LegalLogs, Recovered, View

__all__ = ["AGAIN_SHARE", "Known", "Outcome"]

AGAIN_SHARE = 1 / 16
"""How much of what is known is done again."""

_Told = tuple[Hashable, ...]
_Sights = dict[View, list[tuple[_Told, object]]]


def _told_by(log: CommitLog) -> _Told:
    """Return what judges are told by a legal log.

    The rest of it is given with that, said by the disk (`saved_delays`), or is about queues that have no message any
    more (`cut`), which no judge asks for.
    """
    return log.records, log.end_offset, log.min_offset, log.deleted, log.delivered


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an image: nothing in it is known to be wrong. `fired` are the judges who had something to compare
    in what was recovered from it.
    """

    key: Key
    told: _Told
    said: tuple[tuple[str, Said], ...]
    findings: tuple[Hashable, ...]
    view: View | None
    durable: bytes
    effects: frozenset[str]
    fired: tuple[str, ...]

    @classmethod
    def of(cls, found: Recovered, effects: frozenset[str], fired: tuple[str, ...]) -> Self:
        """Return what became of the image that a store was recovered from, all judges having had their look."""
        return cls(
            key=found.key,
            told=_told_by(found.legal[found.key]),
            said=tuple(sorted(found.said_before.items())),
            findings=tuple(found.store.findings),
            view=found.view,
            durable=fingerprint(found.durable.files, found.durable.directories),
            effects=effects,
            fired=fired,
        )

    def is_legal(self, legal: LegalLogs, versions: LegalVersions) -> bool:
        """Whether judges would say of the image what they said before, these being the legal logs and versions."""
        log = legal.get(self.key)
        if log is None or _told_by(log) != self.told:
            return False
        return all(said in versions[path] for path, said in self.said)


@dataclass(slots=True)
class Known:
    """Images with what became of them, and views that were judged; `rng` draws what is done again.

    `work` counts what was done, and what was not; `looked` judges that had a look, by name.
    """

    rng: random.Random
    work: Counter[str]
    looked: Counter[str]
    images: dict[bytes, Outcome] = field(default_factory=dict)
    views: _Sights = field(default_factory=dict)
    delivered: _Sights = field(default_factory=dict)

    def is_done_again(self) -> bool:
        """Draw whether something known is done again."""
        return self.rng.random() < AGAIN_SHARE

    def outcome(self, image: bytes, legal: LegalLogs, versions: LegalVersions) -> Outcome | None:
        """Return what became of an image, None when nobody knows or something else is legal now."""
        outcome = self.images.get(image)
        return outcome if outcome is not None and outcome.is_legal(legal, versions) else None

    def note(self, image: bytes, outcome: Outcome) -> Outcome:
        """Remember what became of an image. Raises HarnessError when something else became of it before."""
        before = self.images.setdefault(image, outcome)
        if before != outcome:
            if before.told == outcome.told:
                names = (each.name for each in fields(outcome))
                other = ", ".join(name for name in names if getattr(before, name) != getattr(outcome, name))
                raise HarnessError(f"recovering one image twice gives another {other}")
            self.images[image] = outcome
        return outcome

    def is_judged(self, found: Recovered) -> bool:
        """Whether the process of a store has what another one had that was judged; from now on somebody has looked."""
        is_judged = self._is_seen(self.views, found) and not self.is_done_again()
        self.work["viewed"] += is_judged
        return is_judged

    def has_delivered(self, found: Recovered) -> bool:
        """Whether another store that had the same has delivered what was left; from now on one has."""
        return self._is_seen(self.delivered, found) and not self.is_done_again()

    @staticmethod
    def _is_seen(where: _Sights, found: Recovered) -> bool:
        sight = (_told_by(found.legal[found.key]), dict(found.said_before))
        assert found.view is not None
        seen = where.setdefault(found.view, [])
        if sight in seen:
            return True
        seen.append(sight)
        return False

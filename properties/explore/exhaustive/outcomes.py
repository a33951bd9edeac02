"""What becomes of one crash image: recovered by the real load path, judged, recovered once more; and what need not be
done twice.

Two rules spare work, and both say "the same function of the same arguments":

* An image that was judged before beside the same workload is recovered to the same store. What legal logs there are
  may differ, at another place of the crash; of them a judge asks only whether the recovered log is among them, and
  what it says, and of the versions of progress files whether what was found is among them. If so it holds here too.
* The second recovery starts from what the first made durable and from nothing else. Equal bytes, and an equal log to
  be found again: equal outcome.

A rule that compares less than that is unsound; properties/explore/exhaustive/checking.py is how such a one is noticed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import mmh3

from tornpage.model.state import CommitLog
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.fingerprint import fingerprint
from tornpage.properties.judge.evidence import Key, LegalLogs, Recovered
from tornpage.properties.judge.ledgers import LegalVersions, SavedVersion
from tornpage.properties.lockstep.lockstep import Lockstep

__all__ = ["Judging", "Outcome", "Sparing", "everything", "image_hash"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an image was recovered to: the log, what progress files said, and a hash of everything there is then.

    `found` is the recovered store itself, when it was recovered just now.
    """

    key: Key
    log: CommitLog
    said: Mapping[str, SavedVersion]
    recovered: bytes
    found: Recovered | None = None


class Judging(Protocol):
    """What recovers and judges the crash images of one operation."""

    def __call__(
        self, trial: Lockstep, image: bytes, disk: Callable[[], FailingDisk], legal: LegalLogs, versions: LegalVersions
    ) -> Outcome:
        """Recover a disk and judge it; `image` is the hash of what it holds, if that is all there is. Raises
        GuaranteeBroken.
        """


def image_hash(image: Image) -> bytes:
    """Return a 128-bit hash of everything on a disk: directories, names and contents."""
    return fingerprint(image.files, image.directories)


def recovered_hash(found: Recovered) -> bytes:
    """Return a hash of a recovered store: what is durable, what a process sees, where it begins and ends."""
    files, store = found.files, found.store
    visible = Image(frozenset(), {path: files.peek(path, 0, 1 << 40) for path in files.paths()})
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
    parts = (image_hash(found.durable), image_hash(visible), repr((found.key, marks)).encode())
    return mmh3.hash_bytes(b"".join(parts))


def _outcome(found: Recovered) -> Outcome:
    return Outcome(found.key, found.legal[found.key], found.versions_before, recovered_hash(found), found)


def everything(
    trial: Lockstep, image: bytes, disk: Callable[[], FailingDisk], legal: LegalLogs, versions: LegalVersions
) -> Outcome:
    """Judge without sparing anything."""
    return _outcome(trial.recovery.recover(disk(), legal, versions))


@dataclass
class Sparing:
    """Judges what is new; one is made for each operation of a workload, since clock and ledgers are arguments too.

    `judged` counts images that were recovered and judged, `recovered_again` second recoveries.
    """

    judged: int = 0
    recovered_again: int = 0
    _outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    _verified: dict[tuple[bytes, Key], CommitLog] = field(default_factory=dict)

    def __call__(
        self, trial: Lockstep, image: bytes, disk: Callable[[], FailingDisk], legal: LegalLogs, versions: LegalVersions
    ) -> Outcome:
        """Return the outcome, remembered if it must be the same. Raises GuaranteeBroken."""
        known = self._outcomes.get(image) if image else None
        if known is not None and _holds_too(known, legal, versions):
            return known
        self.judged += 1
        outcome = _outcome(trial.recovery.judged(disk(), legal, versions))
        assert outcome.found is not None
        again = (image_hash(outcome.found.durable), outcome.key)
        if self._verified.get(again) != outcome.log:
            self.recovered_again += 1
            trial.recovery.recovers_again(outcome.found)
            self._verified[again] = outcome.log
        if image:
            self._outcomes[image] = replace(outcome, found=None)
        return outcome


def _holds_too(known: Outcome, legal: LegalLogs, versions: LegalVersions) -> bool:
    return legal.get(known.key) == known.log and all(said in versions[path] for path, said in known.said.items())

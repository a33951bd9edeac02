"""Recover a crash image, judge it, recover it once more, and skip repeated work.

Recovery uses the real load path. Two rules save work. Both rely on equal results of the same function with the same
arguments:

* An image that was judged before after the same workload is recovered to the same store. The legal logs may differ at
  another crash point. A judge only asks whether the recovered log is among them, and whether the found versions of
  progress files are among the legal versions. If so, the earlier verdict holds here too.
* The second recovery starts only from what the first one made durable. Equal bytes and an equal expected log give an
  equal outcome.

A rule that compares less is unsound; properties/explore/exhaustive/checking.py detects such a rule.
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

__all__ = ["CachingJudge", "Judging", "Outcome", "everything", "image_hash"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Hold the outcome of an image: recovered log, progress files, and a hash of the store.

    `found` is the recovered store itself if it was recovered just now.
    """

    key: Key
    log: CommitLog
    said: Mapping[str, SavedVersion]
    recovered: bytes
    found: Recovered | None = None


class Judging(Protocol):
    """Recover and judge the crash images of one operation."""

    def __call__(
        self, trial: Lockstep, image: bytes, disk: Callable[[], FailingDisk], legal: LegalLogs, versions: LegalVersions
    ) -> Outcome:
        """Recover a disk and judge it. Raises GuaranteeBroken.

        `image` is the hash of its content, or empty if the content is not everything that matters.
        """


def image_hash(image: Image) -> bytes:
    """Return a 128-bit hash of everything on a disk: directories, names and contents."""
    return fingerprint(image.files, image.directories)


def recovered_hash(found: Recovered) -> bytes:
    """Return a hash of a recovered store: durable files, visible files, its begin and its end."""
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
    """Judge without saving any work."""
    return _outcome(trial.recovery.recover(disk(), legal, versions))


@dataclass
class CachingJudge:
    """Judge only what is new.

    Make one for each operation, since clock and ledgers are arguments too. `judged` counts images that were recovered
    and judged, `recovered_again` second recoveries.
    """

    judged: int = 0
    recovered_again: int = 0
    _outcomes: dict[bytes, Outcome] = field(default_factory=dict)
    _verified: dict[tuple[bytes, Key], CommitLog] = field(default_factory=dict)

    def __call__(
        self, trial: Lockstep, image: bytes, disk: Callable[[], FailingDisk], legal: LegalLogs, versions: LegalVersions
    ) -> Outcome:
        """Return the outcome, from memory if it must be the same. Raises GuaranteeBroken."""
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
